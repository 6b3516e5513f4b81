//! The metrics of the connections, and the spans of their operations (docs/operations/metrics.md).

use std::convert::identity;
use std::sync::OnceLock;

use chart_index_instrumentation::{DatabaseClient, ErrorType, Operation};
use redis::{Arg, Cmd};

use crate::CommandError;
use crate::error::Replies;

/// The commands with series from the start.
const COMMANDS: [&str; 6] = ["GET", "EVALSHA", "EVAL", "MGET", "SET", PIPELINE];
/// The name of several commands that are sent together.
const PIPELINE: &str = "PIPELINE";

/// Observes operations: each by the name of its command, or as `PIPELINE` if it is several.
#[derive(Debug)]
pub(crate) struct CommandOperations {
    client: DatabaseClient,
    commands: [(&'static str, Operation); 6],
    other: OnceLock<Operation>,
}

impl CommandOperations {
    pub(crate) fn new() -> Self {
        let client = DatabaseClient::new("redis");
        Self { commands: COMMANDS.map(|name| (name, client.operation(name))), other: OnceLock::new(), client }
    }

    /// The operation of the command with this name; `_OTHER` for any other name.
    pub(crate) fn of(&self, command: &[u8]) -> &Operation {
        let bound = self.commands.iter().find(|(name, _)| name.as_bytes() == command);
        match bound {
            Some((_, operation)) => operation,
            None => self.other.get_or_init(|| self.client.operation("_OTHER")),
        }
    }

    /// Observes commands that are sent together. The first error is that of the operation.
    pub(crate) async fn observe_all(
        &self,
        commands: &[Cmd],
        replies: impl Future<Output = Replies>,
    ) -> Replies {
        let name = if let [command] = commands { name_of(command) } else { PIPELINE.as_bytes() };
        let (operation, span) = (self.of(name), self.of(name).span());
        if commands.len() > 1 {
            // Signed: the exporter writes unsigned numbers as text.
            span.record("db.operation.batch.size", i64::try_from(commands.len()).unwrap_or(i64::MAX));
        }
        let replies = async {
            let replies = replies.await;
            if replies.iter().any(Result::is_err) { Err(replies) } else { Ok(replies) }
        };
        let first_error = |replies: &Replies| {
            let first = replies.iter().find_map(|reply| reply.as_ref().err());
            first.map_or(ErrorType::Error, CommandError::error_type)
        };
        operation.observe_in(span, replies, first_error).await.unwrap_or_else(identity)
    }
}

pub(crate) fn name_of(command: &Cmd) -> &[u8] {
    match command.args_iter().next() {
        Some(Arg::Simple(name)) => name,
        _ => &[],
    }
}
