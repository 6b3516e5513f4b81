//! `chart-indexer import`: fills the index from an export.
//!
//! Both files are compared with the manifest before anything is written. Then the charts are stored with their
//! ROX files, which does not make them known, and then the chartsets, both in batches. Numbers
//! and note hashes are computed from the ROX files, as an ingest does. What is stored already is passed over,
//! so an import that was interrupted continues when it is run again.

mod chartset_lines;
mod chartsets;
mod compare;
mod erased;
mod export_files;
mod later_removals;
mod rox_archive;
mod rox_files;

use std::collections::HashSet;
use std::path::Path;

use anyhow::Result;
use chart_index_domain::NoteHash;
use chart_index_store::{ImportOutcome, Precedence, PutEffect, Store};
use futures_util::stream::{self, Stream, StreamExt};
use indicatif::ProgressBar;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::filter::{self, Due};
use crate::percentiles;
use crate::progress;
use crate::report::plural;
use crate::signature::VerifyKeys;
use crate::stdout;

pub(crate) use self::chartset_lines::{CheckedChartset, MAX_LINE_BYTES};
pub(crate) use self::compare::check_chart;
pub(crate) use self::erased::Erased;
pub(crate) use self::export_files::{Export, MAX_MANIFEST_BYTES, parse_manifest};
pub(crate) use self::later_removals::{LaterRemovals, Removals};
pub(crate) use self::rox_files::draft as draft_of_rox;

/// Imports the export in this folder, and prints what changed.
///
/// # Errors
/// The export is not signed by one of the keys, incomplete, damaged or inconsistent, the store failed, or the
/// hash filter could not be built. A damaged file is found before anything is written.
pub(crate) async fn import(store: &Store, folder: &Path, keys: VerifyKeys) -> Result<()> {
    let folder = folder.to_owned();
    let export = spawn_blocking(move || Export::open_verified(&folder, &keys)).await??;
    import_verified(store, &export, Precedence::Stored, &LaterRemovals::default()).await
}

/// Imports an export, without what was removed after it. The chartsets of an imported one that takes precedence
/// are confirmed in the mirror.
///
/// # Errors
/// As those of [`import`], except that the files have been compared with the manifest.
pub(crate) async fn import_verified(
    store: &Store,
    export: &Export,
    precedence: Precedence,
    removals: &LaterRemovals,
) -> Result<()> {
    let mut import = Import::new(store, export, precedence, removals).await?;
    let result = import.run(export).await;
    let Import { progress, counts, other_files, .. } = import;
    drop(progress);
    if result.is_err() {
        filter::build_after_interruption(store).await;
    }
    result?;
    // First, since a client finds no chart that is not in it.
    filter::build(store, Due::AnyChange).await?;
    // Of new charts in removed chartsets.
    store.withdraw_objects().await?;
    percentiles::compute(store, counts.has_changes()).await?;
    stdout::unless_closed(stdout::print(counts.summary()))?;
    if !other_files.is_empty() {
        let charts = plural(other_files.len() as u64, "chart");
        let others = format_args!("{charts} stored before with another ROX file, which stays");
        stdout::unless_closed(stdout::print(others))?;
    }
    Ok(())
}

/// The number of batches that are processed at once, so that the cores of the machine and of PostgreSQL are
/// busy.
const BATCHES_IN_FLIGHT: usize = 3;

struct Import<'a> {
    target: Target<'a>,
    progress: ProgressBar,
    /// Charts that are stored here with another ROX file than in the export, which stays.
    other_files: HashSet<NoteHash>,
    counts: Counts,
}

/// The index that is filled.
struct Target<'a> {
    store: &'a Store,
    precedence: Precedence,
    /// Never cancelled: an interrupted import is dropped.
    stop: CancellationToken,
    /// What is not stored.
    erased: Erased,
    removals: &'a LaterRemovals,
    /// The sequence of the export.
    sequence: u64,
}

impl<'a> Import<'a> {
    /// # Errors
    /// The store failed, or the chartsets of the export are not valid.
    async fn new(
        store: &'a Store,
        export: &Export,
        precedence: Precedence,
        removals: &'a LaterRemovals,
    ) -> Result<Self> {
        let erased = Erased::new(&store.removals().await?);
        let erased = spawn_blocking({
            let export = export.clone();
            move || erased.with_lone_charts(&export)
        })
        .await??;
        Ok(Self {
            target: Target {
                store,
                precedence,
                stop: CancellationToken::new(),
                erased,
                removals,
                sequence: export.manifest().sequence,
            },
            progress: progress::items(export.manifest().charts + export.manifest().chartsets),
            other_files: HashSet::new(),
            counts: Counts::default(),
        })
    }

    async fn run(&mut self, export: &Export) -> Result<()> {
        self.import_rox_files(export).await?;
        self.import_chartsets(export).await
    }
}

/// Processes batches as they are read, [`BATCHES_IN_FLIGHT`] at once.
fn in_flight<T, R, F>(
    mut batches: mpsc::Receiver<T>,
    process: impl FnMut(T) -> F + Unpin,
) -> impl Stream<Item = Result<R>> + Unpin
where
    F: Future<Output = Result<R>>,
{
    stream::poll_fn(move |context| batches.poll_recv(context))
        .map(process)
        .buffer_unordered(BATCHES_IN_FLIGHT)
}

/// How many chartsets had which outcome.
#[derive(Debug, Default)]
struct Counts {
    added: u64,
    unchanged: u64,
    updated: u64,
    newer: u64,
    removed: u64,
}

impl Counts {
    fn add(&mut self, outcome: ImportOutcome) {
        match outcome {
            ImportOutcome::Newer => self.newer += 1,
            ImportOutcome::Stored(put) => {
                *match put.effect {
                    PutEffect::Added => &mut self.added,
                    PutEffect::Unchanged => &mut self.unchanged,
                    PutEffect::Updated => &mut self.updated,
                } += 1;
                self.removed += u64::from(put.removed);
            }
        }
    }

    const fn has_changes(&self) -> bool {
        self.added + self.updated > 0
    }

    fn summary(&self) -> String {
        let Self { added, unchanged, updated, newer, removed } = self;
        let stored =
            format!("{} added, {unchanged} unchanged, {updated} updated", plural(*added, "chartset"));
        let newer = (*newer > 0).then(|| format!("{newer} changed later here, not replaced"));
        let removed = (*removed > 0).then(|| format!("{removed} removed here, not shown"));
        [Some(stored), newer, removed].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}
