//! Waiting for what happens in the background, up to the time that it is promised within.

use std::time::{Duration, Instant};

/// Asks until there is an answer, and tells how long that took. Fails when the time is over.
pub async fn within<T>(promised: Duration, mut ask: impl AsyncFnMut() -> Option<T>) -> (T, Duration) {
    let since = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return (answer, since.elapsed());
        }
        assert!(since.elapsed() < promised, "it does not happen within {promised:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
