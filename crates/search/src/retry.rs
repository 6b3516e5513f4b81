//! Another attempt after an error that passes by itself: a node that restarts, or a connection that breaks.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::SearchError;

/// For how long attempts may fail before the last error is the result: longer than a node takes to restart.
const GIVE_UP_AFTER: Duration = Duration::from_mins(1);
/// The pause before the next attempt, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Runs something that may be done twice until it succeeds, fails for good, or has failed for a minute.
pub(crate) async fn retried<T, F: Future<Output = Result<T, SearchError>>>(
    mut attempt: impl FnMut() -> F,
) -> Result<T, SearchError> {
    let (start, (mut pause, longest)) = (Instant::now(), PAUSE);
    loop {
        match attempt().await {
            Err(error) if error.is_transient() && start.elapsed() + pause < GIVE_UP_AFTER => {
                let error: &dyn std::error::Error = &error;
                tracing::debug!(error, "a request to a search node is repeated");
            }
            result => return result,
        }
        sleep(pause).await;
        pause = longest.min(pause * 2);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn refused(status: u16) -> SearchError {
        let (code, message) = (String::new(), String::new());
        SearchError::Refused { operation: "test", status, code, message, retry_after: None }
    }

    #[tokio::test(start_paused = true)]
    async fn a_transient_error_is_followed_by_another_attempt() {
        let attempts = Cell::new(0);
        let result = retried(async || {
            attempts.set(attempts.get() + 1);
            if attempts.get() < 4 { Err(refused(503)) } else { Ok(attempts.get()) }
        });
        assert_eq!(result.await.unwrap(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_end_within_a_minute() {
        let start = Instant::now();
        let result: Result<(), _> = retried(async || Err(refused(503))).await;
        assert!(matches!(result, Err(SearchError::Refused { status: 503, .. })));
        let elapsed = start.elapsed();
        assert!((Duration::from_secs(50)..GIVE_UP_AFTER).contains(&elapsed), "{elapsed:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_that_lasts_is_the_result_at_once() {
        for status in [400, 403, 404, 413] {
            let start = Instant::now();
            let result: Result<(), _> = retried(async || Err(refused(status))).await;
            assert!(result.is_err());
            assert_eq!(start.elapsed(), Duration::ZERO, "{status}");
        }
    }
}
