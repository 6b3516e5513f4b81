//! The second tier: Redis, shared by all replicas.

use std::sync::Arc;
use std::time::Duration;

use chart_index_redis::{ConnectionState, RedisConnection};
use futures_util::future::join_all;
use redis::{Script, Value, cmd};

use crate::redis_record::Record;
use crate::redis_writes::WriteQueue;
use crate::{CacheConnections, CacheKey, Kind};

/// Replaces the record of an invalidated key for a while. Reads treat it as a miss, and [`RedisTier::insert`]
/// does not overwrite it, so a response that was read before the change does not come back.
pub(crate) const INVALIDATION_MARKER: &[u8] = b"\x00ci:invalidated";
/// The time to live of the marker.
pub(crate) const MARKER_TTL_MS: u64 = 30_000;
/// An older record is not written: the marker of a change since its read might have expired by now.
const MAX_AGE: Duration = Duration::from_secs(20);

/// Reads and writes records.
pub(crate) struct RedisTier {
    connections: CacheConnections,
    main_writes: Arc<WriteQueue>,
    rox_writes: Arc<WriteQueue>,
    key_prefix: String,
    script: Script,
}

impl RedisTier {
    const INSERT_SCRIPT: &str = include_str!("insert.lua");

    pub(crate) fn new(connections: CacheConnections, key_prefix: String) -> Self {
        let script = Script::new(Self::INSERT_SCRIPT);
        Self { connections, main_writes: Arc::default(), rox_writes: Arc::default(), key_prefix, script }
    }

    pub(crate) const fn connection(&self, kind: Kind) -> &RedisConnection {
        match kind {
            Kind::Rox | Kind::Preview => &self.connections.rox,
            Kind::Lookup | Kind::List | Kind::Detail | Kind::Source | Kind::Page => &self.connections.main,
        }
    }

    /// The queue of the connection for responses of this kind.
    pub(crate) const fn writes(&self, kind: Kind) -> &Arc<WriteQueue> {
        match kind {
            Kind::Rox | Kind::Preview => &self.rox_writes,
            Kind::Lookup | Kind::List | Kind::Detail | Kind::Source | Kind::Page => &self.main_writes,
        }
    }

    /// Whether writes of this kind would fail now.
    pub(crate) fn is_unavailable(&self, kind: Kind) -> bool {
        self.connection(kind).state() == ConnectionState::Unavailable
    }

    pub(crate) async fn get(&self, key: &CacheKey) -> Option<Record> {
        self.get_over(self.connection(key.kind()), key).await
    }

    /// Reads a record over this connection. Any reply but an intact record is a miss.
    pub(crate) async fn get_over(&self, connection: &RedisConnection, key: &CacheKey) -> Option<Record> {
        let redis_key = key.redis_key(&self.key_prefix);
        let mut command = cmd("GET");
        command.arg(&redis_key);
        match connection.run(&command, connection.deadline()).await {
            Ok(Value::BulkString(value)) => Record::decode(key, &redis_key, &value),
            Ok(_) | Err(_) => None,
        }
    }

    /// Reads many records of one kind with one command. Any reply but an intact record is a miss.
    pub(crate) async fn get_many(&self, keys: &[CacheKey]) -> Vec<Option<Record>> {
        let Some(first) = keys.first() else { return Vec::new() };
        let redis_keys: Vec<_> = keys.iter().map(|key| key.redis_key(&self.key_prefix)).collect();
        let mut command = cmd("MGET");
        command.arg(&redis_keys);
        let connection = self.connection(first.kind());
        let values = match connection.run(&command, connection.deadline()).await {
            Ok(Value::Array(values)) => values,
            Ok(_) | Err(_) => Vec::new(),
        };
        let mut values = values.into_iter();
        let decode = |(key, redis_key): (&CacheKey, &String)| match values.next() {
            Some(Value::BulkString(value)) => Record::decode(key, redis_key, &value),
            Some(_) | None => None,
        };
        keys.iter().zip(&redis_keys).map(decode).collect()
    }

    /// Writes records over this connection, except those whose key was invalidated. Errors are ignored: they
    /// cost a later request some time.
    pub(crate) async fn insert(&self, connection: &RedisConnection, records: &[NewRecord]) {
        // The keys of a call must be on one node of a cluster.
        let records_per_call = if connection.is_cluster() { 1 } else { records.len().max(1) };
        let calls = records.chunks(records_per_call);
        join_all(calls.map(|records| self.insert_in_one_call(connection, records))).await;
    }

    async fn insert_in_one_call(&self, connection: &RedisConnection, records: &[NewRecord]) {
        let (mut keys, mut arguments) = (Vec::with_capacity(records.len()), Vec::new());
        for NewRecord { key, record, ttl, .. } in records.iter().filter(|record| record.age < MAX_AGE) {
            let redis_key = key.redis_key(&self.key_prefix);
            let Some(value) = record.encode(key, &redis_key) else { continue };
            let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1);
            keys.push(redis_key);
            arguments.push((value, ttl_ms));
        }
        if keys.is_empty() {
            return;
        }
        let command = |name: &str, script: &str| {
            let mut command = cmd(name);
            command.arg(script).arg(keys.len()).arg(&keys).arg(INVALIDATION_MARKER);
            for (value, ttl_ms) in &arguments {
                command.arg(value).arg(ttl_ms);
            }
            command
        };
        let deadline = connection.deadline();
        let reply = connection.run(&command("EVALSHA", self.script.get_hash()), deadline).await;
        if reply.is_err_and(|error| error.is_unknown_script()) {
            let _ = connection.run(&command("EVAL", Self::INSERT_SCRIPT), deadline).await;
        }
    }
}

pub(crate) struct NewRecord {
    pub(crate) key: CacheKey,
    pub(crate) record: Record,
    /// When Redis drops it.
    pub(crate) ttl: Duration,
    /// The time since its read from the store started.
    pub(crate) age: Duration,
}
