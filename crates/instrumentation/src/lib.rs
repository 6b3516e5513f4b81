//! What the library crates share to record metrics and spans. It uses the OpenTelemetry API only: without an
//! SDK, as in unit tests, everything here does nothing.
//!
//! - [`meter`]: creates the instruments of a component (docs/operations/metrics.md lists them all).
//! - [`DatabaseClient`]: the duration and the span of an operation of PostgreSQL, Redis or Meilisearch.
//! - [`Sampler`]: decides which root spans are created.
//! - [`RemoteParent`]: the caller's span, from `traceparent`.
//! - [`child_span`]: a span if the current operation has one.
//! - [`set_current_as_parent`]: for child spans that may outlive their parent.
//!
//! # Spans
//!
//! Spans are those of `tracing`. A *root* span, such as that of a request, is an `info_span!`, created only if
//! the [`Sampler`] samples it. All other spans are `debug_span!`s that [`child_span`] creates only inside
//! another span: an unsampled request has no spans. Fields have the names of the OpenTelemetry semantic
//! conventions. No span contains an address, a query string, a hash or text of a chart.

mod child_span;
mod database_client;
mod detached_span;
mod remote_parent;
mod sampler;

pub use child_span::child_span;
pub use database_client::{DatabaseClient, ErrorType, Operation};
pub use detached_span::set_current_as_parent;
pub use remote_parent::RemoteParent;
pub use sampler::{InvalidSampleRatio, Sampler};

use opentelemetry::global;
use opentelemetry::metrics::Meter;

/// The name of the instrumentation scope.
pub const SCOPE: &str = "chart_index";

/// The boundaries of histograms of fills and of database operations, in seconds.
pub const DATABASE_BUCKETS: [f64; 13] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];

/// The meter of the process. Instruments that were created before the telemetry was started record nothing.
#[must_use]
pub fn meter() -> Meter {
    global::meter(SCOPE)
}
