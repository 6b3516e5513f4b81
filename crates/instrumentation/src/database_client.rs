//! The duration and the span of an operation of a database client.

use std::time::{Duration, Instant};

use prometheus::Histogram;
use tracing::{Instrument, Span, field};

use crate::{child_span, metrics};

/// Records the operations of a client of PostgreSQL, Redis or Meilisearch: their duration, and a span
/// (OpenTelemetry semantic conventions for database clients).
#[derive(Debug, Clone, Copy)]
pub struct DatabaseClient {
    system: &'static str,
}

/// How an operation failed: the value of `error.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorType {
    /// There was no response in time.
    Timeout,
    /// The server could not be reached, or the connection was lost.
    Unavailable,
    /// The server responded with an error, or with something unexpected.
    Error,
}

impl ErrorType {
    /// Every type.
    pub const ALL: [Self; 3] = [Self::Timeout, Self::Unavailable, Self::Error];

    /// The value of the label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::Error => "error",
        }
    }
}

impl DatabaseClient {
    /// Records operations of this system: `postgresql`, `redis` or `meilisearch`.
    #[must_use]
    pub const fn new(system: &'static str) -> Self {
        Self { system }
    }

    /// An operation, e.g. `GET`. The name is one of a closed set. Its series are looked up once.
    #[must_use]
    pub fn operation(&self, name: &'static str) -> Operation {
        Operation {
            system: self.system,
            name,
            succeeded: self.duration(name, None),
            failed: ErrorType::ALL.map(|error| self.duration(name, Some(error))),
        }
    }

    /// Like [`Operation::observe`], with a look-up of the series, which takes tens of nanoseconds. The name is
    /// one of a closed set.
    pub fn observe<T, E>(
        &self,
        name: &'static str,
        operation: impl Future<Output = Result<T, E>>,
        error_type: impl FnOnce(&E) -> ErrorType,
    ) -> impl Future<Output = Result<T, E>> {
        let record = move |duration: Duration, error| {
            self.duration(name, error).observe(duration.as_secs_f64());
        };
        observe(span(self.system, name), operation, error_type, record)
    }

    fn duration(&self, name: &str, error: Option<ErrorType>) -> Histogram {
        let error = error.map_or("", ErrorType::as_str);
        metrics().db_client_operation_duration_seconds.with([self.system, name, error])
    }
}

/// An operation with its series.
#[derive(Debug, Clone)]
pub struct Operation {
    system: &'static str,
    name: &'static str,
    succeeded: Histogram,
    failed: [Histogram; 3],
}

impl Operation {
    /// The value of `db.operation.name`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Runs the operation in a span, and records its duration and, by `error_type`, how it failed.
    ///
    /// An operation that is dropped before its end counts as a timeout: its caller stopped waiting.
    pub fn observe<T, E>(
        &self,
        operation: impl Future<Output = Result<T, E>>,
        error_type: impl FnOnce(&E) -> ErrorType,
    ) -> impl Future<Output = Result<T, E>> {
        self.observe_in(self.span(), operation, error_type)
    }

    /// Like [`observe`](Self::observe), in a span that [`span`](Self::span) returned and the caller added
    /// fields to.
    pub fn observe_in<T, E>(
        &self,
        span: Span,
        operation: impl Future<Output = Result<T, E>>,
        error_type: impl FnOnce(&E) -> ErrorType,
    ) -> impl Future<Output = Result<T, E>> {
        observe(span, operation, error_type, |duration, error| self.record(duration, error))
    }

    /// Records an operation that took this long.
    pub fn record(&self, duration: Duration, error: Option<ErrorType>) {
        let histogram = match error {
            None => &self.succeeded,
            Some(error) => &self.failed[error as usize],
        };
        histogram.observe(duration.as_secs_f64());
    }

    /// A client span, if a span is current. The field `db.operation.batch.size` may be recorded.
    #[must_use]
    pub fn span(&self) -> Span {
        span(self.system, self.name)
    }
}

fn span(system: &'static str, name: &'static str) -> Span {
    child_span(|| {
        tracing::debug_span!(
            "database operation",
            otel.name = name,
            otel.kind = "client",
            "db.system.name" = system,
            "db.operation.name" = name,
            "db.operation.batch.size" = field::Empty,
            "error.type" = field::Empty,
        )
    })
}

async fn observe<T, E>(
    span: Span,
    operation: impl Future<Output = Result<T, E>>,
    error_type: impl FnOnce(&E) -> ErrorType,
    record: impl Fn(Duration, Option<ErrorType>),
) -> Result<T, E> {
    let mut recording =
        Recording { started: Instant::now(), span: &span, error: Some(ErrorType::Timeout), record };
    let result = operation.instrument(span.clone()).await;
    recording.error = result.as_ref().err().map(error_type);
    result
}

/// Records the operation when it is dropped, so that one that was not completed is recorded as well.
struct Recording<'a, R: Fn(Duration, Option<ErrorType>)> {
    started: Instant,
    span: &'a Span,
    error: Option<ErrorType>,
    record: R,
}

impl<R: Fn(Duration, Option<ErrorType>)> Drop for Recording<'_, R> {
    fn drop(&mut self) {
        if let Some(error) = self.error {
            self.span.record("error.type", error.as_str());
        }
        (self.record)(self.started.elapsed(), self.error);
    }
}
