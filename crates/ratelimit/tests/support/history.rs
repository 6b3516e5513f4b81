//! Checks decisions against the admissions in the append-only file of Redis.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use chart_index_ratelimit::{ClientAddress, Decision, Group, Limiter};

/// A decision and its time, by the clock of this machine, which Redis uses as well.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorded {
    pub(crate) address: ClientAddress,
    pub(crate) sent_us: u64,
    pub(crate) received_us: u64,
    pub(crate) decision: Decision,
}

/// The decisions of one run.
#[derive(Debug, Default)]
pub(crate) struct History {
    decisions: Mutex<Vec<Recorded>>,
}

impl History {
    /// Checks a request, and records the decision.
    pub(crate) async fn check(&self, limiter: &Limiter, address: ClientAddress) -> Decision {
        let sent_us = now_us();
        let decision = limiter.check(Group::Lookup, address).await;
        self.decisions.lock().unwrap().push(Recorded { address, sent_us, received_us: now_us(), decision });
        decision
    }

    pub(crate) fn decisions_on(&self, address: ClientAddress) -> Vec<Recorded> {
        self.decisions
            .lock()
            .unwrap()
            .iter()
            .filter(|recorded| recorded.address == address)
            .copied()
            .collect()
    }

    /// Checks the decisions on one address against its admissions in Redis: Redis has every admission and no
    /// other, no window has more than the limit, and at every refusal the window was full.
    pub(crate) fn verify(&self, address: ClientAddress, admitted_us: &[u64], limit: usize, window: Duration) {
        self.verify_all(address, &[(admitted_us, limit)], window);
    }

    /// Like [`verify`](Self::verify), with the admissions of the address first and those of its network second:
    /// at every refusal, one of the windows was full.
    pub(crate) fn verify_all(&self, address: ClientAddress, logged: &[(&[u64], usize)], window: Duration) {
        let window_us = u64::try_from(window.as_micros()).unwrap();
        let decisions = self.decisions_on(address);
        let admitted = decisions.iter().filter(|recorded| recorded.decision.is_ok()).count();
        assert_eq!(admitted, logged[0].0.len(), "redis has every admission and no other");
        for (admitted_us, limit) in logged {
            for admissions in admitted_us.windows(limit + 1) {
                let span = admissions[*limit] - admissions[0];
                assert!(span >= window_us, "{} admissions in {span} us", limit + 1);
            }
        }
        for refusal in decisions.iter().filter(|recorded| recorded.decision.is_err()) {
            let is_full = |(admitted_us, limit): &(&[u64], usize)| {
                is_justified(refusal, admitted_us, *limit, window_us)
            };
            assert!(logged.iter().any(is_full), "refused below the limit: {refusal:?}");
        }
    }
}

/// Whether the window was full at some time between command and reply. A window only empties between
/// admissions, so the times to look at are that of the command and those of the admissions.
fn is_justified(refusal: &Recorded, admitted_us: &[u64], limit: usize, window_us: u64) -> bool {
    let pending = refusal.sent_us..=refusal.received_us;
    let times = admitted_us.iter().copied().filter(|at| pending.contains(at)).chain([refusal.sent_us]);
    times
        .into_iter()
        .any(|time| admitted_us.iter().filter(|at| **at <= time && **at + window_us > time).count() >= limit)
}

/// The times of all admissions by key, from the append-only file of a server: each is an `RPUSH` with the time
/// from the clock of Redis, unless an `RPOP` follows. Redis writes the file before it replies.
pub(crate) fn admissions(server_directory: &Path) -> HashMap<String, Vec<u64>> {
    let file = std::fs::read(server_directory.join("appendonlydir/appendonly.aof.1.incr.aof")).unwrap();
    let (mut rest, mut admissions) = (file.as_slice(), HashMap::<String, Vec<u64>>::new());
    while !rest.is_empty() {
        let (command, length) = parse(rest);
        rest = &rest[length..];
        let command: Vec<_> = command.iter().map(|part| std::str::from_utf8(part).unwrap()).collect();
        match command.as_slice() {
            ["RPUSH", key, time] => {
                admissions.entry((*key).to_owned()).or_default().push(time.parse().unwrap());
            }
            ["RPOP", key] => drop(admissions.get_mut(*key).unwrap().pop().unwrap()),
            _ => {}
        }
    }
    admissions
}

/// A command in the file and its length there: `*<parts>`, then for each part `$<size>` and its bytes.
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
