//! The window in Redis: one script and one key, and for an IPv6 address a script over two.

use std::num::NonZeroU32;
use std::time::Duration;

use redis::{Cmd, Script, Value};

use crate::group::network_limit;
use crate::{ClientAddress, Decision, Group, Scope};

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
/// One for each group and address: `rl2:` (the version of the format), a letter for the group, the address. A cluster
/// spreads the addresses over its nodes.
///
/// # Networks
///
/// An IPv6 address is admitted by its own window and by that of its /48, or by neither. A second script runs the first one
/// on both keys: it asks the address, counts for the network, and then counts for the address. So a request is still one
/// round trip, and a refusal by the network takes nothing from the limit of the address. The /48 is in braces in both keys
/// (`rl2:l:{20010db80001}0002` and `rl2:l:{20010db80001}`): a cluster keeps keys with the same text in braces on one node,
/// which a script needs. Redis spends about three times as long on it (17 against 6 microseconds on a first call, 29
/// against 9 below the limit). A call for an IPv4 address names one key and costs what it did without networks; one script
/// that could do both cost it a third more.
#[derive(Debug)]
pub(crate) struct WindowScript {
    script: Script,
    network_script: Script,
    key_prefix: String,
    window: Duration,
}

impl WindowScript {
    const CODE: &str = include_str!("window.lua");
    const NETWORK_CODE: &str = concat!(
        "local function decide(KEYS, ARGV)\n",
        include_str!("window.lua"),
        "end\n",
        include_str!("network.lua")
    );

    pub(crate) fn new(key_prefix: String, window: Duration) -> Self {
        let (script, network_script) = (Script::new(Self::CODE), Script::new(Self::NETWORK_CODE));
        Self { script, network_script, key_prefix, window }
    }

    /// The call by the digest of the script, which Redis knows unless it has been restarted or flushed.
    pub(crate) fn call(&self, group: Group, address: ClientAddress, limit: NonZeroU32) -> Cmd {
        let script = if address.network().is_some() { &self.network_script } else { &self.script };
        self.command("EVALSHA", script.get_hash(), group, address, limit)
    }

    /// The call with the script itself, which Redis then knows.
    pub(crate) fn call_with_code(&self, group: Group, address: ClientAddress, limit: NonZeroU32) -> Cmd {
        let code = if address.network().is_some() { Self::NETWORK_CODE } else { Self::CODE };
        self.command("EVAL", code, group, address, limit)
    }

    fn command(
        &self,
        name: &str,
        script: &str,
        group: Group,
        address: ClientAddress,
        limit: NonZeroU32,
    ) -> Cmd {
        let key = self.key(group, |key| address.write_key(key));
        let network = address.network().map(|network| self.key(group, |key| network.write_key(key)));
        let window_us = u64::try_from(self.window.as_micros()).unwrap_or(u64::MAX);
        // A millisecond more than the window: Redis counts the time to live from the start of the script.
        let kept_ms = window_us.div_ceil(1_000) + 1;
        let keys_len = key.len() + network.as_ref().map_or(0, Vec::len);
        let mut command = Cmd::with_capacity(9, name.len() + script.len() + keys_len + 48);
        command.arg(name).arg(script);
        match network {
            None => command.arg(1).arg(key),
            Some(network) => command.arg(2).arg(key).arg(network),
        };
        command.arg(limit.get()).arg(window_us).arg(kept_ms);
        if address.network().is_some() {
            command.arg(network_limit(limit).get());
        }
        command
    }

    /// The key of a group and of what the function writes after it.
    fn key(&self, group: Group, write_subject: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.key_prefix.len() + 20);
        key.extend_from_slice(self.key_prefix.as_bytes());
        key.extend_from_slice(match group {
            Group::Lookup => b"l:",
            Group::Rox => b"r:",
            Group::List => b"s:",
            Group::Detail => b"d:",
            Group::Other => b"o:",
        });
        write_subject(&mut key);
        key
    }

    /// The decision in the script's answer; `None` for anything else.
    pub(crate) fn decision(&self, limit: NonZeroU32, answer: &Value) -> Option<Decision> {
        let (admitted, remaining, wait_us, by_network) = match answer.as_sequence()? {
            [Value::Int(admitted), Value::Int(remaining), Value::Int(wait_us)] => {
                (*admitted, *remaining, *wait_us, false)
            }
            [Value::Int(admitted), Value::Int(remaining), Value::Int(wait_us), Value::Int(by_network)] => {
                (*admitted, *remaining, *wait_us, *by_network == 1)
            }
            _ => return None,
        };
        let (remaining, wait_us) = (u32::try_from(remaining).ok()?, u64::try_from(wait_us).ok()?);
        let wait = Duration::from_micros(wait_us).min(self.window);
        Some(match (admitted, by_network) {
            (0, false) => Decision::Refused { scope: Scope::Address, limit, retry_after: wait },
            (0, true) => {
                Decision::Refused { scope: Scope::Network, limit: network_limit(limit), retry_after: wait }
            }
            _ => Decision::Admitted { limit, remaining, reset_after: wait },
        })
    }
}
