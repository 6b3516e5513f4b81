//! Errors of commands, and which of them mean that the connection is of no further use.

use chart_index_instrumentation::ErrorType;
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};

/// Why a command has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommandError {
    /// No connection is open, or no Redis is configured: the command was not sent. Returned at once, except in
    /// the state [`Connecting`](crate::ConnectionState::Connecting): then after the attempt to connect, at the
    /// deadline at latest.
    #[error("redis is unavailable")]
    Unavailable,
    /// No reply before the deadline. The command may still take effect.
    #[error("redis timed out")]
    TimedOut,
    /// The connection was lost, in which case the command may have taken effect, or leads to a server that
    /// cannot run commands now: it is loading, read-only, or its cluster or primary is down.
    #[error("connection to redis lost, or its server cannot run commands")]
    Disconnected(#[source] RedisError),
    /// Redis replied with an error, e.g. because it is out of memory.
    #[error("redis replied with an error")]
    ErrorReply(#[source] RedisError),
}

/// The replies to commands that were sent together.
pub(crate) type Replies = Vec<Result<Value, CommandError>>;

impl CommandError {
    /// The error in metrics and spans.
    pub(crate) const fn error_type(&self) -> ErrorType {
        match self {
            Self::Unavailable | Self::Disconnected(_) => ErrorType::Unavailable,
            Self::TimedOut => ErrorType::Timeout,
            Self::ErrorReply(_) => ErrorType::Error,
        }
    }

    /// The replies to commands that all failed for this reason.
    pub(crate) fn of_all(&self, commands: &[Cmd]) -> Replies {
        commands.iter().map(|_| Err(self.clone())).collect()
    }

    /// Whether Redis does not know the script of an `EVALSHA`, e.g. after a restart.
    #[must_use]
    pub fn is_unknown_script(&self) -> bool {
        self.is_reply(ServerErrorKind::NoScript)
    }

    /// Whether another node of the cluster serves the key.
    pub(crate) fn is_moved(&self) -> bool {
        self.is_reply(ServerErrorKind::Moved)
    }

    fn is_reply(&self, kind: ServerErrorKind) -> bool {
        matches!(self, Self::ErrorReply(error) if error.kind() == ErrorKind::Server(kind))
    }
}

impl From<RedisError> for CommandError {
    fn from(error: RedisError) -> Self {
        if needs_new_connection(&error) { Self::Disconnected(error) } else { Self::ErrorReply(error) }
    }
}

/// Whether the connection is lost or leads to a server that cannot serve commands now: a new connection may
/// lead to another one. Any other error is a reply, which shows that the connection works.
fn needs_new_connection(error: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, ReadOnly};
    match error.kind() {
        ErrorKind::Server(BusyLoading | ClusterDown | MasterDown | ReadOnly) => true,
        // Redis 6, in a script: "Error running script (call to f_…): @user_script:1: … -READONLY …".
        ErrorKind::Server(ServerErrorKind::ResponseError) => {
            error.detail().is_some_and(|detail| detail.contains(" -READONLY "))
        }
        ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::UnexpectedReturnType => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_only_server_needs_a_new_connection() {
        let in_script = "ERR Error running script (call to f_00): @user_script:1: @user_script: 1: ";
        for (reply, expected) in [
            ("READONLY You can't write against a read only replica.".to_owned(), true),
            (format!("{in_script}-READONLY You can't write against a read only replica. "), true),
            (format!("{in_script}-OOM command not allowed when used memory > 'maxmemory'. "), false),
            ("ERR unknown command".to_owned(), false),
        ] {
            let error =
                redis::parse_redis_value(format!("-{reply}\r\n").as_bytes()).and_then(Value::extract_error);
            let error = CommandError::from(error.unwrap_err());
            assert_eq!(matches!(error, CommandError::Disconnected(_)), expected, "{reply}");
        }
    }
}
