//! Retries of store calls, and the pauses between all retries.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder, Retryable};
use chart_index_cli::Causes;
use chart_index_store::StoreError;
use chart_index_telemetry::print;
use tokio_util::sync::CancellationToken;
use tracing::Level;

/// Retries of store calls, with pauses of up to 30 s in total. With an acquire timeout of 10 s per attempt, a
/// call fails after about two minutes. That is enough for a restart or a failover of PostgreSQL, but not for an
/// outage.
const STORE_CALL: ExponentialBuilder = exponential(Duration::from_millis(100), Duration::from_secs(5))
    .with_total_delay(Some(Duration::from_secs(30)))
    .with_jitter();

/// Restarts of `follow` for a node that failed.
pub(crate) const NODE_RESTART: ExponentialBuilder = exponential(MIN_RESTART_PAUSE, Duration::from_secs(30));
/// Repetitions of purges that failed: until they succeed, removed charts stay downloadable.
pub(crate) const PURGE: ExponentialBuilder = exponential(MIN_RESTART_PAUSE, Duration::from_secs(2));
/// The shortest of these pauses.
pub(crate) const MIN_RESTART_PAUSE: Duration = Duration::from_secs(1);

const fn exponential(min: Duration, max: Duration) -> ExponentialBuilder {
    ExponentialBuilder::new().with_min_delay(min).with_max_delay(max).without_max_times()
}

/// Endless pauses that double up to a maximum.
pub(crate) struct Pauses {
    builder: ExponentialBuilder,
    pauses: ExponentialBackoff,
}

impl Pauses {
    pub(crate) fn new(builder: ExponentialBuilder) -> Self {
        Self { builder, pauses: builder.build() }
    }

    /// Starts again with the shortest pause.
    pub(crate) fn reset(&mut self) {
        self.pauses = self.builder.build();
    }

    pub(crate) fn next(&mut self) -> Duration {
        self.pauses.next().unwrap_or_default()
    }
}

/// Calls the store, with retries while PostgreSQL is unavailable, until `stop` is cancelled or [`STORE_CALL`]
/// is exhausted.
pub(crate) async fn retry_store_call<T, F>(
    stop: &CancellationToken,
    call: impl FnMut() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let stopped = stop.clone();
    call.retry(STORE_CALL)
        .when(|error| error.is_unavailable() && !stop.is_cancelled())
        .sleep(move |pause| {
            let stopped = stopped.clone();
            async move {
                let _ = tokio::time::timeout(pause, stopped.cancelled()).await;
            }
        })
        .notify(|error, pause| {
            let error = Causes(error).to_string();
            print(Level::WARN, format_args!("{error}; retrying in {pause:.1?}"));
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum_without_end() {
        let mut pauses = Pauses::new(NODE_RESTART);
        for _ in 0..2 {
            let seconds: Vec<u64> = (0..8).map(|_| pauses.next().as_secs()).collect();
            assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30, 30]);
            assert_eq!((0..200).map(|_| pauses.next()).last(), Some(Duration::from_secs(30)));
            pauses.reset();
        }
    }
}
