//! Lookups in a catalogue of a size, by turns with lookups in the smallest one.

use anyhow::Result;
use fastrand::Rng;
use serde::Serialize;

use crate::Effort;
use crate::catalogue::{Catalogue, Database};
use crate::replica::{Cost, Replica, ReplicaOptions, median};
use crate::requests::Distribution;

/// A kind of lookups.
struct Case {
    name: &'static str,
    distribution: Distribution,
    /// Whether PostgreSQL answers each.
    uncached: bool,
    /// The warm-up lasts as long as this number of loads.
    warm_up_loads: u32,
}

const CASES: [Case; 4] = [
    Case { name: "hot", distribution: Distribution::Hot, uncached: false, warm_up_loads: 1 },
    Case { name: "Zipf", distribution: Distribution::Zipf, uncached: false, warm_up_loads: 15 },
    Case { name: "uniform", distribution: Distribution::Uniform, uncached: false, warm_up_loads: 15 },
    Case {
        name: "uniform, not cached",
        distribution: Distribution::Uniform,
        uncached: true,
        warm_up_loads: 1,
    },
];
/// Different lookups of a run, repeated if it is longer.
const LOOKUPS: usize = 80_000;
/// The same for one connection.
const SEQUENTIAL_LOOKUPS: usize = 20_000;
/// The cases of the short form: only the first.
const SHORT_CASES: usize = 1;

/// Figures of lookups at a size.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LookupRow {
    pub(crate) charts: usize,
    pub(crate) case: &'static str,
    pub(crate) figures: Figures,
    /// The same in the smallest catalogue, by turns with these. `None` for that catalogue itself.
    pub(crate) reference: Option<Figures>,
}

/// Medians over the rounds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Figures {
    /// The median latency of lookups that are sent one after the other.
    pub(crate) p50_us: f64,
    /// CPU time per lookup over 16 connections.
    pub(crate) cost: Cost,
    /// Lookups per second over 16 connections.
    pub(crate) per_second: f64,
}

/// Measures each kind of lookup in the catalogue, by turns with the smallest.
pub(crate) fn measure(
    catalogue: &Catalogue,
    database: &Database,
    reference: Option<&Database>,
    effort: Effort,
) -> Result<Vec<LookupRow>> {
    CASES[..if effort.short { SHORT_CASES } else { CASES.len() }]
        .iter()
        .map(|case| {
            let databases: Vec<&Database> = [database].into_iter().chain(reference).collect();
            let mut figures = case.by_turns(catalogue, &databases, effort)?.into_iter();
            Ok(LookupRow {
                charts: database.hashes.len(),
                case: case.name,
                figures: figures.next().unwrap_or_else(|| unreachable!("there is a database")),
                reference: figures.next(),
            })
        })
        .collect()
}

impl Case {
    /// The figures of each database, measured by turns in alternating order.
    fn by_turns(
        &self,
        catalogue: &Catalogue,
        databases: &[&Database],
        effort: Effort,
    ) -> Result<Vec<Figures>> {
        // Without a Redis, which would hold what memory does not.
        let options =
            ReplicaOptions { redis: !self.uncached, uncached: self.uncached, ..ReplicaOptions::default() };
        let mut random = Rng::with_seed(1);
        let replicas: Vec<_> = databases
            .iter()
            .map(|database| (Replica::start(catalogue, database, options), *database))
            .collect();
        for (replica, database) in &replicas {
            let lookups = self.distribution.lookups(&database.hashes, 5 * LOOKUPS, &mut random);
            replica.wrk(16, effort.seconds_of(self.warm_up_loads)).run(&lookups)?.successful()?;
        }
        let mut rounds = vec![Vec::new(); replicas.len()];
        for round in 0..effort.rounds {
            let mut order: Vec<usize> = (0..replicas.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for place in order {
                let (replica, database) = &replicas[place];
                let count = LOOKUPS + SEQUENTIAL_LOOKUPS;
                let lookups = self.distribution.lookups(&database.hashes, count, &mut random);
                rounds[place].push(figures(replica, &lookups, effort)?);
            }
        }
        Ok(rounds.iter().map(|rounds| Figures::median(rounds)).collect())
    }
}

fn figures(replica: &Replica<'_>, lookups: &[String], effort: Effort) -> Result<Figures> {
    let (sequential, concurrent) = lookups.split_at(SEQUENTIAL_LOOKUPS);
    let p50_us = replica.wrk(1, effort.seconds).run(sequential)?.successful()?.p50_us;
    let (run, cost) = replica.load(replica.wrk(16, effort.seconds), concurrent)?;
    Ok(Figures { p50_us, cost, per_second: run.per_second })
}

impl Figures {
    fn median(rounds: &[Self]) -> Self {
        let costs: Vec<_> = rounds.iter().map(|figures| figures.cost).collect();
        Self {
            p50_us: median(rounds.iter().map(|figures| figures.p50_us)),
            cost: Cost::median(&costs),
            per_second: median(rounds.iter().map(|figures| figures.per_second)),
        }
    }
}
