//! Compares targets side by side, in one run.

mod result;
mod variants;

use anyhow::Result;

pub(crate) use result::Comparison;
use result::TargetResult;

use crate::cpu::Cores;
use crate::round::Schedule;
use crate::scenario::Scenario;
use crate::target::{Catalogue, SearchNode, ServicePrograms};

/// What all measurements need.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) catalogue: Catalogue,
    pub(crate) programs: ServicePrograms,
    /// Holds the catalogue; `None` if it is not installed or not needed.
    pub(crate) search_node: Option<SearchNode>,
    pub(crate) cores: Cores,
    /// Connections of wrk.
    pub(crate) connections: usize,
}

impl Setup {
    /// Compares the targets of a scenario.
    pub(crate) async fn compare(&self, scenario: Scenario, schedule: Schedule) -> Result<Comparison> {
        crate::progress(&format!("{}: starting the servers", scenario.name()));
        let variants = self.variants(scenario).await?;
        let rounds = schedule.run(&variants, &self.cores).await?;
        Ok(Comparison {
            scenario: scenario.name(),
            rounds: schedule.rounds,
            seconds: schedule.seconds,
            connections: self.connections,
            targets: TargetResult::all(&variants, rounds),
        })
    }
}
