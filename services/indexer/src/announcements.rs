//! Telling Redis and the replicas which charts answer otherwise from now on. Always after the commit.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use chart_index_cache::{CacheConfig, CacheKey, Invalidator};
use chart_index_domain::NoteHash;
use chart_index_redis::{RedisArguments, RedisConfig, Replication};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How long the last attempt goes on while Redis is away: as long as a failover takes.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many song folders are announced together, at most.
const BATCH: usize = 64;

const NOT_ANNOUNCED: &str = "stored, but Redis could not be told: replicas may give older answers for ten minutes; \
                             a removal or a restoration can be run again";
const NOT_CONFIRMED: &str = "if Redis fails over now, replicas may give the older answer for ten minutes; \
                             run the command again once its replicas are connected";

/// The way to Redis of this program.
#[derive(Debug, Clone)]
pub(crate) struct Announcer(Invalidator);

impl Announcer {
    /// An announcer to this Redis; without one, nobody is told.
    ///
    /// # Errors
    /// Redis cannot be used as it is configured.
    pub(crate) fn new(redis: &RedisArguments) -> Result<Self> {
        let config = RedisConfig::new(redis.endpoint());
        let invalidator = Invalidator::new(&config, CacheConfig::KEY_PREFIX);
        Ok(Self(invalidator.context("REDIS_URL or REDIS_CLUSTER_URLS cannot be used")?))
    }

    /// Announces these charts.
    ///
    /// # Errors
    /// Redis was away for all of ten seconds. The change is stored all the same.
    pub(crate) async fn announce(&self, charts: &[NoteHash]) -> Result<()> {
        self.announce_within(charts, PATIENCE).await.context(NOT_ANNOUNCED)
    }

    /// Announces these charts so that it outlasts a failover of Redis, see [`Invalidator::invalidate_and_confirm`], and
    /// warns on standard error where not every replica of Redis confirmed.
    ///
    /// # Errors
    /// As for [`Announcer::announce`].
    pub(crate) async fn announce_and_confirm(&self, charts: &[NoteHash]) -> Result<()> {
        let replication =
            self.0.invalidate_and_confirm(&keys(charts), PATIENCE).await.context(NOT_ANNOUNCED)?;
        let warning = match replication {
            Some(replication) if replication.is_complete() => return Ok(()),
            Some(Replication { replicas, confirmed }) => {
                format!("{confirmed} of {replicas} replicas of Redis confirmed the change in time")
            }
            None => "Redis does not report how many of its replicas confirmed the change".to_owned(),
        };
        writeln!(std::io::stderr(), "chart-indexer: warning: {warning}; {NOT_CONFIRMED}")?;
        Ok(())
    }

    async fn announce_within(
        &self,
        charts: &[NoteHash],
        patience: Duration,
    ) -> Result<(), chart_index_cache::InvalidationError> {
        self.0.invalidate(&keys(charts), patience).await
    }

    /// Announces what an ingest stores, behind it: what it hands over is announced at once, many folders at a time,
    /// and nobody waits. What could not be announced is tried again with what follows, and at the end.
    pub(crate) fn behind(self) -> Announcements {
        let (sender, stored) = mpsc::unbounded_channel();
        Announcements { sender, task: tokio::spawn(announce_all(self, stored)) }
    }
}

/// What is cached of these charts.
fn keys(charts: &[NoteHash]) -> Vec<CacheKey> {
    charts.iter().flat_map(|hash| CacheKey::all_of_chart(*hash)).collect()
}

/// The announcements of an ingest.
#[derive(Debug)]
pub(crate) struct Announcements {
    sender: mpsc::UnboundedSender<Vec<NoteHash>>,
    task: JoinHandle<Result<()>>,
}

impl Announcements {
    /// Where charts that were stored are handed over.
    pub(crate) fn sender(&self) -> mpsc::UnboundedSender<Vec<NoteHash>> {
        self.sender.clone()
    }

    /// Waits until everything is announced. Every other sender is to be gone.
    ///
    /// # Errors
    /// Redis was away.
    pub(crate) async fn finish(self) -> Result<()> {
        drop(self.sender);
        self.task.await?
    }
}

async fn announce_all(
    announcer: Announcer,
    mut stored: mpsc::UnboundedReceiver<Vec<NoteHash>>,
) -> Result<()> {
    let (mut folders, mut open) = (Vec::new(), Vec::new());
    while stored.recv_many(&mut folders, BATCH).await > 0 {
        open.extend(folders.drain(..).flatten());
        if announcer.announce_within(&open, Duration::ZERO).await.is_ok() {
            open.clear();
        }
    }
    announcer.announce(&open).await
}
