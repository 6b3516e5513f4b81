//! `chart-indexer mirror`: fills the index from another one, and follows its changes.
//!
//! A mirror starts with an export, if there is one, and applies the pages of the change feed after it. Its
//! position is stored after a page is applied, and a page may be applied again, so it may be killed at any
//! time. Nothing that the other index sends is trusted: a chart is stored if its ROX file has its note hash, a
//! chartset if it matches these charts.
//!
//! A change whose ROX files are missing, differ or cannot be read is skipped after a few seconds, so that it
//! stops nothing else, and its page is requested again later. What the other index removes is deleted without
//! an entry in the list of removals, whose entries outlast restores. After a loss of changes the mirror goes on
//! serving what it has, and deletes at the end of the feed what it was not sent again.

mod ahead;
mod apply;
mod bootstrap;
mod charts;
mod downloads;
mod page;
mod refusals;
mod upstream;

use std::cell::Cell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use chart_index_cli::parse_milliseconds;
use chart_index_domain::{Lineage, ReadError};
use chart_index_instrumentation::metrics;
use chart_index_store::{MirrorState, ProcessRole, Store, StoreError};
use chart_index_telemetry::print;
use clap::Args;
use reqwest::Url;
use tracing::Level;

use self::upstream::{PageRequest, Upstream};
use crate::backoff::{NODE_RESTART, Pauses};
use crate::filter::{self, Due};
use crate::import::LaterRemovals;
use crate::metrics::MirrorMetrics;
use crate::progress;
use crate::report::plural;
use crate::signature::VerifyKeys;

/// What the process locks: the database, whatever the address of the other index is.
const LOCKED: &str = "mirror";
/// How long the other index may wait for a change. Proxies often allow for a minute, like the timeout of a
/// request.
const WAIT: Duration = Duration::from_secs(50);
/// The number of changes in a page.
const PAGE_CHANGES: u32 = 1_000;
/// After each restart pages have one change less, up to this number: caches may hold pages with lost changes.
const PAGE_SIZES: u32 = 100;

#[derive(Debug, Args)]
pub(crate) struct MirrorOptions {
    /// Base address of the other index, e.g. `https://charts.example`
    #[arg(value_name = "URL", value_parser = chart_index_client::parse_base)]
    pub(crate) upstream: Url,
    /// Folder for the files of an export while they are imported. By default, `chart-index-mirror` in the
    /// folder of temporary files
    #[arg(long, env = "DOWNLOADS_DIR", value_name = "DIRECTORY")]
    pub(crate) downloads: Option<PathBuf>,
    /// Greatest size of these files, in bytes. An export that is larger is not imported: the mirror starts
    /// with the first change
    #[arg(long = "downloads-max-bytes", env = "DOWNLOADS_MAX_BYTES", value_name = "BYTES", default_value_t = 32 << 30)]
    pub(crate) max_download: u64,
    /// Other base address of its ROX files, to which it may redirect: `OBJECTS_PUBLIC_URL` of the other
    /// index. May be repeated. Redirects to others are not followed
    #[arg(
        long = "objects-url",
        env = "MIRROR_OBJECTS_URL",
        value_name = "URL",
        value_delimiter = ',',
        value_parser = chart_index_client::parse_base
    )]
    pub(crate) objects: Vec<Url>,
    /// Pause at the end of the change feed, in milliseconds, if the other index does not wait for changes
    #[arg(
        long = "interval-ms",
        env = "MIRROR_INTERVAL_MS",
        value_name = "MIRROR_INTERVAL_MS",
        default_value = "60000",
        value_parser = parse_milliseconds
    )]
    pub(crate) interval: Duration,
    /// End at the end of the change feed, and at an error
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) verify_keys: VerifyKeys,
}

struct Mirror<'a> {
    store: &'a Store,
    options: &'a MirrorOptions,
    upstream: Upstream,
    metrics: MirrorMetrics,
    pauses: Pauses,
    /// The changes since the last end of the feed.
    applied: Cell<u64>,
    refused: Cell<u64>,
    /// What is deleted already, although the mirror has not reached its removal yet.
    later_removals: LaterRemovals,
    /// The sequence up to which removals were looked for.
    looked_to: Cell<u64>,
    /// How often an export could not be downloaded or imported, without any progress.
    failed_exports: u32,
}

/// Follows the other index, for as long as the process runs or up to the end of the feed.
///
/// # Errors
/// The index is no mirror of this one and cannot become one; or, up to the end of the feed only, a request or
/// the store failed.
pub(crate) async fn mirror(store: &Store, options: &MirrorOptions) -> Result<()> {
    let mut pauses = Pauses::new(NODE_RESTART);
    while let Err(error) = start(store, options).await {
        if options.once || !is_outage(&error) {
            return Err(error);
        }
        let pause = pauses.next();
        print(Level::WARN, format_args!("{error:#}; retrying in {pause:.0?}"));
        tokio::time::sleep(pause).await;
    }
    pauses.reset();
    let mut mirror = Mirror {
        store,
        options,
        upstream: Upstream::new(&options.upstream, options.objects.clone())?,
        metrics: MirrorMetrics::new(metrics()),
        pauses,
        applied: Cell::new(0),
        refused: Cell::new(0),
        later_removals: LaterRemovals::default(),
        looked_to: Cell::new(0),
        failed_exports: 0,
    };
    loop {
        let result = Box::pin(mirror.follow_with_lock()).await;
        if options.once {
            if result.is_err() {
                filter::build_after_interruption(store).await;
            }
            result?;
            return filter::build(store, Due::AnyChange).await.map(drop);
        }
        if let Err(error) = result {
            let pause = mirror.pauses.next();
            mirror.print(Level::WARN, format_args!("{error:#}; retrying in {pause:.0?}"));
            tokio::time::sleep(pause).await;
        }
    }
}

