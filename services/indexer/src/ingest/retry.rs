//! Calls of the store that are tried again while PostgreSQL is unavailable.

use std::io::Write;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use chart_index_store::StoreError;
use tokio_util::sync::CancellationToken;

use crate::report::error_chain;

/// Pauses from a tenth of a second to five seconds, half a minute together. An attempt takes up to the acquire timeout
/// of the store on top of that: a restart or a failover is waited for, an outage is not.
const BACKOFF: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(100))
    .with_max_delay(Duration::from_secs(5))
    .with_total_delay(Some(Duration::from_secs(30)))
    .without_max_times()
    .with_jitter();

/// Calls the store, again while it is unavailable, until it has been for too long or the ingest is to stop.
pub(super) async fn retried<T, F>(stop: &CancellationToken, call: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let stopped = stop.clone();
    call.retry(BACKOFF)
        .when(|error| error.is_unavailable() && !stop.is_cancelled())
        .sleep(move |pause| {
            let stopped = stopped.clone();
            async move {
                let _ = tokio::time::timeout(pause, stopped.cancelled()).await;
            }
        })
        .notify(|error, pause| {
            let error = error_chain(error);
            let _ = writeln!(std::io::stderr(), "{error}; trying again in {pause:.1?}");
        })
        .await
}
