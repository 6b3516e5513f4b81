//! The URLs that caches may have of what was removed (docs/operations/removals.md, "Caches").

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use chart_index_domain::Entity;
use clap::Args;
use reqwest::Url;

use crate::instance::parse_base;

/// What may show any entry, and is cached for five minutes or longer. A `*` stands for anything.
const SHARED: [&str; 4] = ["/api/changes?*", "/api/exports/*", "/api/charts/*?include=*", "/api/variants/*"];

/// How to purge caches.
#[derive(Debug, Args)]
pub(crate) struct PurgeArguments {
    /// Public URL of the index, e.g. `https://charts.example`, for the URLs to purge. Without it they are paths
    #[arg(long, env = "PUBLIC_URL", value_name = "URL", global = true, value_parser = parse_base)]
    public_url: Option<Url>,
    /// Program that gets the URLs to purge on its standard input, one a line
    #[arg(long, env = "PURGE_COMMAND", value_name = "PROGRAM", global = true)]
    purge_command: Option<PathBuf>,
}

impl PurgeArguments {
    /// Prints the URLs of these charts and chartsets, and passes them to the program.
    ///
    /// # Errors
    /// The program cannot be run, or fails.
    pub(crate) fn purge(&self, entities: &[Entity]) -> Result<()> {
        let base = self.public_url.as_ref().map_or("", |url| url.as_str().trim_end_matches('/'));
        let urls: Vec<String> = paths(entities).map(|path| format!("{base}{path}")).collect();
        let mut output = std::io::stdout().lock();
        for url in &urls {
            writeln!(output, "purge {url}")?;
        }
        let Some(program) = &self.purge_command else { return Ok(()) };
        let name = program.display();
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run PURGE_COMMAND {name}"))?;
        if let Some(mut input) = child.stdin.take() {
            // It fails if the program ends without reading: its exit status says whether that is an error.
            let _ = input.write_all((urls.join("\n") + "\n").as_bytes());
        }
        let status = child.wait().with_context(|| format!("cannot run PURGE_COMMAND {name}"))?;
        ensure!(status.success(), "the entries are removed, but PURGE_COMMAND {name} failed: {status}");
        Ok(())
    }
}

fn paths(entities: &[Entity]) -> impl Iterator<Item = String> {
    let of_entity = |entity: &Entity| match entity {
        Entity::Chart(hash) => vec![
            format!("/api/charts/{hash}"),
            format!("/api/charts/{hash}/rox"),
            format!("/api/charts/{hash}/preview"),
            format!("/charts/{hash}"),
        ],
        Entity::Chartset(id) => {
            vec![format!("/api/chartsets/{id}"), format!("/go/chartset/{id}"), format!("/chartsets/{id}")]
        }
    };
    entities.iter().flat_map(of_entity).chain(SHARED.map(str::to_owned))
}