/// # Errors
/// The index is no mirror of the other one and cannot become one, its schema is not the one of this program, or
/// the store failed.
async fn start(store: &Store, options: &MirrorOptions) -> Result<()> {
    store.check_schema().await.context("cannot use the database")?;
    open(store, options).await?;
    // It may be with another setting, or a later version.
    Ok(store.retry_refusals().await?)
}

/// Whether PostgreSQL is unavailable, or `migrate` has not run yet.
fn is_outage(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ReadError::Unavailable { .. }))
        || error.downcast_ref().is_some_and(StoreError::is_unavailable)
}

/// Reads the state of the mirror.
///
/// # Errors
/// The index is no mirror of the other one, and cannot become one.
async fn open(store: &Store, options: &MirrorOptions) -> Result<MirrorState> {
    let upstream = options.upstream.as_str().trim_end_matches('/');
    let Some(state) = store.open_mirror(upstream).await? else {
        bail!("the index has chartsets and is no mirror: a mirror starts with an empty database");
    };
    ensure!(
        state.upstream == upstream,
        "the index is a mirror of {}: for another one use another database (docs/operations/mirrors.md)",
        state.upstream
    );
    Ok(state)
}

impl Mirror<'_> {
    fn print(&self, level: Level, message: impl std::fmt::Display) {
        print(level, format_args!("{}: {message}", self.upstream.host()));
    }

    /// Reports a change that is not applied.
    fn report_refusal(&self, what: impl std::fmt::Display, reason: &str) {
        self.refused.update(|refused| refused + 1);
        self.metrics.record_refusal();
        self.print(Level::WARN, format_args!("refused: {what}: {reason}"));
    }

    fn record_applied(&self, changes: u64) {
        self.applied.update(|applied| applied + changes);
        self.metrics.record_applied(changes);
    }

    async fn follow_with_lock(&mut self) -> Result<()> {
        let locks = self.store.process_locks(LOCKED).await?;
        if !locks.try_acquire(ProcessRole::Mirror).await? {
            const RUNNING: &str = "another process fills this mirror";
            ensure!(!self.options.once, RUNNING);
            self.print(Level::INFO, format_args!("{RUNNING}, waiting for it to end"));
            locks.acquire(ProcessRole::Mirror).await?;
        }
        Box::pin(locks.while_held(self.follow())).await?
    }

    /// Fills the mirror if it has no position, and follows the feed. Returns at the end of the feed if it is to
    /// end there.
    async fn follow(&mut self) -> Result<()> {
        let mut wait = Duration::ZERO;
        // Drawn while the end of the feed is not reached.
        let mut progress = None;
        loop {
            let state = open(self.store, self.options).await?;
            let Some(after) = state.sequence else {
                self.bootstrap(&state).await?;
                continue;
            };
            let request = PageRequest { after, lineage: state.lineage, limit: page_limit(&state) };
            if self.while_looking_ahead(request, self.retry_refused(request, &state)).await? {
                wait = Duration::ZERO;
            }
            let requested = Instant::now();
            let page = self.upstream.page(request, wait).await?;
            let Some(page) = page.filter(|page| continues(state.lineage, page.lineage)) else {
                ensure!(after > 0 || state.lineage.is_some(), "the change feed does not begin at 0");
                self.restart().await?;
                continue;
            };
            self.metrics.record_page(page.oldest_ms);
            let (has_more, next, changes) = (page.has_more, page.next, page.sequences.len() as u64);
            let is_early = next == after && requested.elapsed() < wait / 2;
            let ahead = PageRequest { after: next, lineage: page.lineage.or(state.lineage), ..request };
            self.while_looking_ahead(ahead, self.apply(page, request, &state)).await?;
            self.metrics.record_position(next);
            self.pauses.reset();
            if has_more {
                progress.get_or_insert_with(progress::count).inc(changes);
                wait = Duration::ZERO;
                continue;
            }
            progress = None;
            self.finish(&state, next).await?;
            if self.options.once {
                return Ok(());
            }
            if is_early {
                tokio::time::sleep(self.options.interval).await;
            }
            wait = WAIT;
        }
    }

    /// Starts again, and serves meanwhile what is stored.
    async fn restart(&self) -> Result<()> {
        self.print(
            Level::WARN,
            "it has lost changes or is another index, as after a restore: the mirror starts again",
        );
        self.store.restart_mirror().await?;
        self.later_removals.write().await.clear();
        self.looked_to.set(0);
        Ok(())
    }

    /// At the end of the feed, deletes what it did not contain.
    async fn finish(&self, state: &MirrorState, sequence: u64) -> Result<()> {
        if state.is_starting {
            self.delete_unconfirmed().await?;
            self.store.complete_mirror().await?;
        }
        self.metrics.record_end();
        let (applied, refused) = (self.applied.take(), self.refused.take());
        if applied > 0 || refused > 0 {
            let changes = plural(applied, "change");
            self.print(
                Level::INFO,
                format_args!("{changes} applied, {refused} refused, sequence {sequence}"),
            );
        }
        Ok(())
    }
}

/// The number of changes that the mirror requests at once.
const fn page_limit(state: &MirrorState) -> u32 {
    PAGE_CHANGES - state.restarts % PAGE_SIZES
}

/// Whether a page may continue what was followed in this lineage. Earlier versions name none.
fn continues(followed: Option<Lineage>, page: Option<Lineage>) -> bool {
    followed.zip(page).is_none_or(|(followed, page)| followed == page)
}
