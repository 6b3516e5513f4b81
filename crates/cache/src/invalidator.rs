//! Invalidates responses in Redis and on all replicas.

use std::time::Duration;

use backon::{ConstantBuilder, Retryable as _};
use chart_index_redis::{CommandError, RedisConfig, RedisPool, ReplicatedWrite, Replication};
use redis::{Cmd, RedisError, Value, cmd};
use tokio::time::{Instant, sleep};

use crate::redis_tier::{INVALIDATION_MARKER, MARKER_TTL_MS};
use crate::{CacheKey, invalidation_message};

/// Invalidates responses in Redis, and in the memory of every replica that listens.
///
/// Call it *after* the change is committed in the store.
#[derive(Debug, Clone)]
pub struct Invalidator {
    pool: RedisPool,
    key_prefix: String,
}

/// Responses could not be invalidated.
#[derive(Debug, thiserror::Error)]
#[error("invalidate cached responses")]
pub struct InvalidationError(#[source] CommandError);

/// The maximum number of keys in a batch.
const BATCH: usize = 256;
const BATCH_TIMEOUT: Duration = Duration::from_secs(1);
const RETRY_DELAY: Duration = Duration::from_millis(100);
const BACKOFF: ConstantBuilder = ConstantBuilder::new().with_delay(RETRY_DELAY).without_max_times();
/// How long the replicas of Redis may take to confirm a batch: they lag by milliseconds, or are disconnected.
/// Below the 500 ms that the Redis client waits for any reply.
const REPLICATION_TIMEOUT: Duration = Duration::from_millis(300);
/// When an invalidation is repeated: by then, a subscriber that lost its connection has reconnected.
const REPEAT_AFTER: Duration = Duration::from_secs(1);

impl Invalidator {
    /// An invalidator for the caches with this [key prefix](crate::CacheConfig::KEY_PREFIX). Without an
    /// endpoint it does nothing.
    ///
    /// # Errors
    ///
    /// The endpoint is invalid.
    pub fn new(config: &RedisConfig, key_prefix: impl Into<String>) -> Result<Self, RedisError> {
        Ok(Self { pool: RedisPool::new(config, BATCH_TIMEOUT)?, key_prefix: key_prefix.into() })
    }

    /// Invalidates the responses of these keys. Retries until the timeout is over. Invalidating twice does no
    /// harm.
    ///
    /// # Errors
    ///
    /// Redis was unavailable until the timeout. Replicas still serve no older response for longer than five
    /// seconds, since they receive no messages either. But the older responses in Redis must be invalidated
    /// before it is available again, so the caller should try again.
    pub async fn invalidate(&self, keys: &[CacheKey], timeout: Duration) -> Result<(), InvalidationError> {
        if self.pool.is_configured() {
            let deadline = Instant::now() + timeout;
            for batch in keys.chunks(BATCH) {
                retry_until(deadline, || self.invalidate_once(batch)).await?;
            }
        }
        Ok(())
    }

    /// Invalidates the responses of these keys so that a failover of Redis does not undo it: waits for the
    /// replicas of Redis, and repeats everything after a second, for subscribers that were reconnecting.
    ///
    /// Returns how many replicas of Redis confirmed the second time; `None` if Redis does not report it. If a
    /// failover comes before one has confirmed, Redis may hold an older response until it is read again.
    ///
    /// # Errors
    ///
    /// As for [`invalidate`](Self::invalidate).
    pub async fn invalidate_and_confirm(
        &self,
        keys: &[CacheKey],
        timeout: Duration,
    ) -> Result<Option<Replication>, InvalidationError> {
        if !self.pool.is_configured() || keys.is_empty() {
            return Ok(Some(Replication::default()));
        }
        self.invalidate(keys, timeout).await?;
        sleep(REPEAT_AFTER).await;
        let deadline = Instant::now() + timeout;
        let mut batches = Vec::new();
        for batch in keys.chunks(BATCH) {
            batches.push(retry_until(deadline, || self.invalidate_replicated(batch)).await?);
        }
        let batches: Result<Vec<_>, _> = batches.into_iter().collect();
        let least_confirmed = |batches: Vec<Replication>| {
            batches.into_iter().max_by_key(|batch| batch.replicas - batch.confirmed)
        };
        Ok(batches.ok().and_then(least_confirmed))
    }

    /// First in Redis, then on the replicas: one that reads again at once must not find the older response in
    /// Redis.
    async fn invalidate_once(&self, keys: &[CacheKey]) -> Result<(), CommandError> {
        let replies = self.pool.run_all(&self.set_markers(keys)).await?;
        self.delete_unmarked(keys, replies).await?;
        self.publish(keys).await
    }

    /// Like [`invalidate_once`](Self::invalidate_once), with the number of replicas of Redis that confirmed.
    /// The inner error means that Redis does not report it.
    async fn invalidate_replicated(
        &self,
        keys: &[CacheKey],
    ) -> Result<Result<Replication, CommandError>, CommandError> {
        let ReplicatedWrite { replies, replication } =
            self.pool.run_replicated(&self.set_markers(keys), REPLICATION_TIMEOUT).await?;
        self.delete_unmarked(keys, replies).await?;
        self.publish(keys).await?;
        Ok(replication)
    }

    fn set_markers(&self, keys: &[CacheKey]) -> Vec<Cmd> {
        let set_marker = |key: &CacheKey| {
            let mut set = cmd("SET");
            set.arg(key.redis_key(&self.key_prefix)).arg(INVALIDATION_MARKER).arg("PX").arg(MARKER_TTL_MS);
            set
        };
        keys.iter().map(set_marker).collect()
    }

    /// Deletes the keys that got no marker. A Redis that has reached its memory limit refuses `SET` but not
    /// `DEL`, and so refuses the older response as well.
    async fn delete_unmarked(
        &self,
        keys: &[CacheKey],
        replies: Vec<Result<Value, CommandError>>,
    ) -> Result<(), CommandError> {
        let unmarked = keys.iter().zip(replies).filter(|(_, reply)| reply.is_err());
        let deletes = unmarked.map(|(key, _)| {
            let mut delete = cmd("DEL");
            delete.arg(key.redis_key(&self.key_prefix));
            delete
        });
        self.run_all(deletes.collect()).await
    }

    async fn publish(&self, keys: &[CacheKey]) -> Result<(), CommandError> {
        let mut publish = cmd("PUBLISH");
        publish.arg(invalidation_message::channel(&self.key_prefix)).arg(invalidation_message::encode(keys));
        self.run_all(vec![publish]).await
    }

    /// Sends commands, and fails if one of them does.
    async fn run_all(&self, commands: Vec<Cmd>) -> Result<(), CommandError> {
        if !commands.is_empty() {
            for reply in self.pool.run_all(&commands).await? {
                reply?;
            }
        }
        Ok(())
    }
}

/// Repeats an attempt until it succeeds or the deadline has passed.
async fn retry_until<Output, Attempt>(
    deadline: Instant,
    attempt: impl Fn() -> Attempt,
) -> Result<Output, InvalidationError>
where
    Attempt: Future<Output = Result<Output, CommandError>>,
{
    let outcome = attempt.retry(BACKOFF).sleep(sleep).when(|_| Instant::now() + RETRY_DELAY < deadline);
    outcome.await.map_err(InvalidationError)
}
