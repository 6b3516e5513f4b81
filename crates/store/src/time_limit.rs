//! Time limits for statements and connection attempts.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::time::timeout;

/// Limit of a statement, or of a connection attempt, on the connections that are not in a pool.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs a statement or a connection attempt with a time limit. Above it the result is [`no_response`].
pub(crate) async fn with_time_limit<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    timeout(limit, work).await.unwrap_or_else(|_| Err(no_response(limit)))
}

/// The error of an attempt without a response in time. It counts as a lost connection.
pub(crate) fn no_response(limit: Duration) -> sqlx::Error {
    let message = format!("no response within {} ms", limit.as_millis());
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, message))
}

/// Whether the error is [`no_response`], or a timeout of the operating system on the same connection.
pub(crate) fn is_no_response(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut)
}
