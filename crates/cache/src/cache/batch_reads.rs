//! Reads of many responses at once: memory, then one command to Redis, then one fill for the rest.

use std::pin::pin;
use std::sync::Arc;

use chart_index_domain::ReadError;

use crate::freshness::{Freshness, Timestamps};
use crate::metrics::{FillOutcome, Read};
use crate::redis_writes::{MAX_QUEUED_OF_BATCHES, QueuedWrite};
use crate::{Cache, CacheKey, CachedResponse, FillError};

impl Cache {
    /// Returns the responses of many keys of one kind, in the order of the keys.
    ///
    /// Keys that are not fresh in memory are read from Redis with one command, and what Redis does not have by
    /// one call of `fill`, which gets the positions of these keys and returns their responses in this order.
    /// They fill the same entries as [`get`](Self::get).
    ///
    /// A batch does not share fills with other requests. It has a concurrency limit of its own, and it stops
    /// when this future is dropped.
    ///
    /// # Errors
    ///
    /// The fill failed, took too long, or had to wait too long, and for one of the keys no older response is
    /// cached.
    pub async fn get_many<F, Fut>(
        self: &Arc<Self>,
        keys: &[CacheKey],
        fill: F,
    ) -> Result<Vec<CachedResponse>, FillError>
    where
        F: FnOnce(Vec<usize>) -> Fut,
        Fut: Future<Output = Result<Vec<CachedResponse>, ReadError>>,
    {
        let mut responses: Vec<_> = keys.iter().map(|key| self.get_fresh(key)).collect();
        let not_in_memory = positions_of_none(&responses);
        self.find_in_redis(keys, &not_in_memory, &mut responses).await;
        let missing = positions_of_none(&responses);
        self.fill_missing(keys, &missing, fill, &mut responses).await?;
        Ok(responses.into_iter().flatten().collect())
    }

    /// The entry in memory if it is fresh. A stale one is read again with the others, since that costs the
    /// batch little.
    fn get_fresh(&self, key: &CacheKey) -> Option<CachedResponse> {
        let fresh = self.get_any(key).filter(|(_, freshness)| *freshness == Freshness::Fresh);
        self.metrics.count(key.kind(), if fresh.is_some() { Read::MemoryHit } else { Read::MemoryMiss });
        fresh.map(|(response, _)| response)
    }

    /// Reads the keys at these positions from Redis.
    async fn find_in_redis(
        &self,
        keys: &[CacheKey],
        positions: &[usize],
        responses: &mut [Option<CachedResponse>],
    ) {
        let wanted: Vec<_> = positions.iter().map(|&position| keys[position]).collect();
        let Some(first) = wanted.first() else { return };
        if !self.redis.connection(first.kind()).is_configured() {
            return;
        }
        let records = self.redis.get_many(&wanted).await;
        for ((&position, key), record) in positions.iter().zip(wanted).zip(records) {
            let inserted = self.insert_record(key, record);
            let fresh = inserted.filter(|(_, freshness)| *freshness == Freshness::Fresh);
            responses[position] = fresh.map(|(response, _)| response);
        }
    }

    /// Reads the keys at these positions from the store, and caches the responses.
    async fn fill_missing<F, Fut>(
        self: &Arc<Self>,
        keys: &[CacheKey],
        positions: &[usize],
        fill: F,
        responses: &mut [Option<CachedResponse>],
    ) -> Result<(), FillError>
    where
        F: FnOnce(Vec<usize>) -> Fut,
        Fut: Future<Output = Result<Vec<CachedResponse>, ReadError>>,
    {
        let wanted: Vec<_> = positions.iter().map(|&position| keys[position]).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let mut read = pin!(self.run_batch(&wanted, || fill(positions.to_vec())));
        let read = match tokio::time::timeout(self.fallback_timeout, &mut read).await {
            Ok(read) => read,
            // This ends the read: while polls succeed, a slow one is worth waiting for.
            Err(_)
                if !self.rules.changes.is_confirmed(self.clock.now())
                    && self.fallbacks(&wanted).is_some() =>
            {
                Err(FillError::TimedOut)
            }
            Err(_) => read.await,
        };
        match read {
            Ok((read, start)) => {
                for (&position, response) in positions.iter().zip(&read) {
                    responses[position] = Some(response.clone());
                }
                self.insert_many(&wanted, read, start);
                Ok(())
            }
            Err(error) => self.fall_back(&wanted, positions, responses, error),
        }
    }

    /// Runs a fill once there is a permit, and measures it. Also returns what was known when it began.
    async fn run_batch<Fut>(
        &self,
        keys: &[CacheKey],
        fill: impl FnOnce() -> Fut,
    ) -> Result<(Vec<CachedResponse>, Timestamps), FillError>
    where
        Fut: Future<Output = Result<Vec<CachedResponse>, ReadError>>,
    {
        let Some(_permit) = self.limits.acquire_batch_fill().await else {
            self.metrics.shed.add(1);
            return Err(FillError::Overloaded);
        };
        let start = self.start_read();
        let mut timer = self.metrics.start_fill(keys[0].kind());
        // Also if the batch stops waiting.
        timer.outcome = FillOutcome::Timeout;
        let read = tokio::time::timeout(self.fill_timeout, fill()).await.map_err(|_| FillError::TimedOut)?;
        timer.outcome = FillOutcome::Error;
        let read = read.map_err(|error| FillError::Failed(Arc::new(error)))?;
        if read.len() != keys.len() {
            return Err(FillError::Abandoned);
        }
        timer.outcome = FillOutcome::Found;
        Ok((read, start))
    }

    /// Takes older responses instead of those that could not be read. An error unless there is one for each
    /// key.
    fn fall_back(
        &self,
        keys: &[CacheKey],
        positions: &[usize],
        responses: &mut [Option<CachedResponse>],
        error: FillError,
    ) -> Result<(), FillError> {
        let older = self.fallbacks(keys);
        let read = if older.is_some() { Read::Older } else { Read::Error };
        for key in keys {
            self.metrics.count(key.kind(), read);
        }
        for (&position, response) in positions.iter().zip(older.ok_or(error)?) {
            responses[position] = Some(response);
        }
        Ok(())
    }

    /// The older responses of these keys; `None` unless there is one for each.
    fn fallbacks(&self, keys: &[CacheKey]) -> Option<Vec<CachedResponse>> {
        keys.iter().map(|key| self.fallback(key)).collect()
    }

    /// Caches responses that were read from the store: in memory, and in Redis in the background.
    fn insert_many(
        self: &Arc<Self>,
        keys: &[CacheKey],
        responses: Vec<CachedResponse>,
        timestamps: Timestamps,
    ) {
        let mut writes = Vec::with_capacity(keys.len());
        for (&key, response) in keys.iter().zip(responses) {
            self.metrics.count(key.kind(), Read::Filled);
            let response = self.memory.reuse(&key, response);
            let mut shard = self.fills.shard(&key);
            if self.insert_read(&mut shard, key, response.clone(), timestamps) {
                writes.push(QueuedWrite { key, response, timestamps });
            }
        }
        self.write_to_redis(writes, MAX_QUEUED_OF_BATCHES);
    }
}

fn positions_of_none(responses: &[Option<CachedResponse>]) -> Vec<usize> {
    responses.iter().enumerate().filter(|(_, response)| response.is_none()).map(|(index, _)| index).collect()
}
