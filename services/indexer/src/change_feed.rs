//! Assigns numbers to changes, after which they are in the change feed (docs/formats/change-feed.md).
//!
//! Every command that writes does so at its end, and `sync --follow` all the time, also for changes of other
//! programs.

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use chart_index_store::{ChangesListener, Store};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::backoff::retry_store_call;
use crate::metrics::BacklogGauges;

/// Minimum pause between assignments while a program runs, so that changes made at about the same time share
/// one.
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum wait of [`follow`] for a notification. After that, changes whose notification was lost are found.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of the last assignment of a program that was interrupted.
const INTERRUPTED_TIMEOUT: Duration = Duration::from_secs(2);

const NOT_ASSIGNED: &str = "the changes are stored, but are not in the change feed yet: the next command that writes, or \
                            `chart-indexer sync --follow`, adds them";

/// Assigns numbers to the changes of a command.
///
/// # Errors
/// The store failed.
pub(crate) async fn assign(store: &Store) -> Result<()> {
    let never = CancellationToken::new();
    retry_store_call(&never, || store.assign_sequences()).await.context(NOT_ASSIGNED)?;
    Ok(())
}

/// The task that assigns numbers to the changes of a running ingest or import.
#[derive(Debug)]
pub(crate) struct BackgroundAssignment {
    store: Option<Store>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl BackgroundAssignment {
    /// Starts the task. Without a store, as in a dry run, it does nothing.
    pub(crate) fn start(store: Option<Store>) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(assign_until(store.clone(), stop.clone()));
        Self { store, stop, task }
    }

    /// Assigns numbers to the changes of the program that have none yet. After an interruption it makes a
    /// single short attempt, because the process must end soon even during an outage.
    ///
    /// # Errors
    /// The store failed, and the program was not interrupted.
    pub(crate) async fn finish(self, is_interrupted: bool) -> Result<()> {
        self.stop.cancel();
        if is_interrupted {
            self.task.abort();
            return self.assign_soon().await;
        }
        self.task.await?;
        match &self.store {
            Some(store) => assign(store).await,
            None => Ok(()),
        }
    }

    async fn assign_soon(&self) -> Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let assigned = tokio::time::timeout(INTERRUPTED_TIMEOUT, store.assign_sequences()).await;
        if !matches!(assigned, Ok(Ok(_))) {
            writeln!(std::io::stderr(), "{NOT_ASSIGNED}")?;
        }
        Ok(())
    }
}

async fn assign_until(store: Option<Store>, stop: CancellationToken) {
    let Some(store) = store else { return };
    while tokio::time::timeout(INTERVAL, stop.cancelled()).await.is_err() {
        // An outage is reported by the writers, which fail as well; the last attempt is made at the end.
        let _ = store.assign_sequences().await;
    }
}

/// Assigns numbers to all changes as they are made, and reports how many have none yet. Never returns.
pub(crate) async fn follow(
    store: Store,
    mut listener: ChangesListener,
    gauges: Arc<BacklogGauges>,
) -> Infallible {
    loop {
        if let Err(error) = store.assign_sequences().await
            && !error.is_unavailable()
        {
            tracing::error!(%error, "numbers of the change feed cannot be assigned");
        }
        gauges.set(store.pending_changes().await.ok());
        tokio::time::sleep(INTERVAL).await;
        listener.changed(NOTIFICATION_TIMEOUT).await;
    }
}
