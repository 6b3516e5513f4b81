//! Waiting for background work, with a timeout.

use std::time::{Duration, Instant};

/// Polls until there is a value; returns it and the elapsed time. Panics after the timeout.
pub async fn within<T>(timeout: Duration, mut poll: impl AsyncFnMut() -> Option<T>) -> (T, Duration) {
    let start = Instant::now();
    loop {
        if let Some(value) = poll().await {
            return (value, start.elapsed());
        }
        assert!(start.elapsed() < timeout, "no value within {timeout:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
