//! The sliding window in Redis: the script, its keys and its replies.

use std::num::NonZeroU32;
use std::time::Duration;

use redis::{Cmd, Script, Value};

use crate::group::network_limit;
use crate::{ClientAddress, Decision, Group, Scope};

/// The script of the window, and the names of its keys.
///
/// A call decides on several requests: in a call of 64, each takes Redis 1.8 us if it is the first of its
/// address and 3.4 us if it is one of the next, instead of 5.3 and 7.0 us in a call of its own
/// (`benchmarks/results/2026-11-22-hot-path.md`).
///
/// # Clock
///
/// The only clock is that of the Redis server with the key. Replicas send no times, so their clocks do not
/// matter.
///
/// # Value
///
/// The times of the admissions that still count, 5 bytes each; `window.lua` has a drawing. Up to 16 are a row,
/// which is read and written as a whole. More are a ring with a header of 13 bytes, of which only the header
/// and single slots are written, and above a limit of 1,000 also read. A full ring grows by half, up to the
/// limit, and a ring with few times becomes a row again. So a call takes O(1) time, amortised. The key expires
/// with its newest admission.
///
/// The format does not depend on the limit: while the limit is being changed, replicas with the old and the new
/// one read the same value, and each is exact by its own. A value that no script wrote counts as empty, and is
/// replaced.
///
/// This was compared, with one request a call, with a string that is read and written as a whole, with lists, a
/// plain ring and two counters (`benchmarks/results/2026-11-21-window-designs.md`). At the default limit of
/// 240, an address takes 72 bytes with one admission, 120 with ten, and 1,336 at its limit: as much as the
/// string, and half of a list (168, 248, 2,696). Redis spent 7.1 us on the first call of an address, 8.8 us on
/// the next nine, 11.9 us on the others below the limit, and 14.1 us at it. A list with the same information
/// took 9.3, 9.6, 9.6 and 14.3 us; the string 7.3, 7.7, 10.3 and 15.7 us, but 38.0 us at a limit of 1,000,
/// where the ring took 14.8 us. Most addresses are new or send few requests, and refusals are cached, so memory
/// and the first calls matter more than the faster calls of the list near the limit.
///
/// In the replication stream, an admission is three short commands of about 200 bytes in a ring, and one in a
/// row.
///
/// # Key
///
/// One for each group and address: `rl2:` (the version of the format), a letter for the group, the address. A
/// cluster distributes them over its nodes.
///
/// # Networks
///
/// An IPv6 address is admitted by its own window and that of its /48, or by neither, in the same call; a
/// refusal by the network does not count for the address. Both keys have the /48 as their hash tag
/// (`rl2:l:{20010db80001}0002` and `rl2:l:{20010db80001}`): a cluster stores keys with the same hash tag on one
/// node, as a script requires. Redis takes about three times as long for it.
#[derive(Debug)]
pub(crate) struct WindowScript {
    script: Script,
    key_prefix: String,
    window: Duration,
}

/// A request to decide on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    pub(crate) group: Group,
    pub(crate) address: ClientAddress,
    pub(crate) limit: NonZeroU32,
}

const REPLY_BYTES: usize = 10;

impl WindowScript {
    const CODE: &str = include_str!("window.lua");

    pub(crate) fn new(key_prefix: String, window: Duration) -> Self {
        Self { script: Script::new(Self::CODE), key_prefix, window }
    }

    /// The call by the hash of the script, which Redis knows unless it was restarted or its scripts were
    /// flushed.
    pub(crate) fn evalsha(&self, checks: &[Check]) -> Cmd {
        self.command("EVALSHA", self.script.get_hash(), checks)
    }

    /// The call with the script itself, which Redis knows from then on.
    pub(crate) fn eval(&self, checks: &[Check]) -> Cmd {
        self.command("EVAL", Self::CODE, checks)
    }

