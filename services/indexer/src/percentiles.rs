//! The percentiles that the pages of charts show.

use std::convert::Infallible;
use std::time::Duration;

use chart_index_cli::Causes;
use chart_index_store::{Store, StoreError};
use tokio_util::sync::CancellationToken;

use crate::backoff::retry_store_call;
use crate::clock::now_ms;

/// How old they become while nothing is ingested or imported.
const MAX_AGE: Duration = Duration::from_hours(24);
/// How often it checks their age.
const INTERVAL: Duration = Duration::from_mins(10);

/// Computes them after a command: if it changed chartsets whatever their age, otherwise once a day.
pub(crate) async fn compute(store: &Store, is_changed: bool) -> Result<(), StoreError> {
    let (never, max_age) = (CancellationToken::new(), if is_changed { Duration::ZERO } else { MAX_AGE });
    retry_store_call(&never, || store.compute_percentiles(now_ms(), max_age)).await
}

/// Computes them once a day.
pub(crate) async fn follow(store: Store) -> Infallible {
    loop {
        if let Err(error) = store.compute_percentiles(now_ms(), MAX_AGE).await {
            tracing::warn!(error = %Causes(&error), "percentiles not computed");
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
