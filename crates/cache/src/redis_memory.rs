//! How much of the memory of Redis cached responses may use.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use chart_index_redis::{CommandError, RedisConnection};
use redis::{Value, cmd};

/// The part of `maxmemory` that may be in use while responses are written: one half. So, whatever the eviction
/// policy, they neither push out the windows of the rate limiter nor make its writes fail.
const SHARE: u64 = 2;
/// How often Redis is asked for its memory.
const INTERVAL: Duration = Duration::from_secs(1);
/// The part of what is free that one replica may write until it asks again: four may do so at once.
const PART: u64 = 4;
/// What may be written before the first reply.
const INITIAL_BYTES: u64 = 1 << 20;
/// The memory of a key besides its name and its value.
const KEY_BYTES: usize = 100;

/// The bytes that may be written until Redis is asked again.
#[derive(Debug)]
pub(crate) struct RedisMemory(AtomicU64);

impl RedisMemory {
    /// Asks Redis in the background, if one is configured.
    pub(crate) fn watch(connection: &RedisConnection) -> Arc<Self> {
        let this = Arc::new(Self(AtomicU64::new(INITIAL_BYTES)));
        if connection.is_configured() {
            tokio::spawn(watch(Arc::downgrade(&this), connection.clone()));
        }
        this
    }

    pub(crate) fn is_full(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Whether this key may be written with this value.
    pub(crate) fn take(&self, key: &str, value: &[u8]) -> bool {
        let bytes = (key.len() + value.len() + KEY_BYTES) as u64;
        let taken = self.0.try_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(bytes));
        // So that no smaller one is written either, and `is_full` saves the encoding.
        taken.inspect_err(|_| self.0.store(0, Ordering::Relaxed)).is_ok()
    }

    fn update(&self, free_bytes: u64) {
        self.0.store(free_bytes / PART, Ordering::Relaxed);
    }
}

/// The bytes below the share, by the reply to `INFO memory`; without `maxmemory`, any number.
fn free_bytes(reply: &Value) -> Option<u64> {
    let text = match reply {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?,
        Value::VerbatimString { text, .. } => text,
        _ => return None,
    };
    let number = |name| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    match (number("used_memory:")?, number("maxmemory:")?) {
        (_, 0) => Some(u64::MAX),
        (used, max) => Some((max / SHARE).saturating_sub(used)),
    }
}

async fn watch(memory: Weak<RedisMemory>, connection: RedisConnection) {
    let mut is_known = true;
    loop {
        let replies = connection.run_on_each(cmd("INFO").arg("memory"), connection.deadline()).await;
        let Some(memory) = memory.upgrade() else { return };
        // That of the primary with the least, since keys are spread evenly. One that is unavailable takes none.
        let free = replies.iter().filter_map(|reply| match reply {
            Ok(reply) => Some(free_bytes(reply).ok_or(None)),
            Err(error @ CommandError::ErrorReply(_)) => Some(Err(Some(error))),
            Err(_) => None,
        });
        match free.reduce(|a, b| Ok(a?.min(b?))) {
            Some(Ok(free)) => {
                memory.update(free);
                is_known = true;
            }
            Some(Err(error)) => {
                memory.update(0);
                if std::mem::replace(&mut is_known, false) {
                    let error = error.map(|error| error as &dyn Error);
                    tracing::warn!(error, "responses are not cached in redis: INFO has no memory");
                }
            }
            None => {}
        }
        drop(memory);
        tokio::time::sleep(INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(used: u64, max: u64) -> Value {
        Value::BulkString(format!("# Memory\r\nused_memory:{used}\r\nmaxmemory:{max}\r\n").into_bytes())
    }

    #[test]
    fn responses_use_up_to_half_of_the_memory() {
        assert_eq!(free_bytes(&info(30, 100)), Some(20));
        assert_eq!(free_bytes(&info(60, 100)), Some(0));
        assert_eq!(free_bytes(&info(60, 0)), Some(u64::MAX));
        assert_eq!(free_bytes(&Value::Okay), None);
    }

    #[test]
    fn nothing_is_written_above_a_part_of_what_is_free() {
        let memory = RedisMemory(AtomicU64::new(0));
        memory.update(free_bytes(&info(10_000, 100_000)).unwrap());
        assert!(memory.take("key", &[0; 9_000]));
        assert!(!memory.take("key", &[0; 900]));
        assert!(memory.is_full() && !memory.take("key", &[]));
    }
}
