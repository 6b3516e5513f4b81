//! Retries requests after transient errors: while a node restarts, or after a connection broke.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use tokio::time::{Instant, sleep};

use crate::SearchError;

/// Pauses from 100 ms to 5 s.
const BACKOFF: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(100))
    .with_max_delay(MAX_PAUSE)
    .without_max_times();
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// The time from the first attempt to the start of the last one: longer than a node takes to restart.
const TOTAL: Duration = Duration::from_mins(1);

/// Runs an idempotent request until it succeeds, fails permanently, or has failed for a minute.
pub(crate) async fn retry<T, F>(request: impl FnMut() -> F) -> Result<T, SearchError>
where
    F: Future<Output = Result<T, SearchError>>,
{
    let start = Instant::now();
    request
        .retry(BACKOFF)
        .sleep(sleep)
        .when(|error| error.is_transient() && start.elapsed() + pause_after(error) < TOTAL)
        .adjust(|error, pause| pause.map(|pause| pause.max(error.retry_after().unwrap_or_default())))
        .notify(|error, pause| {
            let error: &dyn std::error::Error = error;
            tracing::debug!(error, ?pause, "retrying a request to a search node");
        })
        .await
}

/// The longest pause that may follow the error.
fn pause_after(error: &SearchError) -> Duration {
    error.retry_after().unwrap_or_default().max(MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn error_response(status: u16, retry_after: Option<Duration>) -> SearchError {
        let (code, message) = (String::new(), String::new());
        SearchError::ErrorResponse { operation: "test", status, code, message, retry_after }
    }

    #[tokio::test(start_paused = true)]
    async fn transient_errors_are_retried() {
        let attempts = Cell::new(0);
        let result = retry(async || {
            attempts.set(attempts.get() + 1);
            if attempts.get() < 4 { Err(error_response(503, None)) } else { Ok(attempts.get()) }
        });
        assert_eq!(result.await.unwrap(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_end_within_a_minute() {
        for retry_after in [None, Some(Duration::from_secs(7)), Some(Duration::from_mins(1))] {
            let start = Instant::now();
            let result: Result<(), _> = retry(async || Err(error_response(503, retry_after))).await;
            assert!(matches!(result, Err(SearchError::ErrorResponse { status: 503, .. })));
            let elapsed = start.elapsed();
            assert!(elapsed < TOTAL, "{elapsed:?} of {retry_after:?}");
            assert!(retry_after.is_some() || elapsed > Duration::from_secs(50), "{elapsed:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn retry_after_is_the_shortest_pause() {
        let (start, attempts) = (Instant::now(), Cell::new(0));
        let result = retry(async || {
            attempts.set(attempts.get() + 1);
            let retry_after = Some(Duration::from_secs(10));
            if attempts.get() == 1 { Err(error_response(503, retry_after)) } else { Ok(()) }
        });
        result.await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn permanent_errors_are_not_retried() {
        for status in [400, 403, 404, 413] {
            let start = Instant::now();
            let result: Result<(), _> = retry(async || Err(error_response(status, None))).await;
            assert!(result.is_err());
            assert_eq!(start.elapsed(), Duration::ZERO, "{status}");
        }
    }
}
