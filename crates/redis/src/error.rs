//! Errors of commands, and which of them mean that the connection is of no further use.

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Why a command has no result.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The circuit breaker is open, or no Redis is configured. Nothing was sent, and the caller did not wait.
    #[error("redis is unavailable")]
    Unavailable,
    /// No reply before the deadline. The command may still take effect.
    #[error("redis timed out")]
    TimedOut,
    /// The connection was lost. The command may have taken effect.
    #[error("disconnected from redis")]
    Disconnected(#[source] RedisError),
    /// Redis replied with an error.
    #[error("redis replied with an error")]
    ErrorReply(#[source] RedisError),
}

impl CommandError {
    /// Whether Redis does not know the script of an `EVALSHA`, e.g. after a restart.
    #[must_use]
    pub fn is_unknown_script(&self) -> bool {
        matches!(self, Self::ErrorReply(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript))
    }
}

impl From<RedisError> for CommandError {
    fn from(error: RedisError) -> Self {
        if needs_new_connection(&error) { Self::Disconnected(error) } else { Self::ErrorReply(error) }
    }
}

/// Whether the connection is lost or leads to a server that cannot serve commands now: a new connection may lead to
/// another one. Any other error is a reply, which shows that the connection works.
fn needs_new_connection(error: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, ReadOnly};
    match error.kind() {
        ErrorKind::Server(BusyLoading | ClusterDown | MasterDown | ReadOnly) => true,
        ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::UnexpectedReturnType => false,
        _ => true,
    }
}
