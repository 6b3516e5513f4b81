//! `chart-indexer ingest`: places are read on all cores, song folders are stored a few at a time.
//!
//! Readers and writers meet in a bounded channel: reading never runs far ahead of PostgreSQL. Each song folder
//! is one transaction, so that stopping at any moment leaves complete chartsets only.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use chart_index_domain::{ChartsetDraft, NoteHash};
use chart_index_store::{PutEffect, PutOutcome, Store, StoreError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::announcements::{Announcements, Announcer};
use crate::library::{self, Place};
use crate::report::{Outcome, Report};
use crate::song_folder::{self, SongFolder};

/// Song folders stored at the same time: enough to keep PostgreSQL busy while one waits for its disk.
const WRITERS: usize = 4;
/// Places that may be read and not yet stored.
const READ_AHEAD: usize = 32;

/// What became of one place.
struct PlaceDone {
    folders: Vec<(SongFolder, Option<PutOutcome>)>,
}

/// Ingests everything at the paths, prints the summary, and tells whether it ran to its end. Without a store
/// everything is read and nothing is kept.
///
/// # Errors
/// A path cannot be read, the report cannot be written, or the store failed.
pub(crate) async fn ingest(
    store: Option<&Store>,
    announcer: Announcer,
    paths: &[PathBuf],
    report: Option<&Path>,
) -> Result<Completion> {
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
    if let Some(store) = store {
        store.ping().await.context("the store cannot be used (is it migrated? `chart-indexer migrate`)")?;
    }
    let mut report = Report::new(places.len() as u64, report)?;
    let announcements = announcer.behind();
    let completion = run(store, places, &announcements, &mut report).await;
    report.finish()?;
    report.summary(&mut std::io::stdout().lock())?;
    let told = announcements.finish().await;
    completion.and_then(|completion| told.map(|()| completion))
}

/// How an ingest ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    /// Every place was read.
    All,
    /// It was interrupted; what is stored is complete.
    Interrupted,
}

async fn run(
    store: Option<&Store>,
    places: Vec<Place>,
    announcements: &Announcements,
    report: &mut Report,
) -> Result<Completion> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
    let stored = StoredHashes::of(store).await?;
    let read = read_on_all_cores(places, &stored, &stop);
    let mut done = store_each(store, stored, announcements, read, &stop);
    let mut completion = Completion::All;
    loop {
        tokio::select! {
            place = done.recv() => match place {
                Some(place) => record(place?, report)?,
                None => return Ok(completion),
            },
            _ = &mut interrupted, if completion == Completion::All => {
                stop.store(true, Ordering::Relaxed);
                completion = Completion::Interrupted;
            }
        }
    }
}

/// One thread per core reads the next place until there is none, or until it is told to stop.
fn read_on_all_cores(
    places: Vec<Place>,
    stored: &StoredHashes,
    stop: &Arc<AtomicBool>,
) -> mpsc::Receiver<Vec<SongFolder>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    let (places, next) = (Arc::new(places), Arc::new(AtomicUsize::new(0)));
    for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
        let (places, next, stored) = (places.clone(), next.clone(), stored.clone());
        let (stop, sender) = (stop.clone(), sender.clone());
        tokio::task::spawn_blocking(move || {
            while !stop.load(Ordering::Relaxed)
                && let Some(place) = places.get(next.fetch_add(1, Ordering::Relaxed))
            {
                if sender.blocking_send(song_folder::read(place, &|hash| stored.contains(hash))).is_err() {
                    return;
                }
            }
        });
    }
    receiver
}

/// Stores what was read. The first failure of the store is the last that is sent.
fn store_each(
    store: Option<&Store>,
    stored: StoredHashes,
    announcements: &Announcements,
    mut read: mpsc::Receiver<Vec<SongFolder>>,
    stop: &Arc<AtomicBool>,
) -> mpsc::Receiver<Result<PlaceDone, StoreError>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    let (store, stop, changed) = (store.cloned(), stop.clone(), announcements.sender());
    tokio::spawn(async move {
        let mut writers = JoinSet::new();
        while let Some(folders) = read.recv().await {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            if writers.len() == WRITERS {
                writers.join_next().await;
            }
            let (store, stored) = (store.clone(), stored.clone());
            let (stop, sender, changed) = (stop.clone(), sender.clone(), changed.clone());
            writers.spawn(async move {
                let done = store_place(store.as_ref(), &stored, &changed, folders).await;
                if done.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                // Nobody listens any more after a failure.
                let _ = sender.send(done).await;
            });
        }
        while writers.join_next().await.is_some() {}
    });
    receiver
}

async fn store_place(
    store: Option<&Store>,
    stored: &StoredHashes,
    changed: &mpsc::UnboundedSender<Vec<NoteHash>>,
    folders: Vec<SongFolder>,
) -> Result<PlaceDone, StoreError> {
    let mut done = Vec::with_capacity(folders.len());
    for folder in folders {
        let outcome = match (store, &folder.draft) {
            (Some(store), Some(draft)) => {
                let put = store.put_chartset(draft, now_ms()).await?;
                if put.effect != PutEffect::Unchanged {
                    // The receiver is there until the ingest is over.
                    let _ =
                        changed.send(draft.charts.iter().map(|c| c.hash).chain(put.left.clone()).collect());
                }
                stored.extend(draft);
                Some(put)
            }
            _ => None,
        };
        done.push((folder, outcome));
    }
    Ok(PlaceDone { folders: done })
}

/// The charts whose ROX files are in the store. They are never replaced, so making them again would be for nothing.
#[derive(Clone, Default)]
struct StoredHashes(Arc<RwLock<HashSet<NoteHash>>>);

impl StoredHashes {
    async fn of(store: Option<&Store>) -> Result<Self, StoreError> {
        let Some(store) = store else { return Ok(Self::default()) };
        let hashes = store.stored_hashes().await?.into_iter().collect();
        Ok(Self(Arc::new(RwLock::new(hashes))))
    }

    fn contains(&self, hash: &NoteHash) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(hash)
    }

    /// Adds the charts of a set that was stored.
    fn extend(&self, draft: &ChartsetDraft) {
        let made = draft.charts.iter().filter(|chart| chart.rox.is_some()).map(|chart| chart.hash);
        let mut hashes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        hashes.extend(made);
    }
}

fn record(place: PlaceDone, report: &mut Report) -> Result<()> {
    for (folder, outcome) in place.folders {
        if let Some(draft) = &folder.draft {
            report.chartset(
                draft,
                outcome.as_ref().map_or(Outcome::Read, |put| put.effect.into()),
                outcome.as_ref().is_some_and(|put| put.removed),
            )?;
        }
        report.refused(folder.refused)?;
    }
    report.place_done();
    Ok(())
}

impl From<PutEffect> for Outcome {
    fn from(effect: PutEffect) -> Self {
        match effect {
            PutEffect::Added => Self::Added,
            PutEffect::Unchanged => Self::Unchanged,
            PutEffect::Updated => Self::Updated,
        }
    }
}

/// Now, in Unix epoch milliseconds.
pub(crate) fn now_ms() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}
