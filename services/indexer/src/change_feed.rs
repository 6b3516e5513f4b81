//! Assigns numbers to changes, after which they are in the change feed (docs/formats/change-feed.md) and
//! visible to replicas and search nodes.
//!
//! Every command that writes does so while it runs and at its end, and `follow` all the time, also for changes
//! of other programs.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::{Context, Result};
use chart_index_store::Store;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::backoff::retry_store_call;

/// Pause between assignments while a program runs. Changes made meanwhile share one.
const INTERVAL: Duration = Duration::from_millis(500);

/// Assigns numbers to all changes that are committed.
///
/// # Errors
/// The store failed.
pub(crate) async fn assign(store: &Store) -> Result<()> {
    let never = CancellationToken::new();
    retry_store_call(&never, || store.assign_sequences()).await.context(
        "the changes are stored, but are not in the change feed yet: the next command that writes, or \
         `chart-indexer follow`, adds them",
    )?;
    Ok(())
}

/// Assigns numbers to the changes of a command while it runs, until the handle is dropped. The command assigns
/// the last ones itself.
pub(crate) fn assign_in_background(store: &Store) -> AbortOnDropHandle<Infallible> {
    let store = store.clone();
    AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            tokio::time::sleep(INTERVAL).await;
            // An outage is reported by the writers, which fail as well.
            let _ = store.assign_sequences().await;
        }
    }))
}

/// Assigns numbers to all changes as they are made, and publishes the last number in the feed. Never returns.
pub(crate) async fn follow(store: Store, last_number: watch::Sender<u64>) -> Infallible {
    loop {
        if let Err(error) = store.assign_sequences().await
            && !error.is_unavailable()
        {
            tracing::error!(%error, "numbers of the change feed cannot be assigned");
        }
        // Other programs assign numbers as well.
        if let Ok(position) = store.feed_position().await {
            last_number
                .send_if_modified(|last| std::mem::replace(last, position.sequence) != position.sequence);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
