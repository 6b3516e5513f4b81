//! The second tier: Redis, shared by all replicas.

use std::time::Duration;

use chart_index_redis::{CommandError, ConnectionState, RedisConnection};
use redis::{Cmd, ErrorKind, Script, ServerErrorKind, Value, cmd};

use crate::record::Record;
use crate::{CacheConnections, CacheKey, Kind};

/// The mark that takes the place of an invalidated answer for a while. Readers find no record in it, and the script
/// that writes answers leaves it alone: an answer that was read before the change cannot come back.
pub(crate) const MARK: &[u8] = b"\x00ci:invalidated";
/// How long the mark stays.
pub(crate) const MARK_LIVES_MS: u64 = 30_000;
/// A read that took longer than this is not written any more: the mark of a change that it missed might be gone
/// when the answer reaches Redis.
const LONGEST_READ: Duration = Duration::from_secs(20);

/// Reads and writes records.
pub(crate) struct RedisTier {
    connections: CacheConnections,
    key_prefix: String,
    script: Script,
}

impl RedisTier {
    const CODE: &str = include_str!("store.lua");

    pub(crate) fn new(connections: CacheConnections, key_prefix: String) -> Self {
        Self { connections, key_prefix, script: Script::new(Self::CODE) }
    }

    /// The connection for values of this kind. ROX files have one of their own: on the way of the small answers, those
    /// would wait behind them.
    pub(crate) const fn connection(&self, kind: Kind) -> &RedisConnection {
        match kind {
            Kind::Rox => &self.connections.rox,
            Kind::Lookup | Kind::List | Kind::Detail | Kind::Source => &self.connections.main,
        }
    }

    /// Whether there is no use in writing a record of this kind now.
    pub(crate) fn is_away(&self, kind: Kind) -> bool {
        self.connection(kind).state() == ConnectionState::Unavailable
    }

    /// The command that reads a record.
    pub(crate) fn read_command(&self, key: &CacheKey) -> Cmd {
        let mut command = cmd("GET");
        command.arg(key.redis_key(&self.key_prefix));
        command
    }

    /// The record in the answer to that command. Whatever else it is, it is a miss.
    pub(crate) fn record(&self, key: &CacheKey, answer: Result<Value, CommandError>) -> Option<Record> {
        match answer {
            Ok(Value::BulkString(value)) => Record::decode(key, &key.redis_key(&self.key_prefix), &value),
            Ok(_) | Err(_) => None,
        }
    }

    pub(crate) async fn read(&self, key: &CacheKey) -> Option<Record> {
        let connection = self.connection(key.kind());
        let answer = connection.run(&self.read_command(key), connection.deadline()).await;
        self.record(key, answer)
    }

    /// Writes a record, if its key was not invalidated. A failure costs a later reader some time, and nobody waits
    /// for this, so it is not reported.
    pub(crate) async fn write(&self, key: &CacheKey, record: &Record, took: Duration, lives: Duration) {
        let redis_key = key.redis_key(&self.key_prefix);
        let Some(value) = record.encode(key, &redis_key).filter(|_| took < LONGEST_READ) else { return };
        let lives_ms = u64::try_from(lives.as_millis()).unwrap_or(u64::MAX).max(1);
        let command = |name: &str, script: &str| {
            let mut command = cmd(name);
            command.arg(script).arg(1).arg(&redis_key).arg(MARK).arg(&value).arg(lives_ms);
            command
        };
        let connection = self.connection(key.kind());
        let deadline = connection.deadline();
        let written = connection.run(&command("EVALSHA", self.script.get_hash()), deadline).await;
        if matches!(&written, Err(CommandError::ErrorReply(error)) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript))
        {
            let _ = connection.run(&command("EVAL", Self::CODE), deadline).await;
        }
    }
}
