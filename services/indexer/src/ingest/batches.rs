//! Stores the chartsets of concurrent tasks, several in a transaction.
//!
//! Transactions commit one after the other, since each takes the next numbers of the change feed. One of 16
//! chartsets takes PostgreSQL less time than 16 of one, so each waits for a full batch.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chart_index_domain::ChartsetDraft;
use chart_index_store::{PutOutcome, Store, StoreError};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::backoff::retry_store_call;
use crate::clock::now_ms;

/// Number of transactions that run at once: enough to keep PostgreSQL busy while one waits for its disk.
const TRANSACTIONS: usize = 2;
/// Maximum number of chartsets in a transaction.
pub(super) const BATCH: usize = 16;
/// How long a transaction waits for a full batch. Reading goes on meanwhile.
const GATHERING: Duration = Duration::from_millis(500);

pub(super) struct Batches {
    store: Store,
    transactions: Semaphore,
    waiting: Mutex<Vec<Waiting>>,
    batch_is_full: Notify,
    /// Cancelled when no transaction should wait for more chartsets.
    last: CancellationToken,
}

/// A chartset to store, and the task that waits for its outcome.
struct Waiting {
    draft: Arc<ChartsetDraft>,
    outcome: oneshot::Sender<PutOutcome>,
}

impl Batches {
    pub(super) fn new(store: Store) -> Self {
        Self {
            store,
            transactions: Semaphore::new(TRANSACTIONS),
            waiting: Mutex::default(),
            batch_is_full: Notify::new(),
            last: CancellationToken::new(),
        }
    }

    /// From now on a transaction stores what there is: all inputs are read, or the ingest must end soon.
    pub(super) fn stop_gathering(&self) {
        self.last.cancel();
    }

    /// Stores a chartset together with others. If that fails, stores each of them alone, with retries until
    /// `stop` is cancelled.
    pub(super) async fn put(
        &self,
        draft: &Arc<ChartsetDraft>,
        stop: &CancellationToken,
    ) -> Result<PutOutcome, StoreError> {
        let (outcome, mut stored) = oneshot::channel();
        self.add(Waiting { draft: Arc::clone(draft), outcome });
        let stored = tokio::select! {
            biased;
            stored = &mut stored => stored,
            permit = self.transactions.acquire() => {
                self.gather().await;
                self.store_waiting().await;
                drop(permit);
                stored.await
            }
        };
        match stored {
            Ok(outcome) => Ok(outcome),
            Err(_) => retry_store_call(stop, || self.store.put_chartset(draft, now_ms())).await,
        }
    }

    fn add(&self, chartset: Waiting) {
        let mut waiting = self.lock();
        waiting.push(chartset);
        if waiting.len() == BATCH {
            self.batch_is_full.notify_one();
        }
    }

    /// Waits for a full batch, within limits.
    async fn gather(&self) {
        let full = async {
            while self.lock().len() < BATCH {
                self.batch_is_full.notified().await;
            }
        };
        tokio::select! {
            () = full => {}
            () = self.last.cancelled() => {}
            () = tokio::time::sleep(GATHERING) => {}
        }
    }

    /// Stores the chartsets that wait. After an error their tasks receive no outcome.
    async fn store_waiting(&self) {
        let waiting: Vec<Waiting> = {
            let mut waiting = self.lock();
            let count = waiting.len().min(BATCH);
            let batch = waiting.drain(..count).collect();
            if waiting.len() >= BATCH {
                self.batch_is_full.notify_one();
            }
            batch
        };
        let drafts: Vec<&ChartsetDraft> = waiting.iter().map(|waiting| &*waiting.draft).collect();
        let Ok(mut outcomes) = self.store.put_chartsets(&drafts, now_ms()).await else { return };
        for Waiting { draft, outcome } in waiting {
            if let Some(stored) = outcomes.remove(&draft.id) {
                let _ = outcome.send(stored);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
