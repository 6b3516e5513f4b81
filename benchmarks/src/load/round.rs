//! Rounds: one target under load for a few seconds. Rounds of different targets alternate, and medians are
//! compared.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Serialize;

use crate::cpu::{CoreTimes, Cores, cpu_time, ended_children_cpu_time, ratio};
use crate::generator::{Sent, Wrk};
use crate::target::{Role, Target};

/// Above this share of their time the cores of the generator may limit the load: the round is void.
pub(crate) const MAX_GENERATOR_BUSY: f64 = 0.8;

/// How often a void round is repeated before it is reported as void.
const REPETITIONS: usize = 2;

/// A target with its load.
#[derive(Debug)]
pub(crate) struct Variant {
    /// The name in reports.
    pub(crate) name: &'static str,
    target: Rc<Target>,
    load: Wrk,
    /// Whether Redis is emptied before each round.
    is_cold: bool,
}

/// One target under load.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Round {
    /// Requests per second.
    pub(crate) requests_per_second: f64,
    /// CPU time per request in microseconds, by role.
    pub(crate) cpu_us: BTreeMap<&'static str, f64>,
    /// Bytes per response, with its head.
    pub(crate) bytes_per_response: f64,
    /// The share of the time in which the cores of the generator were busy.
    pub(crate) generator_busy: f64,
    /// The part of it that the generator used itself.
    pub(crate) generator_own: f64,
    /// The share of the time in which the cores of the servers did something else than serve this target.
    pub(crate) other_load: f64,
    /// Why the round is void.
    pub(crate) void: Option<String>,
}

/// How rounds are run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    /// Rounds of each target.
    pub(crate) rounds: usize,
    /// The length of a round.
    pub(crate) seconds: u64,
    /// How long the void rounds of a target are repeated in total, if its latencies are measured.
    pub(crate) repetition_seconds: u64,
}

impl Variant {
    /// A target with its load.
    pub(crate) const fn new(name: &'static str, target: Rc<Target>, load: Wrk) -> Self {
        Self { name, target, load, is_cold: false }
    }

    /// The target.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Empties Redis before each round, so that it has no responses.
    pub(crate) fn cold(self) -> Self {
        Self { is_cold: true, ..self }
    }

    /// Sends requests for this time.
    pub(crate) async fn run(&self, seconds: u64, number: usize) -> Result<Sent> {
        if self.is_cold {
            self.target.empty_redis();
        }
        self.load.run(seconds, number).await
    }
}

impl Schedule {
    /// Runs the rounds of all targets, in the order A B B A, after a warm-up of each. Returns the rounds of
    /// each target; those with the same index were run one after the other.
    pub(crate) async fn run(self, variants: &[Variant], cores: &Cores) -> Result<Vec<Vec<Round>>> {
        for variant in variants {
            variant.run(1, 0).await?;
        }
        let mut rounds = vec![Vec::new(); variants.len()];
        for number in 1..=self.rounds {
            let mut order: Vec<usize> = (0..variants.len()).collect();
            if number % 2 == 0 {
                order.reverse();
            }
            for index in order {
                let round = self.valid_round(&variants[index], cores, number).await?;
                crate::progress(&format!(
                    "round {number}/{}, {}: {round}",
                    self.rounds, variants[index].name
                ));
                rounds[index].push(round);
            }
        }
        Ok(rounds)
    }

    async fn valid_round(self, variant: &Variant, cores: &Cores, number: usize) -> Result<Round> {
        let mut round = self.round(variant, cores, number).await?;
        for repetition in 1..=REPETITIONS {
            // A generator that is the limit itself is so in every round.
            if !round.is_void() || round.generator_own > MAX_GENERATOR_BUSY {
                break;
            }
            round = self.round(variant, cores, number + 1_000 * repetition).await?;
        }
        Ok(round)
    }

