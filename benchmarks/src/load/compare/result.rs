//! The medians of a comparison.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::round::{MaybeVoid, Round, Variant, median_of_rounds, median_ratio};
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
    /// Whether every round was void: then the generator was the limit, so that requests per second are a lower
    /// bound. CPU times per request are still those of the target.
    pub(crate) is_void: bool,
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
        let cpu_us = Role::ALL.into_iter().filter_map(|role| {
            let time = median_of_rounds(&rounds, |round| round.cpu_us.get(role.name()).copied());
            Some((role.name(), time?))
        });
        Self {
            name,
            requests_per_second: median_of_rounds(&rounds, |round| Some(round.requests_per_second)),
            cpu_us: cpu_us.collect(),
            bytes_per_response: median_of_rounds(&rounds, |round| Some(round.bytes_per_response)),
            void: rounds.iter().filter(|round| round.is_void()).count(),
            is_void: rounds.iter().all(MaybeVoid::is_void),
            ratios: Ratios::new(&rounds, reference),
            rounds,
        }
    }
}

impl Ratios {
    fn new(rounds: &[Round], reference: &[Round]) -> Self {
        let ratio = |value: fn(&Round) -> f64| median_ratio(rounds, reference, value);
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

    fn round(requests_per_second: f64, server: f64, is_valid: bool) -> Round {
        let cpu_us = BTreeMap::from([("server", server)]);
        let void = (!is_valid).then(|| "busy".to_owned());
        Round {
            requests_per_second,
            cpu_us,
            bytes_per_response: 1_000.0,
            generator_busy: 0.5,
            generator_own: 0.5,
            other_load: 0.0,
            void,
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
        assert!(!result.is_void);
    }

    #[test]
    fn void_rounds_count_if_there_are_no_others() {
        let reference = [round(100.0, 10.0, false), round(100.0, 20.0, false)];
        let result =
            TargetResult::new("a", vec![round(50.0, 5.0, true), round(50.0, 10.0, true)], &reference);
        assert_eq!(result.ratios.server_cpu, Some(0.5));
        assert!(TargetResult::new("a", reference.to_vec(), &reference).is_void);
    }
}
