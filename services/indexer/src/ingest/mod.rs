//! `chart-indexer ingest`: places are read on all cores, song folders are stored a few at a time.
//!
//! What was read is taken in the order of the places, so that the same one of two places with one chartset is chosen
//! in every run, and reading never runs far ahead of PostgreSQL. Each song folder is one transaction, so that stopping
//! at any moment leaves complete chartsets only. A place whose files are as they were is not decoded, see
//! [`crate::fingerprint`].

mod outcome;
mod reader;
mod retry;
mod writer;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use chart_index_domain::ChartsetId;
use chart_index_store::{IngestFingerprint, Store, StoreError};
use chart_index_telemetry::shutdown_signal;
use futures_util::StreamExt;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use self::outcome::{PlaceOutcome, StoredChartset};
use self::reader::{PlaceContent, ReadPlace, Reader, StoredHashes};
use self::retry::retried;
use self::writer::{PlaceDone, Writer};
use crate::announcements::{Announcements, Announcer};
use crate::fingerprint::Rules;
use crate::library::{self, Place};
use crate::report::{ChartsetLine, Outcome, Report, plural};
use crate::song_folder::SongFolder;

/// Song folders stored at the same time: enough to keep PostgreSQL busy while one waits for its disk.
const WRITERS: usize = 4;
/// Fingerprints that are recorded together.
const RECORDED_TOGETHER: usize = 256;

/// What to ingest, and how.
#[derive(Debug)]
pub(crate) struct IngestOptions {
    /// Libraries, folders and archives.
    pub(crate) paths: Vec<PathBuf>,
    /// Where the report goes.
    pub(crate) report: Option<PathBuf>,
    /// Whether places are decoded that have not changed.
    pub(crate) full: bool,
}

/// How an ingest ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    /// Every place was read.
    All,
    /// It was interrupted; what is stored is complete.
    Interrupted,
}

/// Ingests everything at the paths, prints the summary, and tells whether it ran to its end. Without a store
/// everything is read and nothing is kept. What was stored is announced, however the ingest ended.
///
/// # Errors
/// A path cannot be read, the report cannot be written, the store failed, or rejected a chartset.
pub(crate) async fn ingest(
    store: Option<Store>,
    announcer: Announcer,
    options: IngestOptions,
) -> Result<Completion> {
    let places = find_places(&options.paths)?;
    if let Some(store) = &store {
        store.ping().await.context("the store cannot be used (is it migrated? `chart-indexer migrate`)")?;
    }
    let mut report = Report::new(places.len() as u64, options.report.as_deref())?;
    let announcements = announcer.behind();
    let completion = Ingest::new(store, places, &announcements, options.full).run(&mut report).await;
    report.finish()?;
    report.summary(&mut std::io::stdout().lock())?;
    let all_told = announcements.finish().await;
    let completion = completion?;
    all_told?;
    if completion == Completion::All && report.failed() > 0 {
        bail!("PostgreSQL rejected {}", plural(report.failed() as u64, "chartset"));
    }
    Ok(completion)
}

fn find_places(paths: &[PathBuf]) -> Result<Vec<Place>> {
    let mut places = Vec::new();
    for path in paths {
        let found = library::places(path)?;
        if found.is_empty() {
            writeln!(std::io::stderr(), "no chart files below {}", path.display())?;
        }
        places.extend(found);
    }
    places.sort();
    places.dedup();
    Ok(places)
}

/// A run of an ingest.
struct Ingest {
    reader: Arc<Reader>,
    writer: Writer,
    stop: CancellationToken,
    /// Which place each chartset of this run is read from.
    taken: HashMap<ChartsetId, usize>,
    /// What is to be recorded.
    fingerprints: HashMap<[u8; 32], IngestFingerprint>,
}

impl Ingest {
    fn new(store: Option<Store>, places: Vec<Place>, announcements: &Announcements, full: bool) -> Self {
        let (stored, stop) = (StoredHashes::default(), CancellationToken::new());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let rules = if store.is_some() { Rules::of_this_program().ok() } else { None };
        let reader = Reader {
            places,
            store: store.clone(),
            rules,
            full,
            stored: stored.clone(),
            cores: Arc::new(Semaphore::new(cores)),
            stop: stop.clone(),
        };
        let writer = Writer { store, stored, changed: announcements.sender(), stop: stop.clone() };
        Self { reader: Arc::new(reader), writer, stop, taken: HashMap::new(), fingerprints: HashMap::new() }
    }

    /// Reads the places and stores what is in them, until the last place, a signal, or a failure. What is being stored
    /// then is stored to its end and recorded.
    async fn run(mut self, report: &mut Report) -> Result<Completion> {
        let mut places = std::pin::pin!(self.reader.clone().read_all());
        let mut signalled = std::pin::pin!(shutdown_signal().context("signals cannot be caught")?);
        let mut writers = JoinSet::new();
        let mut end: Option<Result<Completion>> = None;
        while end.is_none() || !writers.is_empty() {
            let step = tokio::select! {
                () = &mut signalled, if !self.stop.is_cancelled() => Ok(Some(Completion::Interrupted)),
                Some(stored) = writers.join_next() => self.finish(stored, report).await.map(|()| None),
                place = places.next(), if end.is_none() && writers.len() < WRITERS => match place {
                    Some(place) => self.take(place, &mut writers, report).await.map(|()| None),
                    None => Ok(Some(Completion::All)),
                },
            };
            if !matches!(step, Ok(None | Some(Completion::All))) {
                self.stop.cancel();
            }
            end = match (end, step) {
                // After a failure or a signal, what is being stored may fail as well.
                (end @ Some(Err(_) | Ok(Completion::Interrupted)), _) | (end, Ok(None)) => end,
                (_, step) => step.transpose(),
            };
        }
        let recorded = self.flush().await;
        match end.unwrap_or(Ok(Completion::All)) {
            Ok(Completion::All) => recorded.map(|()| Completion::All),
            end => end,
        }
    }

