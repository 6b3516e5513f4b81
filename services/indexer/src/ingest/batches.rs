//! Stores the chartsets of concurrent tasks, several in a transaction.
//!
//! Transactions commit one after the other, since each takes the next numbers of the change feed. While some
//! run, chartsets wait, and the next transaction stores those that wait then.

use std::sync::{Arc, Mutex, PoisonError};

use chart_index_domain::ChartsetDraft;
use chart_index_store::{PutOutcome, Store, StoreError};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::backoff::retry_store_call;
use crate::clock::now_ms;

/// Number of transactions that run at once: enough to keep PostgreSQL busy while one waits for its disk.
const TRANSACTIONS: usize = 2;
/// Maximum number of chartsets in a transaction.
pub(super) const BATCH: usize = 16;

pub(super) struct Batches {
    store: Store,
    transactions: Semaphore,
    waiting: Mutex<Vec<Waiting>>,
}

/// A chartset to store, and the task that waits for its outcome.
struct Waiting {
    draft: Arc<ChartsetDraft>,
    outcome: oneshot::Sender<PutOutcome>,
}

impl Batches {
    pub(super) fn new(store: Store) -> Self {
        Self { store, transactions: Semaphore::new(TRANSACTIONS), waiting: Mutex::default() }
    }

    /// Stores a chartset together with others that wait. If that fails, stores each of them alone, with retries
    /// until `stop` is cancelled.
    pub(super) async fn put(
        &self,
        draft: &Arc<ChartsetDraft>,
        stop: &CancellationToken,
    ) -> Result<PutOutcome, StoreError> {
        let (outcome, mut stored) = oneshot::channel();
        self.lock().push(Waiting { draft: Arc::clone(draft), outcome });
        let stored = tokio::select! {
            biased;
            stored = &mut stored => stored,
            permit = self.transactions.acquire() => {
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

    /// Stores the chartsets that wait. After an error their tasks receive no outcome.
    async fn store_waiting(&self) {
        let waiting: Vec<Waiting> = {
            let mut waiting = self.lock();
            let count = waiting.len().min(BATCH);
            waiting.drain(..count).collect()
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