    fn command(&self, name: &str, script: &str, checks: &[Check]) -> Cmd {
        let networks = checks.iter().filter(|check| check.address.network().is_some()).count();
        let mut command =
            Cmd::with_capacity(5 + 3 * checks.len() + networks, script.len() + 64 + 48 * checks.len());
        command.arg(name).arg(script).arg(checks.len() + networks);
        let mut key = String::with_capacity(self.key_prefix.len() + 20);
        for Check { group, address, .. } in checks {
            command.arg(self.write_key(&mut key, *group, |key| address.write_key(key)));
            if let Some(network) = address.network() {
                command.arg(self.write_key(&mut key, *group, |key| network.write_key(key)));
            }
        }
        let window_us = u64::try_from(self.window.as_micros()).unwrap_or(u64::MAX);
        // A millisecond more than the window: the time to live counts from the start of the script.
        let ttl_ms = window_us.div_ceil(1_000) + 1;
        command.arg(window_us).arg(ttl_ms);
        for Check { address, limit, .. } in checks {
            let network_limit = address.network().map_or(0, |_| network_limit(*limit).get());
            command.arg(limit.get()).arg(network_limit);
        }
        command
    }

    /// Replaces `key` by the key of a group and an address or network, which `write_subject` appends.
    fn write_key<'key>(
        &self,
        key: &'key mut String,
        group: Group,
        write_subject: impl FnOnce(&mut String),
    ) -> &'key str {
        key.clear();
        key.push_str(&self.key_prefix);
        key.push_str(match group {
            Group::Lookup => "l:",
            Group::Rox => "r:",
            Group::List => "s:",
            Group::Detail => "d:",
            Group::Bulk => "b:",
            Group::Page => "p:",
            Group::Other => "o:",
        });
        write_subject(key);
        key
    }

    /// The decisions in the reply of the script to these checks; `None` for any other reply.
    pub(crate) fn decisions(&self, checks: &[Check], reply: &Value) -> Option<Vec<Decision>> {
        let Value::BulkString(reply) = reply else { return None };
        let (replies, rest) = reply.as_chunks::<REPLY_BYTES>();
        if replies.len() != checks.len() || !rest.is_empty() {
            return None;
        }
        let decisions = checks.iter().zip(replies).map(|(check, reply)| self.decision(check.limit, *reply));
        Some(decisions.collect())
    }

    fn decision(&self, limit: NonZeroU32, reply: [u8; REPLY_BYTES]) -> Decision {
        let [outcome, r0, r1, r2, r3, w0, w1, w2, w3, w4] = reply;
        let remaining = u32::from_be_bytes([r0, r1, r2, r3]);
        let wait_us = u64::from_be_bytes([0, 0, 0, w0, w1, w2, w3, w4]);
        let wait = Duration::from_micros(wait_us).min(self.window);
        match outcome {
            0 => Decision::Refused { scope: Scope::Address, limit, retry_after: wait },
            2 => Decision::Refused { scope: Scope::Network, limit: network_limit(limit), retry_after: wait },
            _ => Decision::Admitted { limit, remaining, reset_after: wait },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn check(group: Group, address: &str) -> Check {
        let address = address.parse::<IpAddr>().unwrap().into();
        Check { group, address, limit: NonZeroU32::new(10).unwrap() }
    }

    fn script() -> WindowScript {
        WindowScript::new("rl2:".to_owned(), Duration::from_mins(1))
    }

    /// Replicas send no times, so their clocks do not matter.
    #[test]
    fn call_has_keys_and_limits_but_no_time() {
        let checks = [check(Group::List, "0.0.1.2"), check(Group::Lookup, "2001:db8:1:2::1")];
        let command = script().evalsha(&checks);
        let arguments = command.args_iter().map(|argument| match argument {
            redis::Arg::Simple(argument) => String::from_utf8(argument.to_vec()).unwrap(),
            _ => panic!("an argument is bytes"),
        });
        let expected = [
            "3",
            "rl2:s:00000102",
            "rl2:l:{20010db80001}0002",
            "rl2:l:{20010db80001}",
            "60000000",
            "60001",
            "10",
            "0",
            "10",
            "160",
        ];
        assert_eq!(arguments.skip(2).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn reply_of_another_length_decides_nothing() {
        let checks = [check(Group::List, "0.0.1.2")];
        let decisions = |bytes: &[u8]| script().decisions(&checks, &Value::BulkString(bytes.to_vec()));
        let admitted = Decision::Admitted {
            limit: NonZeroU32::new(10).unwrap(),
            remaining: 9,
            reset_after: Duration::from_micros(256),
        };
        assert_eq!(decisions(&[1, 0, 0, 0, 9, 0, 0, 0, 1, 0]), Some(vec![admitted]));
        for length in [0, 1, 9, 11, 20] {
            assert_eq!(decisions(&vec![1; length]), None, "{length}");
        }
        assert_eq!(script().decisions(&checks, &Value::Nil), None);
    }
}