    async fn round(self, variant: &Variant, cores: &Cores, number: usize) -> Result<Round> {
        let before = Usage::read(&variant.target, cores)?;
        let sent = variant.run(self.seconds, number).await?;
        let after = Usage::read(&variant.target, cores)?;
        ensure!(sent.requests > 0, "{}: no response", variant.name);
        ensure!(sent.failures == 0, "{}: {sent:?}", variant.name);
        let target = &variant.target;
        let cpu_us = Role::ALL.into_iter().filter(|role| !target.processes_of(*role).is_empty());
        let cpu_us = cpu_us
            .map(|role| (role.name(), after.microseconds_since(&before, role) / requests(sent.requests)));
        let generator_busy = after.generator.busy_since(before.generator);
        let void = (generator_busy > MAX_GENERATOR_BUSY)
            .then(|| format!("the generator's cores were busy {:.0} % of the time", generator_busy * 100.0));
        Ok(Round {
            requests_per_second: requests(sent.requests) / sent.seconds,
            cpu_us: cpu_us.collect(),
            bytes_per_response: ratio(sent.bytes, sent.requests),
            generator_busy,
            generator_own: after
                .generator
                .share_since(before.generator, after.ended.saturating_sub(before.ended)),
            other_load: after.other_load_since(&before),
            void,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a measurement are far below 2^52")]
const fn requests(count: u64) -> f64 {
    count as f64
}

impl std::fmt::Display for Round {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0} requests/s", self.requests_per_second)?;
        for (role, microseconds) in &self.cpu_us {
            write!(f, ", {role} {microseconds:.1} us")?;
        }
        let (busy, own) = (self.generator_busy * 100.0, self.generator_own * 100.0);
        write!(f, ", generator's cores {busy:.0} % busy, {own:.0} % by itself")?;
        match &self.void {
            Some(reason) => write!(f, ", VOID: {reason}"),
            None => Ok(()),
        }
    }
}

/// The CPU time used until now.
struct Usage {
    processes: BTreeMap<Role, Duration>,
    /// That of generators.
    ended: Duration,
    generator: CoreTimes,
    servers: CoreTimes,
}

impl Usage {
    fn read(target: &Target, cores: &Cores) -> Result<Self> {
        let processes = Role::ALL.into_iter().map(|role| Ok((role, cpu_time(&target.processes_of(role))?)));
        Ok(Self {
            processes: processes.collect::<Result<_>>()?,
            ended: ended_children_cpu_time()?,
            generator: CoreTimes::read(cores.generator())?,
            servers: CoreTimes::read(cores.servers())?,
        })
    }

    fn time_since(&self, before: &Self, role: Role) -> Duration {
        let time = |usage: &Self| usage.processes.get(&role).copied().unwrap_or_default();
        time(self).saturating_sub(time(before))
    }

    fn microseconds_since(&self, before: &Self, role: Role) -> f64 {
        self.time_since(before, role).as_secs_f64() * 1e6
    }

    fn other_load_since(&self, before: &Self) -> f64 {
        let target: Duration = Role::ALL.into_iter().map(|role| self.time_since(before, role)).sum();
        (self.servers.busy_since(before.servers) - self.servers.share_since(before.servers, target)).max(0.0)
    }
}

/// A round that may be void.
pub(crate) trait MaybeVoid {
    /// Whether the round is void.
    fn is_void(&self) -> bool;
}

impl MaybeVoid for Round {
    fn is_void(&self) -> bool {
        self.void.is_some()
    }
}

/// The median over the rounds that count: those that are not void, or all if every one is.
pub(crate) fn median_of_rounds<R: MaybeVoid>(rounds: &[R], value: impl Fn(&R) -> Option<f64>) -> Option<f64> {
    median(rounds.iter().filter(|round| counts(*round, rounds)).filter_map(value))
}

/// The median of the ratios to another target in the same round, of rounds that count for both.
pub(crate) fn median_ratio<R: MaybeVoid>(
    rounds: &[R],
    reference: &[R],
    value: impl Fn(&R) -> f64,
) -> Option<f64> {
    let pairs = rounds.iter().zip(reference);
    let pairs = pairs.filter(|(round, first)| counts(*round, rounds) && counts(*first, reference));
    median(pairs.map(|(round, first)| value(round) / value(first)).filter(|ratio| ratio.is_finite()))
}

fn counts<R: MaybeVoid>(round: &R, rounds: &[R]) -> bool {
    !round.is_void() || rounds.iter().all(MaybeVoid::is_void)
}

/// The median of the values. `None` without any.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_of_the_sorted_values() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), Some(2.5));
        assert_eq!(median(std::iter::empty()), None);
    }
}
