//! The window in Redis: one script, one key.

use std::num::NonZeroU32;
use std::time::Duration;

use redis::{Cmd, FromRedisValue, Script, Value};

use crate::{ClientAddress, Decision, Group};

/// The script of the window, and the names of its keys.
///
/// # The clock
///
/// The only clock is that of the Redis server which holds the key. No replica sends a time, so it does not matter
/// what a replica believes the time to be.
///
/// # The value
///
/// A string of the admission times that still count, 5 bytes each, read and written whole. There are never more than
/// `limit` of them, so the cost of a call is bounded by the limit and does not depend on the traffic. It expires with
/// its newest admission.
///
/// `benches/window_designs.rs` compares it with lists, a ring and two counters; the numbers are in `benches/runs`.
/// At the default limit of 240, an address with one admission takes 72 bytes, one with ten 120, and one at its limit
/// 1,336; a list takes 168, 248 and 2,696. For a new address the script takes 7.7 microseconds of Redis, with a list
/// 8.5; while it fills the window 11.1 against 9.4; at its limit 16.4 against 12.9. Most addresses are new or send
/// little, and one beyond its limit is answered from memory: so memory decides. The string is also the only one that
/// always knows how many requests remain without a command for each one that left, that mends itself when it is
/// damaged, and that makes a single write, so a single entry in the log of a replica.
///
/// With a limit in the thousands a list or a ring would be better: at 1,000 a full string takes 39 microseconds.
///
/// # The key
///
/// One for each group and address: `rl1:` (the version of the format), a letter for the group, the address. One
/// script call names one key, so that a cluster needs no hash tag and spreads the addresses over its nodes.
#[derive(Debug)]
pub(crate) struct WindowScript {
    script: Script,
    key_prefix: String,
    window: Duration,
}

impl WindowScript {
    const CODE: &str = include_str!("window.lua");

    pub(crate) fn new(key_prefix: String, window: Duration) -> Self {
        Self { script: Script::new(Self::CODE), key_prefix, window }
    }

    /// The call by the digest of the script, which Redis knows unless it has been restarted or flushed.
    pub(crate) fn call(&self, group: Group, address: ClientAddress, limit: NonZeroU32) -> Cmd {
        self.command("EVALSHA", self.script.get_hash(), group, address, limit)
    }

    /// The call with the script itself, which Redis then knows.
    pub(crate) fn call_with_code(&self, group: Group, address: ClientAddress, limit: NonZeroU32) -> Cmd {
        self.command("EVAL", Self::CODE, group, address, limit)
    }

    fn command(
        &self,
        name: &str,
        script: &str,
        group: Group,
        address: ClientAddress,
        limit: NonZeroU32,
    ) -> Cmd {
        let mut key = Vec::with_capacity(self.key_prefix.len() + 18);
        key.extend_from_slice(self.key_prefix.as_bytes());
        key.extend_from_slice(match group {
            Group::Lookup => b"l:",
            Group::Rox => b"r:",
            Group::List => b"s:",
            Group::Detail => b"d:",
        });
        address.write_key(&mut key);
        let window_us = u64::try_from(self.window.as_micros()).unwrap_or(u64::MAX);
        let mut command = Cmd::with_capacity(6, name.len() + script.len() + key.len() + 24);
        command.arg(name).arg(script).arg(1).arg(key).arg(limit.get()).arg(window_us);
        command
    }

    /// What the script answered; `None` for anything else.
    pub(crate) fn decision(&self, limit: NonZeroU32, answer: &Value) -> Option<Decision> {
        let (admitted, remaining, wait_us) = <(u8, u32, u64)>::from_redis_value_ref(answer).ok()?;
        let wait = Duration::from_micros(wait_us).min(self.window);
        Some(match admitted {
            0 => Decision::Refused { limit, retry_after: wait },
            _ => Decision::Admitted { limit, remaining, reset_after: wait },
        })
    }
}
