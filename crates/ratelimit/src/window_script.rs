//! The sliding window in Redis: the script, its keys and its replies.

use std::cmp::Ordering;
use std::num::NonZeroU32;
use std::time::Duration;

use redis::{Cmd, Script, Value};

use crate::group::network_limit;
use crate::{Budget, ClientAddress, Decision, Group, Refusal, Scope};

/// The script of the window, and the names of its keys.
///
/// A call decides on several requests: in a call of 64, each takes Redis 1.6 us if it is the first of its
/// address and 1.3 us if it is one of the next, instead of 4.4 and 3.9 us in a call of its own
/// (`benchmarks/results/2026-11-25-window-list.md`).
///
/// # Clock
///
/// The only clock is that of the Redis server with the key. Replicas send no times, so their clocks do not
/// matter.
///
/// # Value
///
/// A list of the times of admissions. Its format does not depend on the limit: while the limit is being
/// changed, replicas with the old and the new one use the same value, and each is exact by its own. A value of
/// another type counts as empty, and is replaced. The key expires with its newest admission.
///
/// # Key
///
/// One for each group and address: `rl3:` (the version of the format), a letter for the group, a hash tag, the
/// address (`rl3:l:{us}c0000207`). Redis Cluster stores keys with the same hash tag on one node, as a call of
/// the script requires; there are 24 (decision 0067).
///
/// # Networks
///
/// An IPv6 address is admitted by its own window and that of its /48, or by neither, in the same call; a
/// refusal by the network does not count for the address. Both keys have the hash tag of the /48
/// (`rl3:l:{aq}20010db800010002` and `rl3:l:{aq}20010db80001`). Redis takes about twice as long for it.
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
            Cmd::with_capacity(5 + 2 * (checks.len() + networks), script.len() + 64 + 48 * checks.len());
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
        for Check { group, address, limit } in checks {
            let mut argument = |limit: i64| {
                if group.reports_budget() {
                    command.arg(format!("{limit}r"))
                } else {
                    command.arg(limit)
                };
            };
            argument(limit.get().into());
            if address.network().is_some() {
                argument(-i64::from(network_limit(*limit).get()));
            }
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
            Group::Preview => "v:",
            Group::Bulk => "b:",
            Group::Feed => "f:",
            Group::Page => "p:",
            Group::Other => "o:",
        });
        write_subject(key);
        key
    }

    /// The decisions in the reply of the script to these checks; `None` for any other reply.
    pub(crate) fn decisions(checks: &[Check], reply: &Value) -> Option<Vec<Decision>> {
        let Value::Array(waits) = reply else { return None };
        if waits.len() != checks.len() {
            return None;
        }
        checks.iter().zip(waits).map(|(check, wait)| decision(check.limit, wait)).collect()
    }
}

/// The decision of a wait in microseconds, which is negative if the network refuses, or of a budget: the number
/// of admissions and the microseconds until there is one more.
fn decision(limit: NonZeroU32, reply: &Value) -> Option<Decision> {
    if let Value::Array(budget) = reply {
        let [Value::Int(remaining), Value::Int(wait_us)] = budget[..] else { return None };
        let remaining = u32::try_from(remaining).unwrap_or(0);
        let renewed_after = Duration::from_micros(wait_us.unsigned_abs());
        return Some(Ok(Some(Budget { limit, remaining, renewed_after })));
    }
    let Value::Int(wait_us) = *reply else { return None };
    let retry_after = Duration::from_micros(wait_us.unsigned_abs());
    Some(match wait_us.cmp(&0) {
        Ordering::Equal => Ok(None),
        Ordering::Greater => Err(Refusal { scope: Scope::Address, limit, retry_after }),
        Ordering::Less => Err(Refusal { scope: Scope::Network, limit: network_limit(limit), retry_after }),
    })
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
        WindowScript::new("rl3:".to_owned(), Duration::from_mins(1))
    }

    /// Replicas send no times, so their clocks do not matter.
    #[test]
    fn call_has_keys_and_limits_but_no_time() {
        let checks = [
            check(Group::List, "0.0.1.2"),
            check(Group::Lookup, "2001:db8:1:2::1"),
            check(Group::Feed, "0.0.1.2"),
        ];
        let command = script().evalsha(&checks);
        let arguments = command.args_iter().map(|argument| match argument {
            redis::Arg::Simple(argument) => String::from_utf8(argument.to_vec()).unwrap(),
            _ => panic!("an argument is bytes"),
        });
        let expected = [
            "4",
            "rl3:s:{fi}00000102",
            "rl3:l:{aq}20010db800010002",
            "rl3:l:{aq}20010db80001",
            "rl3:f:{fi}00000102",
            "60000000",
            "60001",
            "10",
            "10",
            "-160",
            "10r",
        ];
        assert_eq!(arguments.skip(2).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn reply_has_a_wait_for_each_check() {
        let checks = [check(Group::List, "0.0.1.2"), check(Group::List, "::1"), check(Group::List, "::2")];
        let decisions = |waits: &[i64]| {
            WindowScript::decisions(&checks, &Value::Array(waits.iter().copied().map(Value::Int).collect()))
        };
        let refusal = |scope, limit: u32, micros| {
            let limit = NonZeroU32::new(limit).unwrap();
            Err(Refusal { scope, limit, retry_after: Duration::from_micros(micros) })
        };
        let expected = [Ok(None), refusal(Scope::Address, 10, 7), refusal(Scope::Network, 160, 9)];
        assert_eq!(decisions(&[0, 7, -9]), Some(expected.to_vec()));
        assert_eq!(decisions(&[0, 7]), None);
        assert_eq!(decisions(&[0, 7, -9, 0]), None);
        assert_eq!(WindowScript::decisions(&checks[..1], &Value::Array(vec![Value::Nil])), None);
        assert_eq!(WindowScript::decisions(&checks, &Value::Nil), None);
        let budget = Value::Array(vec![Value::Int(7), Value::Int(1_500_000)]);
        let limit = NonZeroU32::new(10).unwrap();
        let expected = Budget { limit, remaining: 7, renewed_after: Duration::from_millis(1_500) };
        let reply = Value::Array(vec![budget]);
        assert_eq!(WindowScript::decisions(&checks[..1], &reply), Some(vec![Ok(Some(expected))]));
    }
}
