//! Telling Redis and every replica that answers have changed.

use std::time::Duration;

use chart_index_redis::{CommandError, RedisConfig, RedisPool, ReplicatedWrite, Replication};
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
pub struct InvalidationError(#[source] CommandError);

/// How many keys travel together.
const BATCH: usize = 256;
/// How long one batch may take: nobody's request waits for it.
const BATCH_TIMEOUT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(100);
/// How long the replicas of Redis may take to confirm a batch: they are behind by milliseconds, or disconnected. Below
/// the 500 ms that the client of Redis waits for any response.
const REPLICATION_TIMEOUT: Duration = Duration::from_millis(300);
/// When an announcement is repeated: a subscriber that lost its connection has another one by then.
const REPEAT_AFTER: Duration = Duration::from_secs(1);

impl Invalidator {
    /// An invalidator for the caches with this key prefix: [`CacheConfig::KEY_PREFIX`](crate::CacheConfig). Without
    /// an endpoint there is nobody to tell, and nothing to do.
    ///
    /// # Errors
    ///
    /// Where the endpoint cannot be used at all.
    pub fn new(config: &RedisConfig, key_prefix: impl Into<String>) -> Result<Self, RedisError> {
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
        if self.pool.is_configured() {
            let give_up = Instant::now() + patience;
            for batch in keys.chunks(BATCH) {
                until(give_up, || self.invalidate_once(batch)).await?;
            }
        }
        Ok(())
    }

    /// Invalidates these answers so that it outlasts a failover of Redis: the replicas of Redis are waited for, and all
    /// is done once more after a second, for subscribers that were connecting at the time. Tells how many replicas
    /// confirmed the second time; `None` where Redis does not say. What is not confirmed is lost if a failover comes
    /// first: then the older answer may be back in Redis until it is read again.
    ///
    /// # Errors
    ///
    /// As for [`invalidate`](Self::invalidate).
    pub async fn invalidate_and_confirm(
        &self,
        keys: &[CacheKey],
        patience: Duration,
    ) -> Result<Option<Replication>, InvalidationError> {
        if !self.pool.is_configured() || keys.is_empty() {
            return Ok(Some(Replication::default()));
        }
        self.invalidate(keys, patience).await?;
        sleep(REPEAT_AFTER).await;
        let give_up = Instant::now() + patience;
        let mut replications = Vec::new();
        for batch in keys.chunks(BATCH) {
            replications.push(until(give_up, || self.invalidate_replicated(batch)).await?);
        }
        let replications: Result<Vec<_>, _> = replications.into_iter().collect();
        let weakest = |all: Vec<Replication>| all.into_iter().max_by_key(|one| one.replicas - one.confirmed);
        Ok(replications.ok().and_then(weakest))
    }

    /// First Redis, then the replicas: one that reads again at once must not find the old answer there.
    async fn invalidate_once(&self, keys: &[CacheKey]) -> Result<(), CommandError> {
        let answers = self.pool.run_all(&self.marks(keys)).await?;
        self.delete_unmarked(keys, answers).await?;
        self.publish(keys).await
    }

    /// The same, and how many replicas of Redis hold it; the inner error says that Redis does not tell.
    async fn invalidate_replicated(
        &self,
        keys: &[CacheKey],
    ) -> Result<Result<Replication, CommandError>, CommandError> {
        let ReplicatedWrite { replies: answers, replication } =
            self.pool.run_replicated(&self.marks(keys), REPLICATION_TIMEOUT).await?;
        self.delete_unmarked(keys, answers).await?;
        self.publish(keys).await?;
        Ok(replication)
    }

    fn marks(&self, keys: &[CacheKey]) -> Vec<Cmd> {
        let mark = |key: &CacheKey| {
            let mut mark = cmd("SET");
            mark.arg(key.redis_key(&self.key_prefix)).arg(MARK).arg("PX").arg(MARK_LIVES_MS);
            mark
        };
        keys.iter().map(mark).collect()
    }

    /// A Redis that is full takes no mark, but it deletes; and it takes no old answer either.
    async fn delete_unmarked(
        &self,
        keys: &[CacheKey],
        answers: Vec<Result<Value, CommandError>>,
    ) -> Result<(), CommandError> {
        let refused = keys.iter().zip(answers).filter(|(_, answer)| answer.is_err()).map(|(key, _)| {
            let mut delete = cmd("DEL");
            delete.arg(key.redis_key(&self.key_prefix));
            delete
        });
        self.succeed(refused.collect()).await
    }

    async fn publish(&self, keys: &[CacheKey]) -> Result<(), CommandError> {
        let mut publish = cmd("PUBLISH");
        publish.arg(feed::channel(&self.key_prefix)).arg(feed::message(keys));
        self.succeed(vec![publish]).await
    }

    /// Sends commands of which none may fail.
    async fn succeed(&self, commands: Vec<Cmd>) -> Result<(), CommandError> {
        if !commands.is_empty() {
            for answer in self.pool.run_all(&commands).await? {
                answer?;
            }
        }
        Ok(())
    }
}

/// Attempts something until it succeeds or the time is over.
async fn until<Output, Attempt>(
    give_up: Instant,
    attempt: impl Fn() -> Attempt,
) -> Result<Output, InvalidationError>
where
    Attempt: Future<Output = Result<Output, CommandError>>,
{
    loop {
        match attempt().await {
            Ok(output) => return Ok(output),
            Err(error) if Instant::now() + PAUSE >= give_up => return Err(InvalidationError(error)),
            Err(_) => sleep(PAUSE).await,
        }
    }
}
