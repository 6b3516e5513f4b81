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
/// A string of the admission times that still count, 5 bytes each. Up to 16 stand in a row that is read and written
/// whole. More are a ring behind a header of 13 bytes (the slot of the oldest, how many there are, the oldest time):
/// of it only the header and the slots concerned are read and written, whatever the limit. What left the window is
/// passed over once for each admission. A full ring grows by a half, never beyond the limit, so a call is O(1), and
/// so is the rest of the copying when it is spread over the admissions that made it necessary. The value expires
/// with its newest admission, and a ring in which few still count becomes a row again.
///
/// The format does not depend on the limit: replicas with another one, while it is being changed, read the same
/// value, and each is exact by its own limit. What no script wrote counts as none and is replaced.
///
/// `benches/window_designs.rs` compares it with the string read and written whole, with lists, a plain ring and two
/// counters; the numbers are in `benches/runs`. At the default limit of 240, an address with one admission takes 72
/// bytes, one with ten 120, and one at its limit 1,336: as much as the string, and half of a list (168, 248, 2,696).
/// Redis spends 7.1 microseconds on the first call of an address, 8.8 on the next nine, 11.9 on the others until the
/// limit, 14.1 at it; a list that knows as much 9.3, 9.6, 9.6 and 14.3; the string 7.3, 7.7, 10.3 and 15.7, but 38.0
/// at a limit of 1,000, where the ring takes 14.8. Most addresses are new or send little, and one beyond its limit
/// is answered from memory: so memory and the first calls decide, and the list's faster filling does not.
///
/// In the log of a replica an admission in a ring is three short commands of some 200 bytes, in a row one.
///
/// # The key
///
/// One for each group and address: `rl2:` (the version of the format), a letter for the group, the address. One
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
        // A millisecond more than the window: Redis counts the time to live from the start of the script.
        let kept_ms = window_us.div_ceil(1_000) + 1;
        let mut command = Cmd::with_capacity(7, name.len() + script.len() + key.len() + 32);
        command.arg(name).arg(script).arg(1).arg(key).arg(limit.get()).arg(window_us).arg(kept_ms);
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
