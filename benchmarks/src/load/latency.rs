//! Latencies at a fixed rate, of the service and of nginx.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::compare::Setup;
use crate::cpu::{CoreTimes, ratio};
use crate::generator::{Latencies, OpenLoop, OpenLoopOutcome};
use crate::round::{MAX_GENERATOR_BUSY, MaybeVoid, Schedule, median_of_rounds, median_ratio};
use crate::scenario::Scenario;
use crate::target::Target;
use crate::verify::Examples;

/// Above this share of starts that are more than 1 ms late the generator limits the load: the round is void.
const MAX_LATE: f64 = 0.001;
/// In this time connections are used for the first time, and caches are filled.
const WARM_UP: Duration = Duration::from_secs(1);
/// Connections, and so requests in flight.
const CONNECTIONS: u32 = 64;
/// The generator does no more than this with one core.
const MAX_RATE: f64 = 12_000.0;

/// Latencies of all targets of a scenario.
#[derive(Debug, Serialize)]
pub(crate) struct LatencyResult {
    pub(crate) scenario: String,
    /// Requests per second.
    pub(crate) rate: u32,
    pub(crate) rounds: usize,
    pub(crate) seconds: u64,
    pub(crate) targets: Vec<TargetLatency>,
}

/// Latencies of one target: medians of its rounds, without void ones unless all are void.
#[derive(Debug, Serialize)]
pub(crate) struct TargetLatency {
    pub(crate) name: &'static str,
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
    pub(crate) p999_us: Option<f64>,
    /// The median of the ratios to the first target in the same round.
    pub(crate) p99_ratio: Option<f64>,
    /// The share of the responses that were neither refused nor rejected.
    pub(crate) accepted: Option<f64>,
    /// Void rounds.
    pub(crate) void: usize,
    /// Whether every round was void, and the latencies are those of void rounds.
    pub(crate) is_void: bool,
    /// Void rounds that were repeated.
    pub(crate) repeated: usize,
    /// Wrong responses, errors and violations of the limit in all rounds, those that were repeated included.
    pub(crate) problems: u64,
    pub(crate) rounds: Vec<LatencyRound>,
}

/// One round.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LatencyRound {
    pub(crate) accepted: Latencies,
    pub(crate) statuses: BTreeMap<u16, u64>,
    pub(crate) requests_per_second: f64,
    pub(crate) late: u64,
    pub(crate) queued: u64,
    pub(crate) errors: Examples,
    pub(crate) wrong: Examples,
    pub(crate) violations: Examples,
    pub(crate) generator_busy: f64,
    pub(crate) void: Option<String>,
    /// Void rounds in place of which this one was run.
    pub(crate) repeated: usize,
}

/// A target under load.
struct Measured<'a> {
    target: &'a Target,
    load: &'a OpenLoop,
    /// Rounds that were run, whether they count or not.
    runs: u32,
    /// How many more rounds may be repeated.
    repetitions: u64,
    rounds: Vec<LatencyRound>,
}

impl Setup {
    /// Measures the latencies of a scenario.
    pub(crate) async fn latency(
        &self,
        scenario: Scenario,
        schedule: Schedule,
        rate: Option<u32>,
    ) -> Result<LatencyResult> {
        crate::progress(&format!("{}: starting the servers", scenario.name()));
        let (targets, ceiling) = self.open_loop_targets(scenario).await?;
        // Half of what the service can do, and twice as much for overload.
        let share = if scenario == Scenario::Overload { 2.0 } else { 0.5 };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most MAX_RATE")]
        let rate = rate.unwrap_or((ceiling * share).clamp(1.0, MAX_RATE) as u32);
        let requests = scenario.requests(&self.catalogue)?;
        let mut loads = Vec::new();
        for target in &targets {
            loads.push(OpenLoop {
                address: target.address,
                requests: Arc::new(requests.for_target(target).await?),
                clients: scenario.clients(),
                rate,
                warm_up: WARM_UP,
                duration: Duration::from_secs(schedule.seconds),
                connections: if scenario == Scenario::Overload { 4 * CONNECTIONS } else { CONNECTIONS },
                may_reject: scenario == Scenario::Overload,
            });
        }
        let rounds = self.latency_rounds(scenario, schedule, &targets, &loads).await?;
        let first = rounds.first().cloned().unwrap_or_default();
        let targets = targets
            .iter()
            .zip(rounds)
            .map(|(target, rounds)| TargetLatency::new(target.name, rounds, &first));
        let targets = targets.collect();
        let Schedule { rounds, seconds, .. } = schedule;
        Ok(LatencyResult { scenario: scenario.name(), rate, rounds, seconds, targets })
    }

