//! Reads how many changes the nodes lack, for the metrics of `sync --follow`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use chart_index_store::Store;

use crate::metrics::BacklogGauges;
use crate::search::checkpoints::Checkpoints;

/// How often the backlog is read.
const INTERVAL: Duration = Duration::from_secs(5);

/// Sets the gauges to the backlog of the node that lags most, again and again. Never returns.
///
/// Nodes count whose checkpoint is known. A node that was not reached since the start has no checkpoint, and no
/// last success either.
pub(crate) async fn watch(
    store: Store,
    checkpoints: Arc<Checkpoints>,
    gauges: Arc<BacklogGauges>,
) -> Infallible {
    loop {
        let backlog = match checkpoints.lowest_known() {
            // An outage is reported by the passes, which fail as well.
            Some(checkpoint) => store.backlog(checkpoint).await.ok(),
            None => None,
        };
        gauges.set(backlog);
        tokio::time::sleep(INTERVAL).await;
    }
}
