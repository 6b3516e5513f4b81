//! `chart-indexer status`: prints the state of the catalogue, and of what follows it.

use std::path::PathBuf;

use anyhow::Result;
use chart_index_cli::{Causes, format_age};
use chart_index_domain::{CataloguePoll, Position};
use chart_index_search::{MeilisearchArguments, NodeReport, NodeUrl, SearchConfig, SearchError, describe};
use chart_index_store::{CatalogueCounts, HashFilterState, LastIngest, MirrorState, ServerReport, Store};
use clap::Args;
use indicatif::HumanBytes;
use serde_json::{Value, json};

use crate::export::{NewestExport, newest_export};
use crate::report::plural;
use crate::stdout;

/// What `status` prints, and how.
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Folder of the exports, of which the newest is printed
    #[arg(long, env = "EXPORTS_DIR", value_name = "FOLDER")]
    exports_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) meilisearch: MeilisearchArguments,
}

/// Prints the state on standard output. A node that is unavailable is part of it.
///
/// # Errors
/// PostgreSQL or the folder of the exports cannot be read.
pub(crate) async fn status(store: &Store, arguments: &StatusArguments) -> Result<()> {
    let status = Status::read(store, arguments).await?;
    if arguments.json {
        return Ok(stdout::write_json(&mut std::io::stdout(), &status.to_json())?);
    }
    for (name, text) in status.lines() {
        stdout::print(format_args!("{name:<12} {text}"))?;
    }
    Ok(())
}

struct Status {
    server: ServerReport,
    counts: CatalogueCounts,
    removals: usize,
    feed: CataloguePoll,
    ingest: Option<LastIngest>,
    filter: Option<HashFilterState>,
    nodes: Vec<(NodeUrl, Result<NodeReport, SearchError>)>,
    /// With the number of refused changes.
    mirror: Option<(MirrorState, u64)>,
    purged: Option<Position>,
    export: Option<NewestExport>,
}

impl Status {
    async fn read(store: &Store, arguments: &StatusArguments) -> Result<Self> {
        let export = match &arguments.exports_dir {
            Some(folder) => newest_export(store, folder).await?,
            None => None,
        };
        let mirror = match store.mirror_state().await? {
            Some(state) => Some((state, store.count_refusals().await?)),
            None => None,
        };
        Ok(Self {
            server: store.server_report().await?,
            counts: store.counts().await?,
            removals: store.removals().await?.len(),
            // Without any change.
            feed: store.poll_catalogue(u64::MAX).await?,
            ingest: store.last_ingest().await?,
            filter: store.hash_filter_state(i64::MAX.unsigned_abs()).await?,
            nodes: describe(&SearchConfig::new(arguments.meilisearch.nodes()?), store).await,
            mirror,
            purged: store.purge_position().await?,
            export,
        })
    }

    /// The object of `--json` (docs/operations/monitoring.md, "State").
    fn to_json(&self) -> Value {
        json!({
            "postgresql": self.server.version,
            "databaseBytes": self.server.database_bytes,
            "chartsets": self.counts.chartsets,
            "charts": self.counts.charts,
            "removals": self.removals,
            "feed": { "sequence": self.feed.position.sequence, "lineage": self.feed.lineage },
            "lastIngest": self.ingest.map(|ingest| json!({
                "beganAtMs": ingest.began_at_ms,
                "completedAtMs": ingest.completed_at_ms,
            })),
            "hashFilter": self.filter.map(|filter| json!({
                "hashes": filter.hashes,
                "builtAtMs": filter.built_at_ms,
                "changedCharts": filter.changed_charts,
            })),
            "nodes": self.nodes.iter().map(|(url, node)| node_json(url, node)).collect::<Vec<_>>(),
            "mirror": self.mirror.as_ref().map(|(mirror, refusals)| json!({
                "upstream": mirror.upstream,
                "sequence": mirror.sequence,
                "isStarting": mirror.is_starting,
                "refusals": refusals,
            })),
            "purged": self.purged.map(|position| position.sequence),
            "export": self.export.as_ref().map(|NewestExport { folder, manifest: export, is_withdrawn }| json!({
                "path": folder,
                "sequence": export.sequence,
                "exportedAtMs": export.exported_at_ms,
                "chartsets": export.chartsets,
                "charts": export.charts,
                "isWithdrawn": is_withdrawn,
            })),
        })
    }

