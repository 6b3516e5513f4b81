//! The slots of a Redis Cluster, and which primary serves them: the crate tells neither.

use std::ops::RangeInclusive;

use redis::{Arg, Cmd, Value};

pub(crate) const ALL_SLOTS: RangeInclusive<u16> = 0..=16_383;

/// Slots that a primary serves.
#[derive(Debug, PartialEq)]
pub(crate) struct AssignedSlots {
    pub(crate) slots: RangeInclusive<u16>,
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// The ranges in a reply to `CLUSTER SLOTS`, a list of (first slot, last slot, primary, replicas…). A primary
/// without a host has that of the node that replied.
pub(crate) fn assigned_slots(reply: &Value, replied: &str) -> Vec<AssignedSlots> {
    let assigned = |range: &Value| {
        let [Value::Int(first), Value::Int(last), primary, ..] = range.as_sequence()? else { return None };
        let [host, Value::Int(port), ..] = primary.as_sequence()? else { return None };
        let host = match host {
            Value::BulkString(host) if host == b"?" => return None,
            Value::BulkString(host) if !host.is_empty() => str::from_utf8(host).ok()?,
            _ => replied,
        };
        let slots = u16::try_from(*first).ok()?..=u16::try_from(*last).ok()?;
        Some(AssignedSlots { slots, host: host.to_owned(), port: u16::try_from(*port).ok()? })
    };
    reply.as_sequence().into_iter().flatten().filter_map(assigned).collect()
}

/// The slot of a command: that of its key, or of the first key of a script.
pub(crate) fn slot_of(command: &Cmd) -> u16 {
    let argument = |index| match command.args_iter().nth(index) {
        Some(Arg::Simple(argument)) => argument,
        _ => &[],
    };
    let key = argument(if matches!(argument(0), b"EVAL" | b"EVALSHA") { 3 } else { 1 });
    crc16::State::<crc16::XMODEM>::calculate(hash_tag(key).unwrap_or(key)) & ALL_SLOTS.end()
}

/// What is between the first brace and the next closing one, unless that is nothing.
fn hash_tag(key: &[u8]) -> Option<&[u8]> {
    let start = key.iter().position(|byte| *byte == b'{')? + 1;
    let length = key[start..].iter().position(|byte| *byte == b'}')?;
    (length > 0).then(|| &key[start..start + length])
}

#[cfg(test)]
mod tests {
    use redis::cmd;

    use super::*;

    /// The slots are those that `CLUSTER KEYSLOT` returns.
    #[test]
    fn slot_is_that_of_the_hash_tag_or_the_key() {
        for (key, slot) in
            [("foo", 12_182), ("{foo}bar", 12_182), ("a{}foo", 16_292), ("a{foo", 113), ("", 0)]
        {
            assert_eq!(slot_of(cmd("GET").arg(key)), slot, "{key}");
            assert_eq!(slot_of(cmd("EVALSHA").arg("hash").arg(1).arg(key).arg("x")), slot, "{key}");
        }
    }

    #[test]
    fn primary_may_have_the_host_of_the_node_that_replied() {
        let range = |first, host| {
            let node =
                |host, port| Value::Array(vec![host, Value::Int(port), Value::BulkString("id".into())]);
            let replica = node(Value::BulkString("replica".into()), 7);
            Value::Array(vec![Value::Int(first), Value::Int(first + 9), node(host, 6_379), replica])
        };
        let text = |text: &str| Value::BulkString(text.into());
        let reply = [range(0, text("a")), range(10, text("")), range(20, Value::Nil), range(30, text("?"))];
        let assigned = assigned_slots(&Value::Array(reply.into()), "b");
        let expected = [(0, "a"), (10, "b"), (20, "b")].map(|(first, host)| AssignedSlots {
            slots: first..=first + 9,
            host: host.to_owned(),
            port: 6_379,
        });
        assert_eq!(assigned, expected);
        assert!(assigned_slots(&Value::Nil, "b").is_empty());
    }
}