    /// Takes what is in a place: its chartsets are stored, or are known to be unchanged.
    async fn take(
        &mut self,
        place: Result<ReadPlace>,
        writers: &mut JoinSet<Result<PlaceDone, StoreError>>,
        report: &mut Report,
    ) -> Result<()> {
        let ReadPlace { index, content, fingerprint } = place?;
        match content {
            PlaceContent::Unchanged(outcome) => {
                let done = self.unchanged(index, outcome, fingerprint);
                self.record(done, report).await
            }
            PlaceContent::Read(folders) => {
                let (chosen, duplicates) = self.choose(index, folders);
                // A place that has duplicates is read again the next time: the other one may be gone.
                let fingerprint = fingerprint.filter(|_| duplicates.is_empty());
                let writer = self.writer.clone();
                writers.spawn(async move {
                    let mut done = writer.store(chosen, fingerprint).await?;
                    done.chartsets.extend(duplicates);
                    Ok(done)
                });
                Ok(())
            }
        }
    }

    fn unchanged(
        &mut self,
        index: usize,
        outcome: PlaceOutcome,
        fingerprint: Option<IngestFingerprint>,
    ) -> PlaceDone {
        let mut chartsets = Vec::with_capacity(outcome.chartsets.len());
        for chartset in outcome.chartsets {
            let StoredChartset { id, path, charts, removed, .. } = chartset;
            chartsets.push(match self.other_place(id, index) {
                Some(other) => self.duplicate(index, other, id, &path, charts),
                None => ChartsetLine { removed, ..ChartsetLine::new(Outcome::Unchanged, path, id, charts) },
            });
        }
        PlaceDone { chartsets, refused: outcome.refused, fingerprint }
    }

    /// The song folders of a place that are stored, and what is reported of those whose chartsets are read from other
    /// places.
    fn choose(&mut self, index: usize, folders: Vec<SongFolder>) -> (Vec<SongFolder>, Vec<ChartsetLine>) {
        let (mut chosen, mut duplicates) = (Vec::new(), Vec::new());
        for mut folder in folders {
            let stands_for_its_set = folder.draft.is_some() || folder.is_unreadable;
            if stands_for_its_set
                && let Some(other) = self.other_place(folder.id, index)
                && let Some(draft) = folder.draft.take()
            {
                duplicates.push(self.duplicate(index, other, draft.id, &draft.path, draft.charts.len()));
            }
            chosen.push(folder);
        }
        (chosen, duplicates)
    }

    /// The place that a chartset is read from in this run, if it is not this place, which is its first.
    fn other_place(&mut self, id: ChartsetId, index: usize) -> Option<usize> {
        match self.taken.entry(id) {
            Entry::Occupied(taken) => Some(*taken.get()),
            Entry::Vacant(free) => {
                free.insert(index);
                None
            }
        }
    }

    fn duplicate(
        &self,
        index: usize,
        other: usize,
        id: ChartsetId,
        path: &str,
        charts: usize,
    ) -> ChartsetLine {
        let places = &self.reader.places;
        let below = path.strip_prefix(&places[index].path).unwrap_or_default();
        let path = places[index].full_path() + below;
        let chosen = Some(places[other].full_path());
        ChartsetLine { chosen, ..ChartsetLine::new(Outcome::Duplicate, path, id, charts) }
    }

    async fn finish(
        &mut self,
        stored: Result<Result<PlaceDone, StoreError>, JoinError>,
        report: &mut Report,
    ) -> Result<()> {
        self.record(stored??, report).await
    }

    /// Reports what became of a place, and records it for the next run.
    async fn record(&mut self, done: PlaceDone, report: &mut Report) -> Result<()> {
        for line in done.chartsets {
            report.chartset(line)?;
        }
        report.refused(done.refused)?;
        report.place_done();
        // Two libraries of one run may have places of one name: the last one is recorded.
        self.fingerprints.extend(done.fingerprint.map(|fingerprint| (fingerprint.place, fingerprint)));
        if self.fingerprints.len() >= RECORDED_TOGETHER { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<()> {
        let fingerprints: Vec<_> = self.fingerprints.drain().map(|(_, fingerprint)| fingerprint).collect();
        let Some(store) = self.writer.store.as_ref().filter(|_| !fingerprints.is_empty()) else {
            return Ok(());
        };
        retried(&self.stop, || store.put_ingest_fingerprints(&fingerprints)).await?;
        Ok(())
    }
}

/// Now, in Unix epoch milliseconds.
pub(crate) fn now_ms() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}
