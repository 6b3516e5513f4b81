//! The metrics of the connections, and the spans of their operations (docs/operations/metrics.md).

use std::sync::{Arc, OnceLock, Weak};

use chart_index_instrumentation::{DatabaseClient, ErrorType, Operation, meter};
use opentelemetry::KeyValue;
use redis::{Arg, Cmd, Value};
use tracing::Span;

use crate::connection_state::SharedConnection;
use crate::{CommandError, ConnectionState};

/// The commands of a [`RedisConnection`](crate::RedisConnection).
pub(crate) const REQUEST_COMMANDS: &[&str] = &["GET", "EVALSHA", "EVAL"];
/// The commands of a [`RedisPool`](crate::RedisPool).
pub(crate) const POOL_COMMANDS: &[&str] = &["MGET", "SET", PIPELINE];
/// The name of several commands that are sent together.
const PIPELINE: &str = "PIPELINE";

/// Observes operations: each by the name of its command, or as `PIPELINE` if it is several.
#[derive(Debug, Clone)]
pub(crate) struct CommandOperations {
    client: DatabaseClient,
    commands: Arc<[(&'static str, Operation)]>,
    other: Arc<OnceLock<Operation>>,
}

pub(crate) type Replies = Vec<Result<Value, CommandError>>;

impl CommandOperations {
    /// Binds the labels of these commands.
    pub(crate) fn new(commands: &[&'static str]) -> Self {
        let client = DatabaseClient::new("redis");
        Self {
            commands: commands.iter().map(|&name| (name, client.operation(name))).collect(),
            other: Arc::default(),
            client,
        }
    }

    /// The operation of the command with this name; `_OTHER` for a name whose labels were not bound.
    pub(crate) fn of(&self, command: &[u8]) -> &Operation {
        let bound = self.commands.iter().find(|(name, _)| name.as_bytes() == command);
        match bound {
            Some((_, operation)) => operation,
            None => self.other.get_or_init(|| self.client.operation("_OTHER")),
        }
    }

    /// Prepares to observe commands that are sent together.
    pub(crate) fn batch(&self, commands: &[Cmd]) -> CommandBatch<'_> {
        if let [command] = commands {
            let operation = self.of(name_of(command));
            return CommandBatch { operation, span: operation.span() };
        }
        let pipeline = self.of(PIPELINE.as_bytes());
        let span = pipeline.span();
        // Signed: the exporter writes unsigned numbers as text.
        span.record("db.operation.batch.size", i64::try_from(commands.len()).unwrap_or(i64::MAX));
        CommandBatch { operation: pipeline, span }
    }
}

pub(crate) fn name_of(command: &Cmd) -> &[u8] {
    match command.args_iter().next() {
        Some(Arg::Simple(name)) => name,
        _ => &[],
    }
}

/// Commands that are sent together.
pub(crate) struct CommandBatch<'operations> {
    operation: &'operations Operation,
    span: Span,
}

impl CommandBatch<'_> {
    /// Observes the commands. The first error reply is the error of the operation.
    pub(crate) async fn observe(
        self,
        replies: impl Future<Output = Result<Replies, CommandError>>,
    ) -> Result<Replies, CommandError> {
        let replies = async {
            match replies.await {
                Ok(replies) if replies.iter().any(Result::is_err) => Err(BatchError::Some(replies)),
                Ok(replies) => Ok(replies),
                Err(error) => Err(BatchError::All(error)),
            }
        };
        match self.operation.observe_in(self.span, replies, BatchError::error_type).await {
            Ok(replies) | Err(BatchError::Some(replies)) => Ok(replies),
            Err(BatchError::All(error)) => Err(error),
        }
    }
}

/// Several commands of which not all succeeded.
enum BatchError {
    All(CommandError),
    Some(Replies),
}

impl BatchError {
    fn error_type(&self) -> ErrorType {
        match self {
            Self::All(error) => error.error_type(),
            Self::Some(replies) => {
                let first = replies.iter().find_map(|reply| reply.as_ref().err());
                first.map_or(ErrorType::Error, CommandError::error_type)
            }
        }
    }
}

/// Reports whether all of these connections are up, for as long as they exist. Reports nothing if no Redis is
/// configured.
pub(crate) fn observe_connections<'a>(
    name: &'static str,
    connections: impl IntoIterator<Item = &'a Arc<SharedConnection>>,
) {
    let connections: Vec<Weak<SharedConnection>> = connections.into_iter().map(Arc::downgrade).collect();
    if connections.is_empty() {
        return;
    }
    let label = [KeyValue::new("chart_index.redis.connection", name)];
    meter()
        .u64_observable_gauge("chart_index.redis.connected")
        .with_description("Whether the connection to Redis is up")
        .with_callback(move |observer| {
            let open: Option<Vec<_>> = connections.iter().map(Weak::upgrade).collect();
            let Some(open) = open else { return };
            let is_connected =
                open.iter().all(|shared| shared.state.borrow().public() == ConnectionState::Connected);
            observer.observe(is_connected.into(), &label);
        })
        .build();
}
