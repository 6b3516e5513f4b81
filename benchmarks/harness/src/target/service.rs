//! The service, with and without Redis.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use chart_index_tests::{PrivateRedis, Service, ServiceOptions};

use super::{Catalogue, Role, Target};
use crate::cpu::Cores;

/// The programs to measure.
#[derive(Debug, Clone)]
pub(crate) struct ServicePrograms {
    service: PathBuf,
}

/// Where the service limits requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limits {
    /// In Redis, for all replicas: 240 requests in 60 s for each client.
    Redis,
    /// In memory, without Redis. The service has no switch that turns limits off; this is the form that costs least.
    Local,
}

impl ServicePrograms {
    /// The programs in a folder, by default that of this program.
    pub(crate) fn find(folder: Option<&Path>) -> Result<Self> {
        let own = std::env::current_exe()?;
        let folder = folder.or(own.parent()).context("this program is in no folder")?;
        let service = folder.join("chart-index");
        ensure!(
            service.is_file(),
            "{} does not exist: build it with `cargo build --release --bins`, or name its folder with --programs",
            service.display()
        );
        Ok(Self { service })
    }
}

/// Starts the service on a catalogue.
pub(crate) fn service(
    programs: &ServicePrograms,
    catalogue: &Catalogue,
    limits: Limits,
    cores: &Cores,
) -> Result<Target> {
    let _pinned = cores.on_servers()?;
    let redis = (limits == Limits::Redis).then(|| PrivateRedis::start(&[]));
    let url = redis.as_ref().map(PrivateRedis::url);
    let groups = ["LOOKUP", "ROX", "LIST", "DETAIL", "OTHER"].map(|group| format!("RATE_LIMIT_{group}"));
    let mut variables: Vec<(&str, &str)> = groups.iter().map(|group| (group.as_str(), "240")).collect();
    variables.push(("TRUSTED_PROXIES", "127.0.0.0/8"));
    variables.extend(url.as_deref().map(|url| ("REDIS_URL", url)));
    let options = ServiceOptions {
        variables: &variables,
        program: Some(&programs.service),
        ..ServiceOptions::default()
    };
    let service = Service::start_with(catalogue.url(), &options);
    let mut processes = vec![(Role::Server, service.process_id()), (Role::Postgres, catalogue.process_id()?)];
    if let Some(redis) = &redis {
        processes.push((Role::Redis, redis.process_id().parse()?));
    }
    let name = if limits == Limits::Redis { "service" } else { "service, local window" };
    Ok(Target::new(name, service.address(), processes, vec![Box::new(service), Box::new(redis)]))
}
