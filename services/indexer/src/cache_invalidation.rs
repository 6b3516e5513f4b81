//! Invalidates cached responses of charts that changed, in Redis and on all replicas. Always after the commit.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use chart_index_cache::{CacheConfig, CacheKey, InvalidationError, Invalidator};
use chart_index_domain::NoteHash;
use chart_index_redis::{RedisArguments, RedisConfig, Replication};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How long an invalidation is retried while Redis is unavailable: as long as a failover takes.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of song folders that are invalidated together.
const BATCH: usize = 64;

const NOT_INVALIDATED: &str = "the change is stored, but the cache in Redis could not be invalidated: replicas may \
                               serve outdated responses for up to an hour; run a removal or restore again to \
                               invalidate them, but not an ingest, which finds everything unchanged";
const NOT_CONFIRMED: &str = "if Redis fails over now, replicas may serve outdated responses for up to an hour; \
                             run the command again when all replicas of Redis are connected";

/// Invalidates the cached responses of charts.
#[derive(Debug, Clone)]
pub(crate) struct CacheInvalidator(Invalidator);

impl CacheInvalidator {
    /// An invalidator for this Redis. Without a Redis endpoint it does nothing.
    ///
    /// # Errors
    /// The configuration of Redis is invalid.
    pub(crate) fn new(redis: &RedisArguments) -> Result<Self> {
        let config = RedisConfig::new(redis.endpoint());
        let invalidator = Invalidator::new(&config, CacheConfig::KEY_PREFIX);
        Ok(Self(invalidator.context("invalid REDIS_URL or REDIS_CLUSTER_URLS")?))
    }

    /// Invalidates the responses of these charts.
    ///
    /// # Errors
    /// Redis was unavailable for 10 s. The change is stored nevertheless.
    pub(crate) async fn invalidate(&self, charts: &[NoteHash]) -> Result<()> {
        self.try_invalidate(charts, TIMEOUT).await.context(NOT_INVALIDATED)
    }

    /// Invalidates the responses of these charts so that a failover of Redis does not undo it, see
    /// [`Invalidator::invalidate_and_confirm`]. Prints a warning if not all replicas of Redis confirmed.
    ///
    /// # Errors
    /// See [`CacheInvalidator::invalidate`].
    pub(crate) async fn invalidate_and_confirm(&self, charts: &[NoteHash]) -> Result<()> {
        let replication =
            self.0.invalidate_and_confirm(&keys(charts), TIMEOUT).await.context(NOT_INVALIDATED)?;
        let warning = match replication {
            Some(replication) if replication.is_complete() => return Ok(()),
            Some(Replication { replicas, confirmed }) => {
                format!("{confirmed} of {replicas} replicas of Redis confirmed the change in time")
            }
            None => "Redis does not report whether its replicas confirmed the change".to_owned(),
        };
        writeln!(std::io::stderr(), "chart-indexer: warning: {warning}; {NOT_CONFIRMED}")?;
        Ok(())
    }

    async fn try_invalidate(&self, charts: &[NoteHash], timeout: Duration) -> Result<(), InvalidationError> {
        self.0.invalidate(&keys(charts), timeout).await
    }

    /// Invalidates the previews of these charts.
    ///
    /// # Errors
    /// See [`CacheInvalidator::invalidate`].
    pub(crate) async fn invalidate_previews(&self, charts: &[NoteHash]) -> Result<()> {
        self.0.invalidate(&preview_keys(charts), TIMEOUT).await.context(NOT_INVALIDATED)
    }

    /// Invalidates the previews of these charts without retries. Returns whether it succeeded.
    pub(crate) async fn try_invalidate_previews(&self, charts: &[NoteHash]) -> bool {
        self.0.invalidate(&preview_keys(charts), Duration::ZERO).await.is_ok()
    }

    /// Starts a task that invalidates the charts that an ingest changes, so that the ingest does not wait for
    /// Redis. Charts that could not be invalidated are retried with the next ones, and at the end.
    pub(crate) fn start_background_task(self) -> BackgroundInvalidation {
        let (sender, changed) = mpsc::unbounded_channel();
        BackgroundInvalidation { sender, task: tokio::spawn(invalidate_all(self, changed)) }
    }
}

fn keys(charts: &[NoteHash]) -> Vec<CacheKey> {
    charts.iter().flat_map(|hash| CacheKey::all_of_chart(*hash)).collect()
}

fn preview_keys(charts: &[NoteHash]) -> Vec<CacheKey> {
    charts.iter().map(|hash| CacheKey::preview(*hash)).collect()
}

/// The task that invalidates the charts that an ingest changes.
#[derive(Debug)]
pub(crate) struct BackgroundInvalidation {
    sender: mpsc::UnboundedSender<Vec<NoteHash>>,
    task: JoinHandle<Result<()>>,
}

impl BackgroundInvalidation {
    /// The channel for charts that changed.
    pub(crate) fn sender(&self) -> mpsc::UnboundedSender<Vec<NoteHash>> {
        self.sender.clone()
    }

    /// Waits until everything is invalidated. All other senders must have been dropped.
    ///
    /// # Errors
    /// See [`CacheInvalidator::invalidate`].
    pub(crate) async fn finish(self) -> Result<()> {
        drop(self.sender);
        self.task.await?
    }
}

async fn invalidate_all(
    invalidator: CacheInvalidator,
    mut changed: mpsc::UnboundedReceiver<Vec<NoteHash>>,
) -> Result<()> {
    let (mut batch, mut pending) = (Vec::new(), Vec::new());
    while changed.recv_many(&mut batch, BATCH).await > 0 {
        pending.extend(batch.drain(..).flatten());
        // Zero: one attempt per batch, without retries, so that changes do not pile up while Redis is
        // unavailable.
        if invalidator.try_invalidate(&pending, Duration::ZERO).await.is_ok() {
            pending.clear();
        }
    }
    invalidator.invalidate(&pending).await
}
