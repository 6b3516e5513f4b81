//! The sliding window in Redis: the scripts, their keys and their replies.

use std::num::NonZeroU32;
use std::time::Duration;

use redis::{Cmd, Script, Value};

use crate::group::network_limit;
use crate::{ClientAddress, Decision, Group, Scope};

/// The scripts of the window, and the names of its keys.
///
/// # Clock
///
/// The only clock is that of the Redis server with the key. Replicas send no times, so their clocks do not matter.
///
/// # Value
///
/// The times of the admissions that still count, 5 bytes each; `window.lua` has a drawing. Up to 16 are a row, which
/// is read and written as a whole. More are a ring with a header of 13 bytes, of which only the header and single
/// slots are read and written, whatever the limit. A full ring grows by half, up to the limit, and a ring with few
/// times becomes a row again. So a call takes O(1) time, amortised. The key expires with its newest admission.
///
/// The format does not depend on the limit: while the limit is being changed, replicas with the old and the new one
/// read the same value, and each is exact by its own. A value that no script wrote counts as empty, and is replaced.
///
/// `benches/window_designs.rs` compares this with a string that is read and written as a whole, with lists, a plain
/// ring and two counters; `benches/runs` has the numbers. At the default limit of 240, an address takes 72 bytes with
/// one admission, 120 with ten, and 1,336 at its limit: as much as the string, and half of a list (168, 248, 2,696).
/// Redis spends 7.1 us on the first call of an address, 8.8 us on the next nine, 11.9 us on the others below the
/// limit, and 14.1 us at it. A list with the same information takes 9.3, 9.6, 9.6 and 14.3 us; the string 7.3, 7.7,
/// 10.3 and 15.7 us, but 38.0 us at a limit of 1,000, where the ring takes 14.8 us. Most addresses are new or send
/// few requests, and refusals are cached, so memory and the first calls matter more than the faster calls of the list
/// near the limit.
///
/// In the replication stream, an admission is three short commands of about 200 bytes in a ring, and one in a row.
///
/// # Key
///
/// One for each group and address: `rl2:` (the version of the format), a letter for the group, the address. A cluster
/// distributes them over its nodes.
///
/// # Networks
///
/// An IPv6 address is admitted by its own window and that of its /48, or by neither. A second script runs the first
/// one on both keys, in one round trip; a refusal by the network does not count for the address. Both keys have the
/// /48 as their hash tag (`rl2:l:{20010db80001}0002` and `rl2:l:{20010db80001}`): a cluster stores keys with the same
/// hash tag on one node, as a script requires. Redis takes about three times as long for it (17 us instead of 6 for
/// the first call, 29 instead of 9 below the limit). One script for both kinds of addresses would add a third to the
/// calls for IPv4 addresses.
#[derive(Debug)]
pub(crate) struct WindowScript {
    script: Script,
    network_script: Script,
    key_prefix: String,
    window: Duration,
}

impl WindowScript {
    const WINDOW: &str = include_str!("window.lua");
    const NETWORK: &str = concat!(
        "local function decide(KEYS, ARGV)\n",
        include_str!("window.lua"),
        "end\n",
        include_str!("network.lua")
    );

    pub(crate) fn new(key_prefix: String, window: Duration) -> Self {
        let (script, network_script) = (Script::new(Self::WINDOW), Script::new(Self::NETWORK));
        Self { script, network_script, key_prefix, window }
    }

    /// The call by the hash of the script, which Redis knows unless it was restarted or its scripts were flushed.
    pub(crate) fn evalsha(&self, group: Group, address: ClientAddress, limit: NonZeroU32) -> Cmd {
        let script = if address.network().is_some() { &self.network_script } else { &self.script };
        self.command("EVALSHA", script.get_hash(), group, address, limit)
    }

    /// The call with the script itself, which Redis knows from then on.
    pub(crate) fn eval(&self, group: Group, address: ClientAddress, limit: NonZeroU32) -> Cmd {
        let code = if address.network().is_some() { Self::NETWORK } else { Self::WINDOW };
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
        // A millisecond more than the window: the time to live counts from the start of the script.
        let ttl_ms = window_us.div_ceil(1_000) + 1;
        let keys_len = key.len() + network.as_ref().map_or(0, String::len);
        let mut command = Cmd::with_capacity(9, name.len() + script.len() + keys_len + 48);
        command.arg(name).arg(script);
        match network {
            None => command.arg(1).arg(key),
            Some(network) => command.arg(2).arg(key).arg(network),
        };
        command.arg(limit.get()).arg(window_us).arg(ttl_ms);
        if address.network().is_some() {
            command.arg(network_limit(limit).get());
        }
        command
    }

    /// The key of a group and an address or network, which `write_subject` appends.
    fn key(&self, group: Group, write_subject: impl FnOnce(&mut String)) -> String {
        let mut key = String::with_capacity(self.key_prefix.len() + 20);
        key.push_str(&self.key_prefix);
        key.push_str(match group {
            Group::Lookup => "l:",
            Group::Rox => "r:",
            Group::List => "s:",
            Group::Detail => "d:",
            Group::Other => "o:",
        });
        write_subject(&mut key);
        key
    }

    /// The decision in the reply of a script; `None` for any other reply.
    pub(crate) fn decision(&self, limit: NonZeroU32, reply: &Value) -> Option<Decision> {
        let (admitted, remaining, wait_us, by_network) = match reply.as_sequence()? {
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
