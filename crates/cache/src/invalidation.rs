//! Telling Redis and every replica that answers have changed.

use std::time::Duration;

use chart_index_ratelimit::redis_link::{LinkError, RedisLinkConfig, RedisPool};
use redis::{Cmd, RedisError, Value, cmd};
use tokio::time::{Instant, sleep};

use crate::redis_tier::{MARK, MARK_LIVES_MS};
use crate::{CacheKey, feed};

/// Puts changes in force: in Redis at once, and in the memory of every replica that listens.
///
/// To be used *after* the change is committed in the store, by whoever made it.
#[derive(Debug, Clone)]
pub struct Invalidator {
    pool: RedisPool,
    key_prefix: String,
}

/// The change could not be announced.
#[derive(Debug, thiserror::Error)]
#[error("announce changed answers")]
pub struct InvalidationError(#[source] LinkError);

/// How many keys travel together.
const BATCH: usize = 256;
/// How long one batch may take: nobody's request waits for it.
const BATCH_TIMEOUT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(100);

impl Invalidator {
    /// An invalidator for the caches with this key prefix: [`CacheConfig::KEY_PREFIX`](crate::CacheConfig). Without
    /// an endpoint there is nobody to tell, and nothing to do.
    ///
    /// # Errors
    ///
    /// Where the endpoint cannot be used at all.
    pub fn new(config: &RedisLinkConfig, key_prefix: impl Into<String>) -> Result<Self, RedisError> {
        Ok(Self { pool: RedisPool::new(config, BATCH_TIMEOUT)?, key_prefix: key_prefix.into() })
    }

    /// Invalidates these answers. Attempts that fail are repeated until the patience is over; doing it twice does
    /// no harm.
    ///
    /// # Errors
    ///
    /// When Redis was away for all of that time. Replicas then still hold to the five seconds, since they hear
    /// nothing either; but what Redis holds must be invalidated before it comes back into use, so the caller is to
    /// try again.
    pub async fn invalidate(&self, keys: &[CacheKey], patience: Duration) -> Result<(), InvalidationError> {
        if !self.pool.is_configured() {
            return Ok(());
        }
        let give_up = Instant::now() + patience;
        for batch in keys.chunks(BATCH) {
            while let Err(error) = self.invalidate_once(batch).await {
                if Instant::now() + PAUSE >= give_up {
                    return Err(InvalidationError(error));
                }
                sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    /// First Redis, then the replicas: one that reads again at once must not find the old answer there.
    async fn invalidate_once(&self, keys: &[CacheKey]) -> Result<(), LinkError> {
        let mark = |key: &CacheKey| {
            let mut mark = cmd("SET");
            mark.arg(key.redis_key(&self.key_prefix)).arg(MARK).arg("PX").arg(MARK_LIVES_MS);
            mark
        };
        let answers = self.send(keys.iter().map(mark).collect()).await?;
        let refused = keys.iter().zip(answers).filter(|(_, answer)| answer.is_err()).map(|(key, _)| {
            let mut delete = cmd("DEL");
            delete.arg(key.redis_key(&self.key_prefix));
            delete
        });
        // A Redis that is full takes no mark, but it deletes; and it takes no old answer either.
        for answer in self.send(refused.collect()).await? {
            answer?;
        }
        let mut publish = cmd("PUBLISH");
        publish.arg(feed::channel(&self.key_prefix)).arg(feed::message(keys));
        for answer in self.send(vec![publish]).await? {
            answer?;
        }
        Ok(())
    }

    async fn send(&self, commands: Vec<Cmd>) -> Result<Vec<Result<Value, LinkError>>, LinkError> {
        if commands.is_empty() { Ok(Vec::new()) } else { self.pool.run_all(&commands).await }
    }
}
