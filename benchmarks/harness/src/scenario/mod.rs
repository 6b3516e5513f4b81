//! What is requested, and the expected responses.

use anyhow::{Result, bail};

use crate::target::Catalogue;

/// The charts that all requests of a hot scenario share.
const HOT_CHARTS: usize = 1_000;

/// A scenario by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scenario {
    /// Lookups of 1,000 charts that every cache has
    LookupHot,
}

/// The requests of a scenario.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    /// Paths with query strings, which are requested in turn.
    pub(crate) paths: Vec<String>,
    /// Headers of every request.
    pub(crate) headers: Vec<(String, String)>,
    /// The status of every response.
    pub(crate) status: u16,
}

impl Scenario {
    /// The name on the command line and in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::LookupHot => "lookup-hot",
        }
    }

    /// The requests on a catalogue.
    pub(crate) fn requests(self, catalogue: &Catalogue) -> Result<Requests> {
        let hashes = catalogue.hashes(HOT_CHARTS)?;
        if hashes.is_empty() {
            bail!("the catalogue has no charts");
        }
        let paths = match self {
            Self::LookupHot => hashes.iter().map(|hash| format!("/api/charts/{hash}")).collect(),
        };
        Ok(Requests { paths, headers: Vec::new(), status: 200 })
    }
}
