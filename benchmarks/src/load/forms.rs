//! The forms of a run over all scenarios: a short one, and a long one.

use clap::ValueEnum;

use crate::round::Schedule;
use crate::scenario::Scenario;

/// How long void rounds are repeated unless the run has to be short.
pub(crate) const REPETITION_SECONDS: u64 = 24;

/// How long a run takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A few seconds, to try the harness itself
    Trial,
    /// Under five minutes
    Short,
    /// About 45 minutes, the first time an hour
    Full,
}

/// What a run does.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) charts: u64,
    pub(crate) compared: &'static [Scenario],
    pub(crate) comparison: Schedule,
    /// Scenarios whose latencies are measured, with the rounds of each.
    pub(crate) measured: Vec<(&'static [Scenario], Schedule)>,
    /// Scenarios whose instructions are counted.
    pub(crate) counted: &'static [Scenario],
}

const COMPARED: &[Scenario] = &[
    Scenario::LookupHot,
    Scenario::LookupNotModified,
    Scenario::Rox6k,
    Scenario::Rox60k,
    Scenario::LookupMiss,
    Scenario::ListHot,
];
const ALL_COMPARED: &[Scenario] = &[
    Scenario::LookupHot,
    Scenario::LookupNotModified,
    Scenario::LookupZipf,
    Scenario::LookupMiss,
    Scenario::UnknownHashes,
    Scenario::Rox6k,
    Scenario::Rox60k,
    Scenario::ListHot,
    Scenario::ListZipf,
    Scenario::ListMiss,
    Scenario::DeepPages,
];
const MEASURED: &[Scenario] = &[Scenario::LookupHot, Scenario::Browse, Scenario::Abuser, Scenario::Overload];
/// Their clients are admitted again when the window of the limit has passed.
const MEASURED_OVER_A_WINDOW: &[Scenario] = &[Scenario::Browse, Scenario::Abuser];
/// Thousands of requests per second: short rounds, of which more are not void.
const MEASURED_IN_SHORT_ROUNDS: &[Scenario] = &[
    Scenario::LookupHot,
    Scenario::LookupNotModified,
    Scenario::LookupZipf,
    Scenario::UnknownHashes,
    Scenario::Rox6k,
    Scenario::ListHot,
];
const ALL_OTHERS_MEASURED: &[Scenario] =
    &[Scenario::LookupMiss, Scenario::ListZipf, Scenario::DeepPages, Scenario::Overload];

impl Form {
    /// The name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Trial => "trial",
            Self::Short => "short",
            Self::Full => "full",
        }
    }

    /// What a run of this form does.
    pub(crate) fn plan(self) -> Plan {
        let schedule = |rounds, seconds| Schedule { rounds, seconds, repetition_seconds: 0 };
        let repeated = |rounds, seconds| Schedule {
            repetition_seconds: REPETITION_SECONDS,
            ..schedule(rounds, seconds)
        };
        match self {
            Self::Trial => Plan {
                charts: 1_000,
                compared: &[Scenario::LookupHot, Scenario::LookupMiss],
                comparison: schedule(1, 1),
                measured: vec![(&[Scenario::Abuser], schedule(1, 2))],
                counted: &[],
            },
            Self::Short => Plan {
                charts: 10_000,
                compared: COMPARED,
                comparison: schedule(5, 1),
                measured: vec![(MEASURED, schedule(3, 2))],
                counted: &[Scenario::LookupHot],
            },
            Self::Full => Plan {
                charts: 1_000_000,
                compared: ALL_COMPARED,
                comparison: schedule(6, 5),
                measured: vec![
                    (MEASURED_IN_SHORT_ROUNDS, repeated(5, 2)),
                    (ALL_OTHERS_MEASURED, repeated(3, 10)),
                    (MEASURED_OVER_A_WINDOW, schedule(3, 65)),
                ],
                counted: &[
                    Scenario::LookupHot,
                    Scenario::LookupNotModified,
                    Scenario::UnknownHashes,
                    Scenario::Rox6k,
                    Scenario::ListHot,
                ],
            },
        }
    }
}
