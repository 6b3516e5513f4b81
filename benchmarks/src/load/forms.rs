//! What a run measures. The forms cover all scenarios.

use clap::ValueEnum;

use crate::round::Schedule;
use crate::scenario::Scenario;

/// How long void rounds are repeated unless the run has to be short.
pub(crate) const REPETITION_SECONDS: u64 = 24;

/// How long a run takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A few seconds, to try the load tests themselves
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
    pub(crate) steps: Vec<Step>,
}

/// A scenario, and what is measured of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) scenario: Scenario,
    pub(crate) measurement: Measurement,
}

/// What is measured of a scenario.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Measurement {
    /// Requests per second and CPU time.
    Comparison(Schedule),
    /// Latencies, by default at a rate that follows from what the service can serve.
    Latency { schedule: Schedule, rate: Option<u32> },
    /// Instructions of the service.
    Instructions,
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
const COUNTED: &[Scenario] = &[
    Scenario::LookupHot,
    Scenario::LookupNotModified,
    Scenario::UnknownHashes,
    Scenario::Rox6k,
    Scenario::ListHot,
];

impl Form {
    /// What a run of this form does.
    pub(crate) fn plan(self) -> Plan {
        let compared =
            |rounds, seconds| Measurement::Comparison(Schedule { rounds, seconds, repetition_seconds: 0 });
        let measured = |rounds, seconds, repetition_seconds| Measurement::Latency {
            schedule: Schedule { rounds, seconds, repetition_seconds },
            rate: None,
        };
        let (charts, measurements): (u64, Vec<(&[Scenario], Measurement)>) = match self {
            Self::Trial => (
                1_000,
                vec![
                    (&[Scenario::LookupHot, Scenario::LookupMiss], compared(1, 1)),
                    (&[Scenario::Abuser], measured(1, 2, 0)),
                ],
            ),
            Self::Short => (
                10_000,
                vec![
                    (COMPARED, compared(5, 1)),
                    (MEASURED, measured(3, 2, 0)),
                    (&[Scenario::LookupHot], Measurement::Instructions),
                ],
            ),
            Self::Full => (
                1_000_000,
                vec![
                    (ALL_COMPARED, compared(6, 5)),
                    (MEASURED_IN_SHORT_ROUNDS, measured(5, 2, REPETITION_SECONDS)),
                    (ALL_OTHERS_MEASURED, measured(3, 10, REPETITION_SECONDS)),
                    (MEASURED_OVER_A_WINDOW, measured(3, 65, 0)),
                    (COUNTED, Measurement::Instructions),
                ],
            ),
        };
        let steps = measurements.into_iter().flat_map(|(scenarios, measurement)| {
            scenarios.iter().map(move |&scenario| Step { scenario, measurement })
        });
        Plan { charts, steps: steps.collect() }
    }
}
