//! The medians of a comparison.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::round::{Round, Variant, median};
use crate::target::Role;

/// The medians of all targets.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) scenario: String,
    pub(crate) rounds: usize,
    pub(crate) seconds: u64,
    pub(crate) connections: usize,
    pub(crate) targets: Vec<TargetResult>,
}

/// The medians of one target, without void rounds unless all are void.
#[derive(Debug, Serialize)]
pub(crate) struct TargetResult {
    pub(crate) name: &'static str,
    pub(crate) requests_per_second: Option<f64>,
    /// CPU time per request in microseconds, by role.
    pub(crate) cpu_us: BTreeMap<&'static str, f64>,
    pub(crate) bytes_per_response: Option<f64>,
    /// Void rounds.
    pub(crate) void: usize,
    /// Whether every round was void: the target can serve at least these requests per second.
    pub(crate) is_lower_bound: bool,
    pub(crate) ratios: Ratios,
    pub(crate) rounds: Vec<Round>,
}

/// Medians of the ratios to the first target in the same round.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Ratios {
    pub(crate) requests_per_second: Option<f64>,
    pub(crate) bytes_per_second: Option<f64>,
    pub(crate) server_cpu: Option<f64>,
    /// With Redis and PostgreSQL.
    pub(crate) total_cpu: Option<f64>,
}

impl TargetResult {
    /// The medians of the rounds of each variant. The first one is the reference.
    pub(super) fn all(variants: &[Variant], rounds: Vec<Vec<Round>>) -> Vec<Self> {
        let reference = rounds.first().cloned().unwrap_or_default();
        let results =
            variants.iter().zip(rounds).map(|(variant, rounds)| Self::new(variant.name, rounds, &reference));
        results.collect()
    }

    fn new(name: &'static str, rounds: Vec<Round>, reference: &[Round]) -> Self {
        let counted = || rounds.iter().filter(|round| counts(round, &rounds));
        let cpu_us = Role::ALL.into_iter().filter_map(|role| {
            let times = counted().filter_map(|round| round.cpu_us.get(role.name()).copied());
            median(times).map(|time| (role.name(), time))
        });
        Self {
            name,
            requests_per_second: median(counted().map(|round| round.requests_per_second)),
            cpu_us: cpu_us.collect(),
            bytes_per_response: median(counted().map(|round| round.bytes_per_response)),
            void: rounds.iter().filter(|round| round.void.is_some()).count(),
            is_lower_bound: !rounds.iter().any(|round| round.void.is_none()),
            ratios: Ratios::new(&rounds, reference),
            rounds,
        }
    }
}

/// Whether a round counts: those that are not void, or all if every one is void. Then the generator was the limit, so that requests
/// per second are a lower bound; CPU times per request are still those of the target.
fn counts(round: &Round, rounds: &[Round]) -> bool {
    round.valid || !rounds.iter().any(|round| round.valid)
}

impl Ratios {
    fn new(rounds: &[Round], reference: &[Round]) -> Self {
        let ratio = |value: fn(&Round) -> f64| {
            let pairs = rounds.iter().zip(reference);
            let pairs = pairs.filter(|(round, first)| counts(round, rounds) && counts(first, reference));
            median(pairs.map(|(round, first)| value(round) / value(first)).filter(|ratio| ratio.is_finite()))
        };
        Self {
            requests_per_second: ratio(|round| round.requests_per_second),
            bytes_per_second: ratio(|round| round.requests_per_second * round.bytes_per_response),
            server_cpu: ratio(|round| round.cpu_us.get(Role::Server.name()).copied().unwrap_or(f64::NAN)),
            total_cpu: ratio(|round| round.cpu_us.values().sum()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(requests_per_second: f64, server: f64, valid: bool) -> Round {
        let cpu_us = BTreeMap::from([("server", server)]);
        let void = (!valid).then(|| "busy".to_owned());
        Round {
            requests_per_second,
            cpu_us,
            bytes_per_response: 1_000.0,
            generator_busy: 0.5,
            generator_own: 0.5,
            other_load: 0.0,
            void,
            valid,
        }
    }

    #[test]
    fn ratios_are_of_the_same_round_and_without_void_ones() {
        let reference = [round(100.0, 10.0, true), round(50.0, 20.0, true), round(1.0, 1.0, true)];
        let rounds = vec![round(50.0, 5.0, true), round(25.0, 10.0, true), round(1.0, 1.0, false)];
        let result = TargetResult::new("a", rounds, &reference);
        assert_eq!(result.ratios.requests_per_second, Some(0.5));
        assert_eq!(result.ratios.server_cpu, Some(0.5));
        assert_eq!((result.void, result.requests_per_second), (1, Some(37.5)));
        assert!(!result.is_lower_bound);
    }

    #[test]
    fn void_rounds_count_if_there_are_no_others() {
        let reference = [round(100.0, 10.0, false), round(100.0, 20.0, false)];
        let result =
            TargetResult::new("a", vec![round(50.0, 5.0, true), round(50.0, 10.0, true)], &reference);
        assert_eq!(result.ratios.server_cpu, Some(0.5));
        assert!(TargetResult::new("a", reference.to_vec(), &reference).is_lower_bound);
    }
}
