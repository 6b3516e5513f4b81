//! The service, with and without Redis.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use chart_index_tests::{PrivateRedis, Service, ServiceOptions};

use super::{Catalogue, Role, Target};
use crate::cpu::Cores;

/// The programs to measure.
#[derive(Debug, Clone)]
pub(crate) struct ServicePrograms {
    /// `chart-index`.
    pub(crate) service: PathBuf,
    /// `chart-indexer`, which fills Meilisearch.
    pub(crate) indexer: PathBuf,
}

/// How the service is run.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServiceForm {
    /// Without Redis, and so with limits in memory. The service has no switch that turns limits off; this is
    /// the form that costs least.
    pub(crate) local_window: bool,
    /// With next to no memory for responses, so that few are cached.
    pub(crate) small_cache: bool,
    /// A command that starts the service, such as valgrind.
    pub(crate) launcher: Vec<String>,
    /// Meilisearch, without which PostgreSQL answers lists.
    pub(crate) meilisearch: Option<String>,
}

/// Responses of about 1 KB: 200 of them.
const SMALL_CACHE: &str = "262144";

impl ServicePrograms {
    /// The programs in a folder, by default that of this program.
    pub(crate) fn find(folder: Option<&Path>) -> Result<Self> {
        let own = std::env::current_exe()?;
        let own = own.parent().context("this program is in no folder")?;
        let folder = folder.unwrap_or(own);
        // Only the service is measured; the indexer may be that of this build.
        let find = |name: &str| {
            [folder, own].map(|folder| folder.join(name)).into_iter().find(|path| path.is_file())
        };
        let service = folder.join("chart-index");
        ensure!(
            service.is_file(),
            "{} does not exist: build it with `cargo build --release --bins`, or name its folder with --programs",
            service.display()
        );
        Ok(Self { service, indexer: find("chart-indexer").unwrap_or_else(|| folder.join("chart-indexer")) })
    }
}

/// Starts the service on a catalogue.
pub(crate) fn service(
    programs: &ServicePrograms,
    catalogue: &Catalogue,
    form: &ServiceForm,
    cores: &Cores,
) -> Result<Target> {
    let _pinned = cores.on_servers()?;
    let redis = (!form.local_window).then(|| PrivateRedis::start(&[]));
    let url = redis.as_ref().map(PrivateRedis::url);
    let groups = ["LOOKUP", "ROX", "LIST", "DETAIL", "OTHER"].map(|group| format!("RATE_LIMIT_{group}"));
    let mut variables: Vec<(&str, &str)> = groups.iter().map(|group| (group.as_str(), "240")).collect();
    variables.push(("TRUSTED_PROXIES", "127.0.0.0/8"));
    if form.small_cache {
        variables.push(("CACHE_BYTES", SMALL_CACHE));
    }
    // The generated catalogue is older than any limit on the lag of the index.
    let search = [("MEILISEARCH_URL", form.meilisearch.as_deref()), ("SEARCH_MAX_LAG_MS", Some("3600000"))];
    variables.extend(search.into_iter().filter_map(|(variable, value)| Some((variable, value?))));
    variables.extend(url.as_deref().map(|url| ("REDIS_URL", url)));
    let launcher: Vec<&str> = form.launcher.iter().map(String::as_str).collect();
    let options = ServiceOptions {
        variables: &variables,
        launcher: &launcher,
        program: Some(&programs.service),
        ..ServiceOptions::default()
    };
    let service = Service::start_with(catalogue.url(), &options);
    let mut processes = vec![(Role::Server, service.process_id()), (Role::Postgres, catalogue.process_id()?)];
    if let Some(redis) = &redis {
        processes.push((Role::Redis, redis.process_id().parse()?));
    }
    let name = if form.local_window { "service, local window" } else { "service" };
    Ok(Target { redis, ..Target::new(name, service.address(), processes, Box::new(service)) })
}
