//! Compares targets side by side, in one run.

mod result;
mod variants;

use anyhow::{Context, Result};

pub(crate) use result::{Comparison, TargetResult};

use crate::cpu::Cores;
use crate::round::Schedule;
use crate::scenario::Scenario;
use crate::target::{Catalogue, SearchNode, ServicePrograms};

/// What comparisons need.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) catalogue: Catalogue,
    pub(crate) programs: ServicePrograms,
    /// Holds the catalogue; `None` if it is not installed or not needed.
    pub(crate) search_node: Option<SearchNode>,
    pub(crate) cores: Cores,
    pub(crate) schedule: Schedule,
    pub(crate) connections: usize,
}

impl Setup {
    /// Compares the targets of scenarios, one scenario after the other. Scenarios without their servers are skipped with a message.
    pub(crate) async fn compare_all(&self, scenarios: &[Scenario]) -> Result<Vec<Comparison>> {
        let mut comparisons = Vec::new();
        for scenario in scenarios {
            if scenario.needs_search() && self.search_node.is_none() {
                crate::progress(&format!("SKIPPED: {}: meilisearch is not on the PATH", scenario.name()));
                continue;
            }
            let comparison = self.compare(*scenario).await.with_context(|| scenario.name())?;
            crate::progress(&format!("\n{}", crate::report::comparison_table(&comparison)));
            comparisons.push(comparison);
        }
        Ok(comparisons)
    }

    async fn compare(&self, scenario: Scenario) -> Result<Comparison> {
        crate::progress(&format!("{}: starting the servers", scenario.name()));
        let variants = self.variants(scenario).await?;
        let rounds = self.schedule.run(&variants, &self.cores).await?;
        Ok(Comparison {
            scenario: scenario.name(),
            rounds: self.schedule.rounds,
            seconds: self.schedule.seconds,
            connections: self.connections,
            targets: TargetResult::all(&variants, rounds),
        })
    }
}