    async fn latency_rounds(
        &self,
        scenario: Scenario,
        schedule: Schedule,
        targets: &[Rc<Target>],
        loads: &[OpenLoop],
    ) -> Result<Vec<Vec<LatencyRound>>> {
        let repetitions = schedule.repetition_seconds / schedule.seconds.max(1);
        let measured = targets.iter().zip(loads);
        let mut measured: Vec<Measured<'_>> = measured
            .map(|(target, load)| Measured { target, load, runs: 0, repetitions, rounds: Vec::new() })
            .collect();
        for number in 1..=schedule.rounds {
            let mut order: Vec<usize> = (0..loads.len()).collect();
            if number % 2 == 0 {
                order.reverse();
            }
            for index in order {
                let round = self.valid_round(scenario, &mut measured[index], number).await?;
                measured[index].rounds.push(round);
            }
        }
        Ok(measured.into_iter().map(|measured| measured.rounds).collect())
    }

    /// Repeats a round while it is void.
    async fn valid_round(
        &self,
        scenario: Scenario,
        measured: &mut Measured<'_>,
        number: usize,
    ) -> Result<LatencyRound> {
        let mut round = self.round(scenario, measured, number).await?;
        while round.is_void() && measured.repetitions > 0 {
            measured.repetitions -= 1;
            round = self.round(scenario, measured, number).await?.in_place_of(round);
        }
        Ok(round)
    }

    async fn round(
        &self,
        scenario: Scenario,
        measured: &mut Measured<'_>,
        number: usize,
    ) -> Result<LatencyRound> {
        let Measured { target, load, runs, .. } = measured;
        *runs += 1;
        if scenario.is_cold() {
            target.empty_redis();
        }
        let load = OpenLoop { clients: scenario.clients().in_round(*runs), ..load.clone() };
        let before = CoreTimes::read(self.cores.generator())?;
        let outcome = load.run().await.with_context(|| target.name)?;
        let busy = CoreTimes::read(self.cores.generator())?.busy_since(before);
        let round = LatencyRound::new(outcome, busy);
        crate::progress(&format!("round {number}, {}: {round}", target.name));
        Ok(round)
    }
}

impl LatencyRound {
    fn new(outcome: OpenLoopOutcome, generator_busy: f64) -> Self {
        let void = void_reason(&outcome, generator_busy);
        Self {
            accepted: outcome.accepted,
            statuses: outcome.statuses,
            requests_per_second: outcome.requests_per_second,
            late: outcome.late,
            queued: outcome.queued,
            errors: outcome.errors,
            wrong: outcome.wrong,
            violations: outcome.violations,
            generator_busy,
            void,
            repeated: 0,
        }
    }

    /// This round, run in place of a void one, whose problems count as well.
    fn in_place_of(mut self, void: Self) -> Self {
        self.repeated = void.repeated + 1;
        self.errors.append(void.errors);
        self.wrong.append(void.wrong);
        self.violations.append(void.violations);
        self
    }

    fn accepted_share(&self) -> f64 {
        ratio(self.accepted.count, self.statuses.values().sum::<u64>().max(1))
    }

    fn problems(&self) -> impl Iterator<Item = &Examples> {
        [&self.errors, &self.wrong, &self.violations].into_iter()
    }
}

