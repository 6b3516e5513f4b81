//! The command line: options and subcommands.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use chart_index_domain::{ChartsetId, NoteHash};
use chart_index_objects::{ObjectStoreArguments, ObjectStoreConfig, Objects};
use chart_index_search::MeilisearchArguments;
use chart_index_store::{DatabaseArguments, DatabaseUrl, Store, StoreConfig};
use chart_index_telemetry::{LogConfig, OtlpConfig};
use clap::{Args, Parser, Subcommand};

use crate::export::{ExportOptions, RenewalArguments};
use crate::ingest::IngestOptions;
use crate::mirror::MirrorOptions;
use crate::purge::PurgeArguments;
use crate::search;
use crate::signature::VerifyKeys;
use crate::status::StatusArguments;

/// Ingests chart files into the index and maintains its database and search nodes
#[derive(Debug, Parser)]
#[command(name = "chart-indexer", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten, next_help_heading = "Connections")]
    pub(crate) store: StoreArguments,
    #[command(flatten, next_help_heading = "Log")]
    pub(crate) logging: LogConfig,
    #[command(flatten, next_help_heading = "OpenTelemetry")]
    pub(crate) otlp: OtlpConfig,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// # Errors
    /// The command lacks a setting, or settings contradict each other.
    pub(crate) fn check(&self) -> Result<()> {
        if !matches!(self.command, Command::Ingest { dry_run: true, .. }) {
            self.store.url()?;
        }
        match &self.command {
            Command::Objects { .. } => {
                self.store.objects.url().context("no object store: set OBJECT_STORE_URL").map(drop)
            }
            Command::Sync { meilisearch, .. }
            | Command::Rebuild { meilisearch, .. }
            | Command::Verify { search: true, meilisearch } => search::check_nodes(meilisearch),
            Command::Follow { meilisearch, .. }
            | Command::Status(StatusArguments { meilisearch, .. })
            | Command::Verify { search: false, meilisearch } => Ok(meilisearch.nodes().map(drop)?),
            _ => Ok(()),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    #[command(flatten)]
    database: DatabaseArguments,
    #[command(flatten)]
    objects: ObjectStoreArguments,
}

impl StoreArguments {
    /// # Errors
    /// No database is configured.
    fn url(&self) -> Result<&DatabaseUrl> {
        self.database.url().context("no database: set DATABASE_URL or DATABASE_URL_FILE")
    }

    /// A store with longer timeouts than those of a server.
    ///
    /// # Errors
    /// No database is configured, or the object store cannot be opened.
    pub(crate) fn store(&self) -> Result<Store> {
        let timeout = Duration::from_secs(10);
        let config = StoreConfig {
            acquire_timeout: timeout,
            lookup_timeout: timeout,
            statement_timeout: 30 * timeout,
            ..StoreConfig::new(self.url()?.clone())
        };
        let store = Store::new(&config);
        let Some(url) = self.objects.url() else { return Ok(store) };
        let config = ObjectStoreConfig {
            request_timeout: timeout,
            timeout: 3 * timeout,
            ..ObjectStoreConfig::new(url.clone())
        };
        Ok(store.with_objects(Objects::open(&config).context("OBJECT_STORE_URL")?))
    }
}

/// Where a command that runs for long serves its metrics.
#[derive(Debug, Args)]
pub(crate) struct MetricsArguments {
    /// Address on which `/metrics`, `/livez` and `/readyz` are served while the command runs, e.g.
    /// `127.0.0.1:9091`. Without it there is no listener. A command that ends goes on if it is in use
    #[arg(long, env = "METRICS_LISTEN", value_name = "ADDRESS")]
    metrics_listen: Option<SocketAddr>,
}

impl Command {
    /// The address on which the command serves its metrics, if there is one.
    pub(crate) const fn metrics_listen(&self) -> Option<SocketAddr> {
        match self {
            Self::Ingest { metrics, .. }
            | Self::Follow { metrics, .. }
            | Self::Sync { metrics, .. }
            | Self::Mirror { metrics, .. }
            | Self::Rebuild { metrics, .. } => metrics.metrics_listen,
            _ => None,
        }
    }

    /// Whether the command runs until it is stopped.
    pub(crate) const fn is_permanent(&self) -> bool {
        self.follows() || matches!(self, Self::Mirror { .. })
    }

    /// Whether the command follows the catalogue for as long as it runs.
    pub(crate) const fn follows(&self) -> bool {
        matches!(self, Self::Follow { .. })
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Apply all pending database migrations, and fold stored text as this version does
    Migrate {
        /// Revert the latest migration instead, and delete its data; reverting the first one deletes the
        /// catalogue
        #[arg(long)]
        revert: bool,
    },
    /// Ingest chart files from libraries, folders and archives
    ///
    /// A library is a folder that contains `alpha` or `beta`. A path inside a library keeps its set or pack id;
    /// any other folder is ingested without a download source.
    ///
    /// New chartsets are added. A chartset is updated to what its folder holds now: a chart that is gone from
    /// the folder leaves the chartset. Chartsets whose folder is gone stay. Files and charts that cannot be
    /// indexed are refused, and reported with the reason. If several inputs have the same chartset id, folders
    /// take precedence over archives, then the first by path; the others are reported as duplicates.
    ///
    /// It is safe to interrupt an ingest and to run it again.
    Ingest {
        #[command(flatten)]
        options: IngestOptions,
        /// Decode all files without storing anything, to see what would be refused. Needs no database
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        metrics: MetricsArguments,
    },
    /// Remove charts and chartsets from the index, whether or not it holds them yet
    ///
    /// Ingests and imports do not bring back what is in the list of removals.
    Remove(RemoveArguments),
    /// Print the list of removals
    Removals {
        #[command(subcommand)]
        command: RemovalsCommand,
    },
    /// Undo a removal: delete it from the list of removals
    Restore {
        #[command(subcommand)]
        entry: Entry,
    },
    /// Replace the ROX file of a chart with that of another file with the same notes
    ///
    /// The first file that was ingested with a note hash determines its ROX file and BPM, also if its metadata
    /// or timing is wrong.
    ReplaceRox {
        /// Note hash of the chart
        hash: NoteHash,
        /// A chart file (.osu, .qua, .sm, .ssc) or a ROX file
        #[arg(long, value_name = "FILE")]
        from: PathBuf,
    },
    /// Update all Meilisearch nodes, purge a CDN, build the hash filter, compute percentiles and replace
    /// withdrawn exports, for as long as it runs
    ///
    /// Run one permanently, with or without Meilisearch nodes. It creates the index of a node that has none.
    /// Nodes are independent: one that fails is retried and does not delay the others.
    Follow {
        #[command(flatten)]
        meilisearch: MeilisearchArguments,
        #[command(flatten)]
        purge: PurgeArguments,
        #[command(flatten)]
        renewal: Box<RenewalArguments>,
        #[command(flatten)]
        metrics: MetricsArguments,
    },
    /// Update the search index of every Meilisearch node from PostgreSQL once
    ///
    /// Creates the index of a node that has none. Nodes are independent: one that fails does not delay the
    /// others.
    Sync {
        #[command(flatten)]
        meilisearch: MeilisearchArguments,
        #[command(flatten)]
        metrics: MetricsArguments,
    },
    /// Rebuild the search index of every Meilisearch node and swap it with the live one
    ///
    /// Searches use the live index until the swap. It is safe to interrupt a rebuild and to run it again.
    Rebuild {
        #[command(flatten)]
        meilisearch: MeilisearchArguments,
        #[command(flatten)]
        metrics: MetricsArguments,
    },
    /// Compute what an older version did not store of charts, such as their ratings
    ///
    /// It is computed from the stored ROX files, for charts that lack some of it or have that of another
    /// version. Run it once after an upgrade, while requests are served. It is safe to interrupt it and to run
    /// it again.
    Backfill {
        /// Compute it for all charts, and replace what differs
        #[arg(long)]
        full: bool,
    },
    /// Export the catalogue to files
    ///
    /// Writes a folder below `DIRECTORY`, named by the time and the place in the change feed, with a manifest,
    /// all shown chartsets as JSON Lines in zstd, and the ROX files, a SQLite file and a Parquet file on
    /// request. All are of one snapshot. The folder appears when it is complete; earlier exports are never
    /// changed. `chart-index` serves them below `EXPORTS_DIR`.
    Export(ExportOptions),
    /// Import an export into the index, which may be empty or not
    ///
    /// Checks the files against the manifest before it writes anything, and the charts against their ROX files.
    /// Chartsets that the export does not contain stay, and so do those that changed later here. What is
    /// removed here stays removed.
    ///
    /// It is safe to interrupt an import and to run it again.
    Import {
        /// Folder of the export, with its manifest
        export: PathBuf,
        #[command(flatten)]
        verify_keys: VerifyKeys,
    },
    /// Mirror another index: fill an empty one from it, and follow its changes for as long as it runs
    ///
    /// Starts with the newest export, if there is one with ROX files, and then applies the change feed. What is
    /// removed there is deleted here; what is removed here stays removed. Nothing that the other index sends is
    /// trusted. It may be killed at any time, and continues when it is run again. If the other index has lost
    /// changes, as in a restore, it starts again.
    ///
    /// Run `follow` beside it, for the Meilisearch nodes and the hash filter.
    Mirror {
        #[command(flatten)]
        options: MirrorOptions,
        #[command(flatten)]
        metrics: MetricsArguments,
    },
    /// Build the hash filter if a chart has changed since the last one
    ///
    /// `ingest`, `import`, `restore` and `follow` build it as well.
    Filter,
    /// Print the state of the catalogue, of the search nodes, mirrors and purges that follow it, and of exports
    ///
    /// Exits with 0 also if a node is unavailable, which is printed, and with 1 if PostgreSQL or the folder of
    /// the exports cannot be read. `chart-index check` says what is wrong.
    Status(StatusArguments),
    /// Move ROX files between PostgreSQL and the object store, and delete unneeded objects
    Objects {
        #[command(subcommand)]
        command: ObjectsCommand,
    },
    /// Check that every ROX file decodes to its note hash, that every chartset and the change feed match
    /// their charts, that the rows match the list of removals, and that the hash filter contains every chart
    Verify {
        /// Check the search index of every Meilisearch node against PostgreSQL instead
        #[arg(long)]
        search: bool,
        #[command(flatten)]
        meilisearch: MeilisearchArguments,
    },
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum ObjectsCommand {
    /// Move all ROX files to the object store, except those of removed charts
    ///
    /// Readers and ingests go on. It is safe to interrupt it and to run it again.
    Migrate {
        /// Move them from the object store to PostgreSQL instead
        #[arg(long)]
        to_postgres: bool,
    },
    /// Delete the objects that no chart needs
    ///
    /// Run it once a day. Ingests and removals that were interrupted, replaced files and moves to PostgreSQL
    /// leave such objects.
    Gc {
        /// Keep objects that were written within this time, such as `24h` or `7d`. It must be longer than the
        /// age of a backup that may be restored
        #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_grace)]
        grace: Duration,
    },
}

/// Parses a whole number of seconds, minutes, hours or days.
fn parse_grace(text: &str) -> Result<Duration, String> {
    let invalid = || "not a number of s, m, h or d, such as `24h`".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(invalid)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(invalid()),
    };
    let number: u32 = number.parse().map_err(|_| invalid())?;
    Ok(Duration::from_secs(u64::from(number) * seconds))
}

/// What to remove, and why.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct RemoveArguments {
    /// Apply a list of removals in JSON Lines format, as `removals export` prints it
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) from: Option<PathBuf>,
    /// The reason, for the list of removals. It is not published
    #[arg(long, value_name = "TEXT", global = true)]
    pub(crate) reason: Option<String>,
    /// Delete the data as well: rows, ROX files and metadata. Ingests do not store it again. Only an
    /// ingest after `restore` brings it back
    #[arg(long, global = true)]
    pub(crate) erase: bool,
    #[command(subcommand)]
    pub(crate) entry: Option<Entry>,
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum RemovalsCommand {
    /// Print the list in JSON Lines format, the oldest removal first, for `remove --from`
    Export,
}

/// What to remove or restore.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum Entry {
    /// A chart, in all chartsets that contain it
    Chart {
        /// Note hash of the chart
        hash: NoteHash,
    },
    /// A chartset. Its charts remain in other chartsets that contain them
    Chartset {
        /// Id of the chartset
        id: ChartsetId,
    },
}
