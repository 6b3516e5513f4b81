//! Compares targets side by side, in one run.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use chart_index_tests::Client;
use serde::Serialize;

use crate::cpu::Cores;
use crate::generator::Wrk;
use crate::round::{Round, Schedule, median};
use crate::scenario::{Requests, Scenario};
use crate::target::{
    CachedFile, Catalogue, Limits, PlainHandler, Role, ServicePrograms, Target, files, proxy_cache, service,
};

/// Client addresses.
pub(crate) const CLIENTS: u32 = 1_000_000;

/// The medians of all targets.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) scenario: &'static str,
    pub(crate) rounds: usize,
    pub(crate) seconds: u64,
    pub(crate) connections: usize,
    pub(crate) server_cores: Vec<usize>,
    pub(crate) generator_cores: Vec<usize>,
    pub(crate) targets: Vec<TargetResult>,
}

/// The medians of one target, without void rounds.
#[derive(Debug, Serialize)]
pub(crate) struct TargetResult {
    pub(crate) name: &'static str,
    pub(crate) requests_per_second: Option<f64>,
    pub(crate) cpu_us: BTreeMap<&'static str, f64>,
    pub(crate) bytes_per_response: Option<f64>,
    /// Void rounds.
    pub(crate) void: usize,
    pub(crate) ratios: Ratios,
    pub(crate) rounds: Vec<Round>,
}

/// Medians of the ratios to the first target in the same round.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Ratios {
    pub(crate) requests_per_second: Option<f64>,
    pub(crate) server_cpu: Option<f64>,
    /// With Redis and PostgreSQL.
    pub(crate) total_cpu: Option<f64>,
}

/// What a comparison needs.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) catalogue: Catalogue,
    pub(crate) programs: ServicePrograms,
    pub(crate) cores: Cores,
    pub(crate) schedule: Schedule,
    pub(crate) connections: usize,
}

impl Setup {
    /// Compares all targets of a scenario.
    pub(crate) async fn compare(&self, scenario: Scenario) -> Result<Comparison> {
        let requests = scenario.requests(&self.catalogue)?;
        let targets = self.targets(&requests).await?;
        check_same_bodies(&targets, &requests).await?;
        let wrk = Wrk::new(&requests.paths, &requests.headers, CLIENTS, self.connections, &self.cores)?;
        let rounds = self.schedule.run(&targets, &wrk, &self.cores).await?;
        Ok(self.comparison(scenario, &targets, rounds))
    }

    /// nginx first: the others are compared with it.
    async fn targets(&self, requests: &Requests) -> Result<Vec<Target>> {
        let service = |limits| service(&self.programs, &self.catalogue, limits, &self.cores);
        let with_redis = service(Limits::Redis)?;
        let cached = responses(&with_redis, &requests.paths).await?;
        Ok(vec![
            files(&cached, &self.cores)?,
            proxy_cache(PlainHandler::start(&self.catalogue, &self.cores)?, &self.cores)?,
            service(Limits::Local)?,
            with_redis,
        ])
    }

    fn comparison(&self, scenario: Scenario, targets: &[Target], rounds: Vec<Vec<Round>>) -> Comparison {
        let reference = rounds.first().cloned().unwrap_or_default();
        let results = targets
            .iter()
            .zip(rounds)
            .map(|(target, rounds)| TargetResult::new(target.name, rounds, &reference));
        Comparison {
            scenario: scenario.name(),
            rounds: self.schedule.rounds,
            seconds: self.schedule.seconds,
            connections: self.connections,
            server_cores: self.cores.servers().to_vec(),
            generator_cores: self.cores.generator().to_vec(),
            targets: results.collect(),
        }
    }
}

/// The responses of the service, for nginx to serve as files.
async fn responses(target: &Target, paths: &[String]) -> Result<Vec<CachedFile>> {
    let client = Client::new(target.address);
    let mut files = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let address = forwarded_for(number);
        let response = client.get_with(path, &[("x-forwarded-for", &address)]).await;
        ensure!(response.status == 200, "{}{path}: {}", target.name, response.status);
        files.push(CachedFile { path: path.clone(), response });
    }
    Ok(files)
}

/// Requests every path from every target, which also fills their caches, and compares the bodies with those of the first one.
async fn check_same_bodies(targets: &[Target], requests: &Requests) -> Result<()> {
    let headers: Vec<(&str, &str)> =
        requests.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let clients: Vec<Client> = targets.iter().map(|target| Client::new(target.address)).collect();
    for (number, path) in requests.paths.iter().enumerate() {
        let mut expected = None;
        for (target, client) in targets.iter().zip(&clients) {
            let address = forwarded_for(number);
            let headers = [headers.as_slice(), &[("x-forwarded-for", address.as_str())]].concat();
            let response = client.get_with(path, &headers).await;
            ensure!(response.status == requests.status, "{}: {path}: {}", target.name, response.status);
            let expected = expected.get_or_insert_with(|| response.body.clone());
            ensure!(*expected == response.body, "{} and {} differ: {path}", targets[0].name, target.name);
        }
    }
    Ok(())
}

/// An address outside of those of the generator.
fn forwarded_for(number: usize) -> String {
    format!("192.168.{}.{}", number / 200 % 200, number % 200)
}

impl TargetResult {
    fn new(name: &'static str, rounds: Vec<Round>, reference: &[Round]) -> Self {
        let valid = || rounds.iter().filter(|round| round.valid);
        let cpu_us = Role::ALL.into_iter().filter_map(|role| {
            let times = valid().filter_map(|round| round.cpu_us.get(role.name()).copied());
            median(times).map(|time| (role.name(), time))
        });
        Self {
            name,
            requests_per_second: median(valid().map(|round| round.requests_per_second)),
            cpu_us: cpu_us.collect(),
            bytes_per_response: median(valid().map(|round| round.bytes_per_response)),
            void: rounds.iter().filter(|round| round.void.is_some()).count(),
            ratios: Ratios::new(&rounds, reference),
            rounds,
        }
    }
}

impl Ratios {
    fn new(rounds: &[Round], reference: &[Round]) -> Self {
        let pairs = || rounds.iter().zip(reference).filter(|(round, first)| round.valid && first.valid);
        let server = |round: &Round| round.cpu_us.get(Role::Server.name()).copied().unwrap_or_default();
        let total = |round: &Round| round.cpu_us.values().sum::<f64>();
        Self {
            requests_per_second: median(
                pairs().map(|(round, first)| round.requests_per_second / first.requests_per_second),
            ),
            server_cpu: median(pairs().map(|(round, first)| server(round) / server(first))),
            total_cpu: median(pairs().map(|(round, first)| total(round) / total(first))),
        }
    }
}

/// Compares scenarios one after the other.
pub(crate) async fn compare_all(setup: &Setup, scenarios: &[Scenario]) -> Result<Vec<Comparison>> {
    let mut comparisons = Vec::new();
    for scenario in scenarios {
        let comparison = setup.compare(*scenario).await.with_context(|| scenario.name())?;
        crate::progress(&format!("\n{}", crate::report::comparison_table(&comparison)));
        comparisons.push(comparison);
    }
    Ok(comparisons)
}
