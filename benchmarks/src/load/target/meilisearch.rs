//! A Meilisearch node with the catalogue, and the searches that the service sends to it.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use chart_index_tests::{PrivateMeilisearch, Service, ServiceOptions, http_client_builder};

use super::recording_proxy::{self, RecordingProxy};
use super::{Catalogue, Role, ServicePrograms, Target};
use crate::cpu::Cores;

/// A node that holds the catalogue. Dropping the value ends it.
#[derive(Debug)]
pub(crate) struct SearchNode {
    node: PrivateMeilisearch,
}

impl SearchNode {
    /// Where searches of the index are sent.
    pub(crate) const SEARCH_PATH: &str = recording_proxy::SEARCH_PATH;

    /// Starts a node and fills it from the catalogue. `None` if Meilisearch is not installed: no package
    /// registry has it.
    pub(crate) fn start(
        programs: &ServicePrograms,
        catalogue: &Catalogue,
        cores: &Cores,
    ) -> Result<Option<Self>> {
        if PrivateMeilisearch::program().is_none() {
            return Ok(None);
        }
        let _pinned = cores.on_servers()?;
        let node = PrivateMeilisearch::start();
        crate::progress("filling Meilisearch");
        let output = Command::new(&programs.indexer)
            .arg("rebuild")
            .env("DATABASE_URL", catalogue.url())
            .env("MEILISEARCH_URL", node.url())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("{} does not start", programs.indexer.display()))?;
        ensure!(output.status.success(), "rebuild failed: {}", String::from_utf8_lossy(&output.stderr));
        Ok(Some(Self { node }))
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        self.node.url()
    }

    /// The version of the server.
    pub(crate) fn version(&self) -> String {
        self.node.version()
    }

    /// The node as a target of its own. It stays until this value is dropped.
    pub(crate) fn target(&self) -> Target {
        let processes = vec![(Role::Server, self.node.process_id())];
        Target::new("Meilisearch", self.node.address(), processes, Vec::new())
    }

    /// The bodies of the searches that the service sends for these lists.
    pub(crate) async fn searches(
        &self,
        programs: &ServicePrograms,
        catalogue: &Catalogue,
        paths: &[String],
    ) -> Result<Vec<String>> {
        let proxy = RecordingProxy::start(&self.url())?;
        let variables =
            [("MEILISEARCH_URL", proxy.url()), ("SEARCH_MAX_LAG_MS", "3600000"), ("CACHE_BYTES", "4194304")];
        let options = ServiceOptions {
            variables: &variables,
            program: Some(&programs.service),
            ..ServiceOptions::default()
        };
        let service = Service::start_with(catalogue.url(), &options);
        let http = http_client_builder().build()?;
        proxy.searches_of(&service, &http, paths).await
    }
}
