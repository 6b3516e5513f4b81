//! The second tier: Redis, shared by all replicas.

use std::sync::Arc;
use std::time::Duration;

use chart_index_redis::{ConnectionState, RedisConnection};
use redis::{Cmd, Value, cmd};
use tokio::time::Instant;

use crate::redis_memory::RedisMemory;
use crate::redis_record::Record;
use crate::redis_writes::WriteQueue;
use crate::{CacheConnections, CacheKey, Kind};

/// How long a write may take. No request waits for it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Reads and writes records.
pub(crate) struct RedisTier {
    connections: CacheConnections,
    memory: Arc<RedisMemory>,
    pub(crate) writes: Arc<WriteQueue>,
}

impl RedisTier {
    pub(crate) fn new(connections: CacheConnections) -> Self {
        let memory = RedisMemory::watch(&connections.main);
        Self { connections, memory, writes: Arc::default() }
    }

    /// The connection for single reads of this kind.
    pub(crate) const fn connection(&self, kind: Kind) -> &RedisConnection {
        if kind.is_file() { &self.connections.rox } else { &self.connections.main }
    }

    /// Whether responses use all memory that they may.
    pub(crate) fn is_full(&self) -> bool {
        self.memory.is_full()
    }

    /// Whether commands would fail now.
    pub(crate) fn is_unavailable(&self) -> bool {
        self.connections.main.state() == ConnectionState::Unavailable
    }

    /// Reads a record. Any reply but an intact one is a miss.
    pub(crate) async fn get(&self, key: &CacheKey) -> Option<Record> {
        let connection = self.connection(key.kind());
        if !connection.is_configured() {
            return None;
        }
        let redis_key = key.redis_key();
        let mut command = cmd("GET");
        command.arg(&redis_key);
        match connection.run(&command, connection.deadline()).await {
            Ok(Value::BulkString(value)) => Record::decode(key, &redis_key, &value),
            Ok(_) | Err(_) => None,
        }
    }

    /// Reads many records in one round trip. Any reply but an intact record is a miss.
    pub(crate) async fn get_many(&self, keys: &[CacheKey]) -> Vec<Option<Record>> {
        let redis_keys: Vec<_> = keys.iter().map(CacheKey::redis_key).collect();
        let mut values = self.values_of(&redis_keys).await.into_iter();
        let decode = |(key, redis_key): (&CacheKey, &String)| match values.next() {
            Some(Value::BulkString(value)) => Record::decode(key, redis_key, &value),
            Some(_) | None => None,
        };
        keys.iter().zip(&redis_keys).map(decode).collect()
    }

    async fn values_of(&self, redis_keys: &[String]) -> Vec<Value> {
        if redis_keys.is_empty() || self.is_unavailable() {
            return Vec::new();
        }
        let CacheConnections { main, pool, .. } = &self.connections;
        if main.is_cluster() {
            // The keys are in different slots.
            let commands: Vec<_> = redis_keys.iter().map(|key| cmd("GET").arg(key).take()).collect();
            let replies = pool.run_all(&commands, main.deadline()).await;
            return replies.into_iter().map(|reply| reply.unwrap_or(Value::Nil)).collect();
        }
        match pool.run_all(&[cmd("MGET").arg(redis_keys).take()], main.deadline()).await.pop() {
            Some(Ok(Value::Array(values))) => values,
            Some(Ok(_) | Err(_)) | None => Vec::new(),
        }
    }

    /// Writes records, and returns how many it dropped, since there is no memory for them. Errors are ignored:
    /// they cost a later request some time.
    pub(crate) async fn write(&self, records: &[NewRecord]) -> usize {
        let commands: Vec<_> = records.iter().filter_map(|record| self.set(record)).collect();
        if !commands.is_empty() {
            let _ = self.connections.pool.run_all(&commands, Instant::now() + WRITE_TIMEOUT).await;
        }
        records.len() - commands.len()
    }

    fn set(&self, NewRecord { key, record, ttl }: &NewRecord) -> Option<Cmd> {
        let redis_key = key.redis_key();
        let value = record.encode(key, &redis_key).filter(|value| self.memory.take(&redis_key, value))?;
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1);
        let mut command = cmd("SET");
        command.arg(redis_key).arg(value).arg("PX").arg(ttl_ms);
        Some(command)
    }
}

pub(crate) struct NewRecord {
    pub(crate) key: CacheKey,
    pub(crate) record: Record,
    /// When Redis drops it.
    pub(crate) ttl: Duration,
}
