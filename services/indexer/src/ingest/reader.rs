//! Reading places: in their order, on all cores, a bounded number ahead of what is stored.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use chart_index_domain::{ChartsetDraft, NoteHash};
use chart_index_store::{IngestFingerprint, Store};
use futures_util::{Stream, StreamExt, stream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::now_ms;
use super::outcome::PlaceOutcome;
use super::retry::retried;
use crate::fingerprint::{Rules, place_key};
use crate::library::Place;
use crate::song_folder::{self, SongFolder};

/// Places that are looked up together.
const CHUNK: usize = 256;
/// Chunks that may be looked up and not yet read.
const CHUNKS_AHEAD: usize = 4;
/// Places that may be read and not yet stored.
const READ_AHEAD: usize = 32;
/// Charts of this run that are remembered as stored: 32 bytes each, and twice that in the table.
const MAX_REMEMBERED: usize = 1 << 20;

/// Reads places.
pub(super) struct Reader {
    /// What to read, in order.
    pub(super) places: Vec<Place>,
    /// Where unchanged places are known; `None` in a dry run.
    pub(super) store: Option<Store>,
    /// How places are recognised as unchanged; `None` where that is not possible.
    pub(super) rules: Option<Rules>,
    /// Whether unchanged places are to be decoded as well.
    pub(super) full: bool,
    /// The charts that this run has stored.
    pub(super) stored: StoredHashes,
    /// As many as there are cores.
    pub(super) cores: Arc<Semaphore>,
    /// Ends the waiting for a store that is unavailable.
    pub(super) stop: CancellationToken,
}

/// A place that was read.
pub(super) struct ReadPlace {
    /// Its position among the places.
    pub(super) index: usize,
    /// What is in it.
    pub(super) content: PlaceContent,
    /// What is to be recorded of it, without its outcome where that is not known yet.
    pub(super) fingerprint: Option<IngestFingerprint>,
}

/// What is in a place.
pub(super) enum PlaceContent {
    /// What was in it the last time, and the store has that. Its chartsets are checked.
    Unchanged(PlaceOutcome),
    /// The song folders that were decoded.
    Read(Vec<SongFolder>),
}

/// A place that was looked up.
struct Checked {
    index: usize,
    metadata: Option<[u8; 32]>,
    unchanged: Option<PlaceOutcome>,
    /// What is to be recorded of an unchanged place: the metadata may be new.
    fingerprint: Option<IngestFingerprint>,
    stored: Arc<HashSet<NoteHash>>,
}

/// A place that is read, or is about to be.
enum Pending {
    Unchanged(ReadPlace),
    Decoding(JoinHandle<anyhow::Result<ReadPlace>>),
}

/// A recorded place that looks unchanged.
struct Candidate {
    position: usize,
    outcome: PlaceOutcome,
    fingerprint: Option<IngestFingerprint>,
}

impl Reader {
    /// Reads all places and gives them in their order.
    pub(super) fn read_all(self: Arc<Self>) -> impl Stream<Item = anyhow::Result<ReadPlace>> {
        let count = self.places.len();
        let chunks = (0..count).step_by(CHUNK).map(move |start| start..count.min(start + CHUNK));
        let (checking, reading) = (self.clone(), self);
        stream::iter(chunks)
            .map(move |chunk| tokio::spawn(checking.clone().check(chunk)))
            .buffered(CHUNKS_AHEAD)
            .flat_map(|checked| stream::iter(each(checked.map_err(anyhow::Error::from).flatten())))
            .map(move |checked| checked.map(|checked| reading.clone().read(checked)))
            .map(|pending| async move {
                match pending? {
                    Pending::Unchanged(place) => Ok(place),
                    Pending::Decoding(task) => task.await?,
                }
            })
            .buffered(READ_AHEAD)
    }

    /// Finds out which places of a chunk are unchanged.
    async fn check(self: Arc<Self>, chunk: Range<usize>) -> anyhow::Result<Vec<Checked>> {
        let metadata = self
            .blocking(move |reader| chunk.map(|index| (index, reader.metadata(index))).collect::<Vec<_>>());
        let looked_up = |(index, metadata)| {
            let (unchanged, fingerprint, stored) = Default::default();
            Checked { index, metadata, unchanged, fingerprint, stored }
        };
        let mut checked: Vec<Checked> = metadata.await?.into_iter().map(looked_up).collect();
        if let Some(store) = self.store.clone() {
            self.find_unchanged(&store, &mut checked).await?;
            self.find_stored(&store, &mut checked).await?;
        }
        Ok(checked)
    }

    fn metadata(&self, index: usize) -> Option<[u8; 32]> {
        self.rules?.metadata(&self.places[index], SystemTime::now())
    }

    async fn find_unchanged(self: &Arc<Self>, store: &Store, checked: &mut [Checked]) -> anyhow::Result<()> {
        if self.full || self.rules.is_none() {
            return Ok(());
        }
        let keys: Vec<[u8; 32]> =
            checked.iter().map(|checked| place_key(&self.places[checked.index])).collect();
        let recorded = retried(&self.stop, || store.ingest_fingerprints(&keys)).await?;
        let mut recorded: HashMap<[u8; 32], IngestFingerprint> =
            recorded.into_iter().map(|recorded| (recorded.place, recorded)).collect();
        let looked_up: Vec<_> = checked
            .iter()
            .zip(&keys)
            .enumerate()
            .filter_map(|(position, (checked, key))| {
                Some((position, checked.index, checked.metadata, recorded.remove(key)?))
            })
            .collect();
        let candidates = self.blocking(move |reader| {
            looked_up.into_iter().filter_map(|place| reader.candidate(place)).collect::<Vec<_>>()
        });
        self.confirm(store, candidates.await?, checked).await
    }

    /// The place as it was recorded, if its files are as they were.
    fn candidate(
        &self,
        (position, index, metadata, mut recorded): (usize, usize, Option<[u8; 32]>, IngestFingerprint),
    ) -> Option<Candidate> {
        let outcome = serde_json::from_str(&recorded.outcome).ok()?;
        if metadata.is_some() && metadata == recorded.metadata {
            return Some(Candidate { position, outcome, fingerprint: None });
        }
        let place = &self.places[index];
        if self.rules?.content(place, &song_folder::read(place).ok()?) != recorded.content {
            return None;
        }
        let is_new = recorded.metadata != metadata;
        recorded.metadata = metadata;
        Some(Candidate { position, outcome, fingerprint: is_new.then_some(recorded) })
    }

    /// Marks those places as unchanged whose chartsets are still what came of them: another place, or another library,
    /// may have stored them since.
    async fn confirm(
        &self,
        store: &Store,
        candidates: Vec<Candidate>,
        checked: &mut [Checked],
    ) -> anyhow::Result<()> {
        let chartsets = candidates.iter().flat_map(|candidate| &candidate.outcome.chartsets);
        let expected: Vec<_> = chartsets.filter_map(super::outcome::StoredChartset::expected).collect();
        if expected.is_empty() && candidates.is_empty() {
            return Ok(());
        }
        let confirmed = retried(&self.stop, || store.check_chartsets(&expected, now_ms())).await?;
        // By the content as well: two places with one chartset may both be candidates.
        let removed: HashMap<_, _> = confirmed
            .into_iter()
            .map(|chartset| ((chartset.id, chartset.fingerprint), chartset.removed))
            .collect();
        for Candidate { position, mut outcome, fingerprint } in candidates {
            let mut all = true;
            for chartset in &mut outcome.chartsets {
                let key = chartset.expected().map(|expected| (expected.id, expected.fingerprint));
                let found = key.and_then(|key| removed.get(&key));
                all &= found.is_some();
                chartset.removed = found.is_some_and(|removed| *removed);
            }
            if all {
                checked[position].unchanged = Some(outcome);
                checked[position].fingerprint = fingerprint;
            }
        }
        Ok(())
    }

    /// Looks up the charts that the places which are to be decoded had before.
    async fn find_stored(&self, store: &Store, checked: &mut [Checked]) -> anyhow::Result<()> {
        let changed = checked.iter().filter(|checked| checked.unchanged.is_none());
        let ids: Vec<_> = changed.map(|checked| song_folder::own_id(&self.places[checked.index])).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let stored = Arc::new(retried(&self.stop, || store.chart_hashes_in(&ids)).await?);
        for checked in checked {
            checked.stored = stored.clone();
        }
        Ok(())
    }

    /// Begins to decode a place that changed.
    fn read(self: Arc<Self>, checked: Checked) -> Pending {
        let Checked { index, metadata, unchanged, fingerprint, stored } = checked;
        if let Some(outcome) = unchanged {
            let content = PlaceContent::Unchanged(outcome);
            return Pending::Unchanged(ReadPlace { index, content, fingerprint });
        }
        // A task of its own, so that the next one begins when a core is free, whatever waits for this one.
        let decoding =
            async move { self.blocking(move |reader| reader.decode(index, metadata, &stored)).await };
        Pending::Decoding(tokio::spawn(decoding))
    }

    fn decode(&self, index: usize, metadata: Option<[u8; 32]>, stored: &HashSet<NoteHash>) -> ReadPlace {
        let place = &self.places[index];
        let files = match song_folder::read(place) {
            Ok(files) => files,
            Err(unreadable) => {
                let content = PlaceContent::Read(vec![unreadable.song_folder(place)]);
                return ReadPlace { index, content, fingerprint: None };
            }
        };
        let fingerprint = self.rules.map(|rules| IngestFingerprint {
            place: place_key(place),
            metadata,
            content: rules.content(place, &files),
            outcome: String::new(),
        });
        let is_stored = |hash: &NoteHash| stored.contains(hash) || self.stored.contains(hash);
        let content = PlaceContent::Read(song_folder::decode(place, files, &is_stored));
        ReadPlace { index, content, fingerprint }
    }

    /// Runs work for which a core is needed, once one is free.
    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> anyhow::Result<T> {
        let core = self.cores.clone().acquire_owned().await?;
        let reader = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _core = core;
            work(&reader)
        });
        Ok(done.await?)
    }
}

/// The items of a list, or the one error in its place.
fn each<T, E>(items: Result<Vec<T>, E>) -> Vec<Result<T, E>> {
    match items {
        Ok(items) => items.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    }
}

/// Charts whose ROX files are in the store. They are never replaced, so making them again would be for nothing.
#[derive(Clone, Default)]
pub(super) struct StoredHashes(Arc<RwLock<HashSet<NoteHash>>>);

impl StoredHashes {
    fn contains(&self, hash: &NoteHash) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(hash)
    }

    /// Adds the charts of a set that was stored, as long as there is room.
    pub(super) fn extend(&self, draft: &ChartsetDraft) {
        let made = draft.charts.iter().filter(|chart| chart.rox.is_some()).map(|chart| chart.hash);
        let mut hashes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if hashes.len() < MAX_REMEMBERED {
            hashes.extend(made);
        }
    }
}