impl MaybeVoid for LatencyRound {
    fn is_void(&self) -> bool {
        self.void.is_some()
    }
}

/// Why a round is void.
fn void_reason(outcome: &OpenLoopOutcome, generator_busy: f64) -> Option<String> {
    let late = ratio(outcome.late, outcome.requests.max(1));
    if late > MAX_LATE {
        return Some(format!("{:.2} % of the starts were over 1 ms late", late * 100.0));
    }
    let is_busy = generator_busy > MAX_GENERATOR_BUSY;
    is_busy.then(|| format!("the generator's cores were busy {:.0} % of the time", generator_busy * 100.0))
}

impl TargetLatency {
    fn new(name: &'static str, rounds: Vec<LatencyRound>, reference: &[LatencyRound]) -> Self {
        let of = |value: fn(&Latencies) -> u64| {
            median_of_rounds(&rounds, |round| Some(ratio(value(&round.accepted), 1)))
        };
        let p99_ratio = median_ratio(&rounds, reference, |round| ratio(round.accepted.p99, 1));
        Self {
            name,
            p50_us: of(|latencies| latencies.p50),
            p99_us: of(|latencies| latencies.p99),
            p999_us: of(|latencies| latencies.p999),
            p99_ratio,
            accepted: median_of_rounds(&rounds, |round| Some(round.accepted_share())),
            void: rounds.iter().filter(|round| round.is_void()).count(),
            is_void: rounds.iter().all(MaybeVoid::is_void),
            repeated: rounds.iter().map(|round| round.repeated).sum(),
            problems: rounds.iter().flat_map(LatencyRound::problems).map(|problems| problems.count).sum(),
            rounds,
        }
    }
}

impl LatencyResult {
    /// Fails if a response of the service was wrong, or it violated the limit of a client.
    pub(crate) fn ensure_correct(&self) -> Result<()> {
        // nginx counts with a leaky bucket, and refuses and admits others than a sliding window does.
        let of_service = self.targets.iter().filter(|target| target.name.starts_with("service"));
        for target in of_service {
            let problems = target.rounds.iter().flat_map(LatencyRound::problems);
            let descriptions: Vec<&str> =
                problems.flat_map(|problems| &problems.descriptions).map(String::as_str).take(10).collect();
            let TargetLatency { name, problems, .. } = target;
            ensure!(*problems == 0, "{name}: {problems} problems:\n{}", descriptions.join("\n"));
        }
        Ok(())
    }
}

impl std::fmt::Display for LatencyRound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Latencies { p50, p99, p999, max, .. } = &self.accepted;
        write!(
            f,
            "{:.0} requests/s, p50 {p50} us, p99 {p99}, p99.9 {p999}, max {max}",
            self.requests_per_second
        )?;
        write!(f, ", {:?}, {} late, {} queued", self.statuses, self.late, self.queued)?;
        let names = ["errors", "wrong responses", "violations of the limit"];
        for (problems, name) in self.problems().zip(names).filter(|(problems, _)| problems.count > 0) {
            write!(f, ", {} {name}: {:?}", problems.count, problems.descriptions.first())?;
        }
        match &self.void {
            Some(reason) => write!(f, ", VOID: {reason}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(requests: u64, late: u64) -> OpenLoopOutcome {
        let accepted = Latencies { count: 0, p50: 0, p90: 0, p99: 0, p999: 0, max: 0 };
        OpenLoopOutcome {
            accepted,
            statuses: BTreeMap::new(),
            requests_per_second: 0.0,
            requests,
            late,
            queued: 0,
            errors: Examples::default(),
            wrong: Examples::default(),
            violations: Examples::default(),
        }
    }

    #[test]
    fn late_or_busy_generator_makes_a_round_void() {
        assert_eq!(void_reason(&outcome(10_000, 10), 0.8), None);
        assert!(void_reason(&outcome(10_000, 11), 0.1).is_some());
        assert!(void_reason(&outcome(10_000, 0), 0.81).is_some());
    }
}
