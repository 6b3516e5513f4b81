//! What really happened: the admissions as Redis logged them, and the judgement over what clients were told.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use chart_index_ratelimit::{ClientAddress, Decision, Group, Limiter};
use redis::Value;

use crate::support::value;

/// What one client was told, and when, by the clock that the Redis of this machine uses as well.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    pub(crate) address: ClientAddress,
    pub(crate) sent_us: u64,
    pub(crate) received_us: u64,
    pub(crate) decision: Decision,
}

/// The decisions of one run.
#[derive(Debug, Default)]
pub(crate) struct History {
    told: Mutex<Vec<Told>>,
}

impl History {
    /// Asks, and records the answer.
    pub(crate) async fn ask(&self, limiter: &Limiter, address: ClientAddress) -> Decision {
        let sent_us = now_us();
        let decision = limiter.check(Group::Lookup, address).await;
        self.told.lock().unwrap().push(Told { address, sent_us, received_us: now_us(), decision });
        decision
    }

    /// The decisions on one address.
    pub(crate) fn of(&self, address: ClientAddress) -> Vec<Told> {
        self.told.lock().unwrap().iter().filter(|told| told.address == address).copied().collect()
    }

    /// Checks the decisions on one address against the admissions that Redis logged for it: each one told was
    /// logged, no window holds more than the limit, and whenever one was refused, there were as many.
    pub(crate) fn judge(&self, address: ClientAddress, admitted_us: &[u64], limit: usize, window: Duration) {
        self.judge_all(address, &[(admitted_us, limit)], window);
    }

    /// Checks the decisions on one address against its own admissions, which come first, and those of its network: a
    /// refusal needs one of them to be full.
    pub(crate) fn judge_all(&self, address: ClientAddress, logged: &[(&[u64], usize)], window: Duration) {
        let window_us = u64::try_from(window.as_micros()).unwrap();
        let told = self.of(address);
        let passed = told.iter().filter(|told| told.decision.is_admitted()).count();
        assert_eq!(passed, logged[0].0.len(), "every admission is counted by Redis, and no other");
        for (admitted_us, limit) in logged {
            for admissions in admitted_us.windows(limit + 1) {
                let span = admissions[*limit] - admissions[0];
                assert!(span >= window_us, "{} admissions in {span} us", limit + 1);
            }
        }
        for refusal in told.iter().filter(|told| !told.decision.is_admitted()) {
            let is_full = |(admitted_us, limit): &(&[u64], usize)| {
                is_justified(refusal, admitted_us, *limit, window_us)
            };
            assert!(logged.iter().any(is_full), "refused below the limit: {refusal:?}");
        }
    }
}

/// Whether at some moment between question and answer the window that ended then was full. Between admissions a
/// window only empties, so the sending and every admission are the moments to look at.
fn is_justified(refusal: &Told, admitted_us: &[u64], limit: usize, window_us: u64) -> bool {
    let asked = refusal.sent_us..=refusal.received_us;
    let moments = admitted_us.iter().copied().filter(|at| asked.contains(at)).chain([refusal.sent_us]);
    moments.into_iter().any(|moment| {
        admitted_us.iter().filter(|at| **at <= moment && **at + window_us > moment).count() >= limit
    })
}

/// Every admission by key, as the append-only file of a server has it: each is one `SET` of a whole value or one
/// `SETRANGE` of a slot, with the time that the script took from the clock of Redis. The file is written before a
/// client is answered.
pub(crate) fn admissions(server_directory: &Path) -> HashMap<String, Vec<u64>> {
    let file = std::fs::read(server_directory.join("appendonlydir/appendonly.aof.1.incr.aof")).unwrap();
    let (mut rest, now_us) = (file.as_slice(), now_us());
    let mut admissions: HashMap<String, Vec<u64>> = HashMap::new();
    while !rest.is_empty() {
        let (command, length) = parse(rest);
        rest = &rest[length..];
        if let Some((key, time)) = admission(&command) {
            let moments = admissions.entry(String::from_utf8(key.to_vec()).unwrap()).or_default();
            moments.push(value::moment_us(time, now_us));
        }
    }
    admissions
}

/// The key and the time of the admission that a command is.
fn admission(command: &[Vec<u8>]) -> Option<(&[u8], u64)> {
    let (key, start, written) = match command {
        [name, key, value, ..] if name == b"SET" => (key, 0, value),
        [name, key, start, value] if name == b"SETRANGE" => {
            (key, std::str::from_utf8(start).unwrap().parse().unwrap(), value)
        }
        _ => return None,
    };
    value::newest(start, written).map(|time| (key.as_slice(), time))
}

/// One command of the file, and its length there: `*<parts>`, then for each part `$<size>` and its bytes.
fn parse(bytes: &[u8]) -> (Vec<Vec<u8>>, usize) {
    let mut position = 0;
    let number = |position: &mut usize| {
        let digits = &bytes[*position + 1..];
        let end = digits.iter().position(|byte| *byte == b'\r').unwrap();
        *position += 1 + end + 2;
        std::str::from_utf8(&digits[..end]).unwrap().parse::<usize>().unwrap()
    };
    let parts = number(&mut position);
    let command = (0..parts).map(|_| {
        let size = number(&mut position);
        position += size + 2;
        bytes[position - size - 2..position - 2].to_vec()
    });
    (command.collect(), position)
}

/// Microseconds since 1970.
pub(crate) fn now_us() -> u64 {
    u64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros()).unwrap()
}

/// A number in an `INFO` answer, such as `calls` in `cmdstat_evalsha:calls=3,…`.
pub(crate) async fn info_number(
    connection: &mut redis::aio::MultiplexedConnection,
    section: &str,
    field: &str,
) -> u64 {
    let info: Value = redis::cmd("INFO").arg(section).query_async(connection).await.unwrap();
    let text: String = redis::from_redis_value(info).unwrap();
    let found = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or("0");
    found.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
}
