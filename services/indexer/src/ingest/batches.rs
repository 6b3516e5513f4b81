//! Stores the chartsets of concurrent tasks, several in a transaction.
//!
//! Transactions commit one after the other, since each takes the next numbers of the change feed. One of 16
//! chartsets takes PostgreSQL less time than 16 of one, so each waits for a full batch.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    waiting: Queue<Waiting>,
}

/// A chartset to store, and the task that waits for its outcome.
struct Waiting {
    draft: Arc<ChartsetDraft>,
    outcome: oneshot::Sender<PutOutcome>,
}

impl Batches {
    pub(super) fn new(store: Store) -> Self {
        Self { store, transactions: Semaphore::new(TRANSACTIONS), waiting: Queue::default() }
    }

    /// From now on a transaction stores what there is: all inputs are read, or the ingest must end soon.
    pub(super) fn stop_gathering(&self) {
        self.waiting.stop_gathering.cancel();
    }

    /// Stores a chartset together with others. If that fails, stores each of them alone, with retries until
    /// `stop` is cancelled.
    pub(super) async fn put(
        &self,
        draft: &Arc<ChartsetDraft>,
        stop: &CancellationToken,
    ) -> Result<PutOutcome, StoreError> {
        let (outcome, mut stored) = oneshot::channel();
        self.waiting.push(Waiting { draft: Arc::clone(draft), outcome });
        let stored = tokio::select! {
            biased;
            stored = &mut stored => stored,
            permit = self.transactions.acquire() => {
                self.store(self.waiting.next_batch().await).await;
                drop(permit);
                stored.await
            }
        };
        match stored {
            Ok(outcome) => Ok(outcome),
            Err(_) => retry_store_call(stop, || self.store.put_chartset(draft, now_ms())).await,
        }
    }

    /// Stores chartsets. After an error their tasks receive no outcome.
    async fn store(&self, waiting: Vec<Waiting>) {
        let drafts: Vec<&ChartsetDraft> = waiting.iter().map(|waiting| &*waiting.draft).collect();
        let Ok(mut outcomes) = self.store.put_chartsets(&drafts, now_ms()).await else { return };
        for Waiting { draft, outcome } in waiting {
            if let Some(stored) = outcomes.remove(&draft.id) {
                let _ = outcome.send(stored);
            }
        }
    }
}

/// What waits, taken in batches.
struct Queue<T> {
    waiting: Mutex<Vec<T>>,
    batch_is_full: Notify,
    stop_gathering: CancellationToken,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let (batch_is_full, stop_gathering) = (Notify::new(), CancellationToken::new());
        Self { waiting: Mutex::default(), batch_is_full, stop_gathering }
    }
}

impl<T> Queue<T> {
    fn push(&self, item: T) {
        let mut waiting = self.lock();
        waiting.push(item);
        if waiting.len() == BATCH {
            self.batch_is_full.notify_one();
        }
    }

    /// Takes a full batch. Takes what there is after [`GATHERING`], or if gathering is to stop.
    async fn next_batch(&self) -> Vec<T> {
        // The other song folders of an archive are pushed first.
        tokio::task::yield_now().await;
        let full = async {
            while self.lock().len() < BATCH {
                self.batch_is_full.notified().await;
            }
        };
        tokio::select! {
            biased;
            () = full => {}
            () = self.stop_gathering.cancelled() => {}
            () = tokio::time::sleep(GATHERING) => {}
        }
        let mut waiting = self.lock();
        let count = waiting.len().min(BATCH);
        let batch = waiting.drain(..count).collect();
        // For another task that waits for a batch.
        if waiting.len() >= BATCH {
            self.batch_is_full.notify_one();
        }
        batch
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn batches_of_a_slow_reader_are_full() {
        let queue = Queue::default();
        let read = async {
            for number in 0..2 * BATCH {
                sleep(GATHERING / 20).await;
                queue.push(number);
            }
        };
        let ((), batches) =
            tokio::join!(read, async { [queue.next_batch().await, queue.next_batch().await] });
        assert_eq!(batches.concat(), (0..2 * BATCH).collect::<Vec<_>>());
        assert_eq!(batches.map(|batch| batch.len()), [BATCH, BATCH]);
    }

    #[tokio::test(start_paused = true)]
    async fn every_waiting_task_learns_of_a_full_batch() {
        let (queue, start) = (Queue::default(), Instant::now());
        let read = async { (0..2 * BATCH).for_each(|number| queue.push(number)) };
        let (a, b, ()) = tokio::join!(queue.next_batch(), queue.next_batch(), read);
        assert_eq!((a.len(), b.len(), start.elapsed()), (BATCH, BATCH, Duration::ZERO));
    }

    #[tokio::test]
    async fn batch_has_what_other_tasks_push_at_the_same_time() {
        let queue = Queue::default();
        queue.stop_gathering.cancel();
        let read = async { (0..BATCH).for_each(|number| queue.push(number)) };
        assert_eq!(tokio::join!(queue.next_batch(), read).0.len(), BATCH);
    }

    #[tokio::test(start_paused = true)]
    async fn gathering_has_an_end() {
        let (queue, start) = (Queue::default(), Instant::now());
        queue.push(1);
        assert_eq!((queue.next_batch().await, start.elapsed()), (vec![1], GATHERING));
        queue.push(2);
        queue.stop_gathering.cancel();
        assert_eq!((queue.next_batch().await, start.elapsed()), (vec![2], GATHERING), "at once");
    }
}
