//! `chart-indexer mirror`: fills the index from another one, and follows its changes.
//!
//! A mirror starts with an export, if there is one, and applies the pages of the change feed after it. Its
//! position is stored after a page is applied, and a page may be applied again, so it may be killed at any
//! time. Nothing that the other index sends is trusted: a chart is stored if its ROX file has its note hash, a
//! chartset if it matches these charts.

mod apply;
mod bootstrap;
mod charts;
mod downloads;
mod page;
mod upstream;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use chart_index_instrumentation::meter;
use chart_index_store::{MirrorState, ProcessRole, Store};
use chart_index_telemetry::print;
use reqwest::Url;
use tracing::Level;

use self::upstream::Upstream;
use crate::backoff::{NODE_RESTART, Pauses};
use crate::change_feed;
use crate::filter::{self, Due};
use crate::metrics::MirrorMetrics;
use crate::report::plural;
use crate::signature::VerifyKeys;

/// What the process locks: the database, whatever the address of the other index is.
const LOCKED: &str = "mirror";
/// Pause after a page without changes that is not the last one: the next change waits for its number.
const PENDING_PAUSE: Duration = Duration::from_secs(10);
/// How long the other index may wait for a change. Proxies often allow for a minute, like the timeout of a
/// request.
const WAIT: Duration = Duration::from_secs(50);
/// The number of changes in a page.
const PAGE_CHANGES: u32 = 1_000;
/// After each restart pages have one change less, up to this number: caches may hold pages with lost changes.
const PAGE_SIZES: u32 = 100;

#[derive(Debug)]
pub(crate) struct MirrorOptions {
    /// The base address of the index that is mirrored.
    pub(crate) upstream: Url,
    /// Where the files of an export are stored while they are imported.
    pub(crate) downloads: PathBuf,
    /// Pause at the end of the feed if the other index does not wait for changes.
    pub(crate) interval: Duration,
    /// Whether to end there instead.
    pub(crate) once: bool,
    /// The keys of which one must have signed an export.
    pub(crate) verify_keys: VerifyKeys,
}

struct Mirror<'a> {
    store: &'a Store,
    options: &'a MirrorOptions,
    upstream: Upstream,
    metrics: MirrorMetrics,
    pauses: Pauses,
    /// The changes since the last end of the feed.
    applied: u64,
    refused: u64,
}

/// Follows the other index, for as long as the process runs or up to the end of the feed.
///
/// # Errors
/// The index is no mirror of this one and cannot become one; or, up to the end of the feed only, a request or
/// the store failed.
pub(crate) async fn mirror(store: &Store, options: &MirrorOptions) -> Result<()> {
    open(store, options).await?;
    let _numbering = change_feed::assign_in_background(store);
    let mut mirror = Mirror {
        store,
        options,
        upstream: Upstream::new(&options.upstream)?,
        metrics: MirrorMetrics::new(&meter()),
        pauses: Pauses::new(NODE_RESTART),
        applied: 0,
        refused: 0,
    };
    loop {
        let result = mirror.follow_with_lock().await;
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
    fn refuse(&mut self, what: impl std::fmt::Display, reason: &str) {
        self.refused += 1;
        self.metrics.record_refusal();
        self.print(Level::WARN, format_args!("refused: {what}: {reason}"));
    }

    async fn follow_with_lock(&mut self) -> Result<()> {
        let locks = self.store.process_locks(LOCKED).await?;
        if !locks.try_acquire(ProcessRole::Mirror).await? {
            const RUNNING: &str = "another process fills this mirror";
            ensure!(!self.options.once, RUNNING);
            self.print(Level::INFO, format_args!("{RUNNING}, waiting for it to end"));
            locks.acquire(ProcessRole::Mirror).await?;
        }
        locks.while_held(self.follow()).await?
    }

    /// Fills the mirror if it has no position, and follows the feed. Returns at the end of the feed if it is to
    /// end there.
    async fn follow(&mut self) -> Result<()> {
        let mut wait = Duration::ZERO;
        loop {
            let state = open(self.store, self.options).await?;
            let Some(after) = state.sequence else {
                self.bootstrap(&state).await?;
                continue;
            };
            let limit = PAGE_CHANGES - state.restarts % PAGE_SIZES;
            let requested = Instant::now();
            let Some(page) = self.upstream.page(after, limit, wait).await? else {
                ensure!(after > 0, "the change feed does not begin at 0");
                self.print(Level::WARN, "it has lost changes, as in a restore: the mirror starts again");
                self.store.restart_mirror().await?;
                continue;
            };
            self.metrics.record_page(page.oldest_ms);
            let (has_more, next) = (page.has_more, page.next);
            let is_early = next == after && requested.elapsed() < wait / 2;
            self.apply(page, &state).await?;
            self.metrics.record_position(next);
            self.pauses.reset();
            if has_more {
                wait = Duration::ZERO;
                if next == after {
                    tokio::time::sleep(PENDING_PAUSE).await;
                }
                continue;
            }
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

    /// At the end of the feed, deletes what it did not contain.
    async fn finish(&mut self, state: &MirrorState, sequence: u64) -> Result<()> {
        if state.is_starting {
            self.delete_unconfirmed().await?;
            self.store.complete_mirror().await?;
        }
        self.metrics.record_end();
        let (applied, refused) = (std::mem::take(&mut self.applied), std::mem::take(&mut self.refused));
        if applied > 0 || refused > 0 {
            change_feed::assign(self.store).await?;
            let changes = plural(applied, "change");
            self.print(
                Level::INFO,
                format_args!("{changes} applied, {refused} refused, sequence {sequence}"),
            );
        }
        Ok(())
    }
}
