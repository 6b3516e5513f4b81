//! The part of `chart-indexer follow` that purges a CDN (docs/operations/cdn.md).
//!
//! Purges follow the change feed, at least once, those of removals before all others. A replica may respond
//! with the earlier state for a few seconds after a change has its number, and the CDN may keep that response,
//! so each tag is purged again twice. The position that is stored is behind these.

mod purger;
mod queue;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use chart_index_domain::Position;
use chart_index_instrumentation::metrics;
use chart_index_store::Store;
use chart_index_telemetry::print;
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::Level;

use self::queue::PurgeQueue;
use crate::backoff::{PURGE, Pauses};
use crate::metrics::BacklogGauges;

pub(crate) use self::purger::{PurgeArguments, Purger};

/// Maximum time between two reads of the change feed, also while tags are purged.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// Follows the change feed, and purges what has changed. Never returns.
pub(crate) async fn follow(store: Store, purger: Purger, mut numbers: watch::Receiver<u64>) -> Infallible {
    let mut pauses = Pauses::new(PURGE);
    let stored = loop {
        match store.purge_position().await {
            Ok(position) => break position,
            Err(error) => pause(&mut pauses, &error.into()).await,
        }
    };
    pauses.reset();
    let mut follower = Follower::new(store, purger, stored);
    loop {
        match follower.step().await {
            Ok(()) => {
                pauses.reset();
                follower.wait(&mut numbers).await;
            }
            Err(error) => pause(&mut pauses, &error).await,
        }
    }
}

async fn pause(pauses: &mut Pauses, error: &anyhow::Error) {
    print(Level::WARN, format_args!("purge: {error:#}"));
    tokio::time::sleep(pauses.next()).await;
}

struct Follower {
    store: Store,
    purger: Purger,
    queue: PurgeQueue,
    /// The position in the database.
    stored: Option<Position>,
    /// When the feed is read next, unless it has changed.
    next_read: Instant,
    /// The first of the steps that have failed since one succeeded.
    failing_since: Option<Instant>,
    backlog: Arc<BacklogGauges>,
}

impl Follower {
    fn new(store: Store, purger: Purger, stored: Option<Position>) -> Self {
        Self {
            queue: PurgeQueue::new(purger.max_tags(), stored),
            store,
            purger,
            stored,
            next_read: Instant::now(),
            failing_since: None,
            backlog: BacklogGauges::of_purges(metrics()),
        }
    }

    /// Reads the feed and sends the next requests. Each is done even if the other fails: purges do not wait for
    /// PostgreSQL.
    async fn step(&mut self) -> Result<()> {
        let started = Instant::now();
        let read = self.read_changes(started).await;
        self.set_backlog();
        let purged = self.send_requests().await;
        let stored = if read.is_ok() { self.store_position().await } else { Ok(()) };
        let outcome = read.and(purged).and(stored);
        self.failing_since = if outcome.is_ok() { None } else { self.failing_since.or(Some(started)) };
        self.set_backlog();
        outcome
    }

    async fn read_changes(&mut self, now: Instant) -> Result<()> {
        if now < self.next_read {
            return Ok(());
        }
        let poll = self.store.poll_catalogue(self.queue.last_sequence()).await?;
        self.queue.add(&poll, Instant::now());
        self.next_read = now + MAX_PAUSE;
        Ok(())
    }

    async fn send_requests(&mut self) -> Result<()> {
        let now = Instant::now();
        let requests = self.queue.due(now);
        let outcomes = join_all(requests.iter().map(|(_, tags)| self.purger.purge(tags))).await;
        let mut purged = Ok(());
        for ((key, tags), outcome) in requests.into_iter().zip(outcomes) {
            let label = if outcome.is_ok() { "success" } else { "error" };
            metrics().chart_index_purge_tags_total.with([label]).inc_by(tags.len() as u64);
            match outcome {
                Ok(()) => self.queue.purged(key, now),
                Err(error) => purged = Err(error),
            }
        }
        purged
    }

    async fn store_position(&mut self) -> Result<()> {
        let done = self.queue.done();
        if let Some(position) = done
            && done != self.stored
        {
            self.store.set_purge_position(position).await?;
            self.stored = done;
        }
        Ok(())
    }

    /// Waits until a request is due, or the feed is to be read.
    async fn wait(&mut self, numbers: &mut watch::Receiver<u64>) {
        let until = self.queue.next_due().map_or(self.next_read, |due| due.min(self.next_read));
        if let Ok(Ok(())) = tokio::time::timeout_at(until, numbers.changed()).await {
            self.next_read = Instant::now();
        }
    }

    fn set_backlog(&self) {
        let now = Instant::now();
        let mut backlog = self.queue.backlog(now);
        backlog.oldest_age = backlog.oldest_age.max(self.failing_since.map(|since| now - since));
        self.backlog.set(Some(backlog));
    }
}
