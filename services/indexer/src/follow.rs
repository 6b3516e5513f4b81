//! `chart-indexer follow`: applies changes to the search nodes, purges a CDN, builds the hash filter, computes
//! percentiles and replaces withdrawn exports, for as long as it runs.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use chart_index_domain::ReadError;
use chart_index_instrumentation::{Sampler, metrics};
use chart_index_search::{IndexWriter, Lag};
use chart_index_store::Store;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::export::Renewal;
use crate::metrics::{Backlog, BacklogGauges, IngestTimes};
use crate::purge::{self, Purger};
use crate::search::{Follower, NodePosition};
use crate::{filter, percentiles};

/// How often the change feed is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often the gauges and the readiness are set.
const INTERVAL: Duration = Duration::from_secs(5);

/// Follows the catalogue with any number of search nodes. Each is independent, and retried when it fails. The
/// sampler decides which passes have a span. It is ready once every node was reached and has an index. Never
/// returns without an error.
///
/// # Errors
/// A task panicked.
pub(crate) async fn follow(
    store: &Store,
    writers: Vec<IndexWriter>,
    purger: Option<Purger>,
    renewal: Option<Renewal>,
    sampler: Sampler,
    is_ready: Arc<AtomicBool>,
) -> Result<()> {
    let (last_number, numbers) = watch::channel(0);
    let followers = Follower::of_nodes(store, writers, sampler);
    let positions = followers.iter().map(Follower::position).collect();
    let mut tasks = JoinSet::new();
    tasks.spawn(poll(store.clone(), last_number));
    tasks.spawn(filter::follow(store.clone()));
    tasks.spawn(percentiles::follow(store.clone()));
    tasks.spawn(observe(store.clone(), positions, is_ready));
    if let Some(purger) = purger {
        tasks.spawn(purge::follow(store.clone(), purger, numbers.clone()));
    }
    if let Some(renewal) = renewal {
        tasks.spawn(renewal.follow());
    }
    for follower in followers {
        tasks.spawn(follower.follow(numbers.clone()));
    }
    match tasks.join_next().await {
        Some(ended) => match ended? {},
        None => Ok(()),
    }
}

/// Publishes the last number of the change feed. Never returns.
async fn poll(store: Store, last_number: watch::Sender<u64>) -> Infallible {
    loop {
        // The passes, which fail as well, report an outage.
        if let Ok(position) = store.feed_position().await {
            last_number
                .send_if_modified(|last| std::mem::replace(last, position.sequence) != position.sequence);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Sets the readiness, and the gauges of the last ingest and, with nodes, of the changes that these lack. The
/// gauges have no value while PostgreSQL is unavailable: the passes report it, which fail as well.
async fn observe(store: Store, positions: Vec<NodePosition>, is_ready: Arc<AtomicBool>) -> Infallible {
    let nodes = BacklogGauges::of_nodes(metrics());
    let ingests = IngestTimes::new(metrics());
    let mut lags = vec![None; positions.len()];
    loop {
        let are_known = positions.iter().all(|position| position.borrow().is_some());
        is_ready.store(are_known, Ordering::Relaxed);
        ingests.set(store.last_ingest().await.ok().flatten());
        nodes.set(greatest_backlog(&store, &positions, &mut lags).await.unwrap_or_default());
        tokio::time::sleep(INTERVAL).await;
    }
}

/// The changes that the node lacks that lags most; `None` while no position is known. A node that was not
/// reached since the start has no position, and no last success either.
async fn greatest_backlog(
    store: &Store,
    positions: &[NodePosition],
    lags: &mut [Option<Lag>],
) -> Result<Option<Backlog>, ReadError> {
    for (position, lag) in positions.iter().zip(&mut *lags) {
        let position = *position.borrow();
        if let Some(position) = position {
            *lag = Some(Lag::read(store, position, *lag).await?);
        }
    }
    let known = || lags.iter().flatten();
    let changes = known().map(|lag| lag.unapplied.count).max();
    let oldest_age = known().filter(|lag| lag.unapplied.oldest_ms.is_some()).map(Lag::age).max();
    Ok(changes.map(|changes| Backlog { changes, oldest_age }))
}
