//! A Meilisearch node with the catalogue.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use chart_index_tests::PrivateMeilisearch;

use super::{Catalogue, ServicePrograms};
use crate::cpu::Cores;

/// A node that holds the catalogue. Dropping the value ends it.
#[derive(Debug)]
pub(crate) struct SearchNode {
    node: PrivateMeilisearch,
}

impl SearchNode {
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
}