    /// The lines of the text, as names and values.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let Self { server, counts, feed, .. } = self;
        let none = || "none".to_owned();
        let mut lines = vec![
            ("postgresql", format!("{}, {}", server.version, HumanBytes(server.database_bytes))),
            ("catalogue", sizes(counts.chartsets, counts.charts)),
            ("removals", self.removals.to_string()),
            ("feed", format!("sequence {}, lineage {}", feed.position.sequence, feed.lineage)),
            ("ingest", self.ingest.map_or_else(none, ingest_text)),
            ("hash filter", self.filter.map_or_else(none, filter_text)),
        ];
        lines.extend(self.nodes.iter().map(|(url, node)| ("node", node_text(url, node))));
        lines.extend(self.mirror.iter().map(|(mirror, refusals)| ("mirror", mirror_text(mirror, *refusals))));
        lines.extend(self.purged.map(|position| ("purges", format!("sequence {position}"))));
        lines.extend(self.export.iter().map(|NewestExport { folder, manifest: export, is_withdrawn }| {
            let (age, sizes) = (format_age(export.exported_at_ms), sizes(export.chartsets, export.charts));
            let withdrawn = if *is_withdrawn { ", withdrawn since a removal" } else { "" };
            ("export", format!("{}, {age}, {sizes}{withdrawn}", folder.display()))
        }));
        lines
    }
}

fn ingest_text(LastIngest { began_at_ms, completed_at_ms }: LastIngest) -> String {
    let began = format!("began {}", format_age(began_at_ms));
    match completed_at_ms {
        Some(completed) if completed >= began_at_ms => format!("{began}, complete {}", format_age(completed)),
        Some(completed) => {
            format!("{began}, not complete; the one before complete {}", format_age(completed))
        }
        None => format!("{began}, not complete"),
    }
}

fn filter_text(filter: HashFilterState) -> String {
    let (hashes, changed) = (plural(filter.hashes, "chart"), plural(filter.changed_charts, "chart"));
    format!("{hashes}, built {}, {changed} changed since", format_age(filter.built_at_ms))
}

fn node_json(url: &NodeUrl, node: &Result<NodeReport, SearchError>) -> Value {
    let report = node.as_ref().ok();
    let lag = report.and_then(|node| node.lag);
    json!({
        "url": url.as_str(),
        "problem": problem(node),
        "version": report.and_then(|node| node.version.as_ref()),
        "sequence": lag.map(|lag| lag.position.sequence),
        "missingChanges": lag.map(|lag| lag.unapplied.count),
        "lagMs": lag.map(|lag| u64::try_from(lag.age().as_millis()).unwrap_or(u64::MAX)),
    })
}

fn node_text(url: &NodeUrl, node: &Result<NodeReport, SearchError>) -> String {
    let report = node.as_ref().ok();
    let version = report.and_then(|node| Some(format!("version {}", node.version.as_ref()?)));
    let lag = report
        .and_then(|node| node.lag)
        .map(|lag| format!("sequence {}, {} missing", lag.position, plural(lag.unapplied.count, "change")));
    let parts = [Some(url.to_string()), version, lag, problem(node)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Why a node is not searched.
fn problem(node: &Result<NodeReport, SearchError>) -> Option<String> {
    match node {
        Ok(node) => node.problem.map(str::to_owned),
        Err(error) => Some(Causes(error).to_string()),
    }
}

fn mirror_text(mirror: &MirrorState, refusals: u64) -> String {
    let sequence = mirror.sequence.map_or_else(|| "none".to_owned(), |sequence| sequence.to_string());
    let starting = if mirror.is_starting { ", not at the end of the feed yet" } else { "" };
    format!("{}, sequence {sequence}{starting}, {} refused", mirror.upstream, plural(refusals, "change"))
}

fn sizes(chartsets: u64, charts: u64) -> String {
    format!("{}, {}", plural(chartsets, "chartset"), plural(charts, "chart"))
}
