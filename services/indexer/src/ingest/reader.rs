//! Reads and decodes inputs in order, on all cores, a bounded number ahead of the writers.

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
use super::outcome::{InputOutcome, StoredChartset};
use crate::backoff::retry_store_call;
use crate::fingerprint::{Fingerprinter, input_key};
use crate::input_files;
use crate::library::Input;
use crate::song_folder::{self, SongFolder};

/// Number of inputs whose fingerprints are looked up in one query.
const CHUNK: usize = 256;
/// Maximum number of chunks that are looked up ahead of the decoding.
const CHUNKS_AHEAD: usize = 4;
/// Maximum number of inputs that are decoded ahead of the writers.
const READ_AHEAD: usize = 32;
/// Maximum number of charts of this run that are remembered as stored. Each takes up to 64 bytes.
const MAX_REMEMBERED: usize = 1 << 20;

/// Reads and decodes inputs.
pub(super) struct Reader {
    /// The inputs, in order.
    pub(super) inputs: Vec<Input>,
    /// The store with the recorded fingerprints; `None` in a dry run.
    pub(super) store: Option<Store>,
    /// Detects unchanged inputs. `None` if that is not possible.
    pub(super) fingerprinter: Option<Fingerprinter>,
    /// Whether to decode unchanged inputs, too.
    pub(super) full: bool,
    /// The charts stored by this run.
    pub(super) stored: StoredHashes,
    /// A permit per core.
    pub(super) cores: Arc<Semaphore>,
    /// Cancels retries of store calls.
    pub(super) stop: CancellationToken,
}

/// An input that was read.
pub(super) struct ReadInput {
    /// Its index in [`Reader::inputs`].
    pub(super) index: usize,
    /// Its content.
    pub(super) content: InputContent,
    /// The fingerprint to record. Its outcome is still empty for a decoded input.
    pub(super) fingerprint: Option<IngestFingerprint>,
}

/// The content of an input.
pub(super) enum InputContent {
    /// Files and stored chartsets are unchanged since the last run, which had this outcome.
    Unchanged(InputOutcome),
    /// The decoded song folders.
    Decoded(Vec<SongFolder>),
}

/// An input that was compared with its recorded fingerprint.
#[derive(Default)]
struct CheckedInput {
    /// Its index in [`Reader::inputs`].
    index: usize,
    /// The metadata digest.
    metadata: Option<[u8; 32]>,
    /// The recorded outcome, if the input is unchanged.
    unchanged: Option<InputOutcome>,
    /// The fingerprint to record for an unchanged input with new metadata.
    fingerprint: Option<IngestFingerprint>,
    /// The stored charts of the input's chartset.
    stored: Arc<HashSet<NoteHash>>,
}

/// An input that is or will be read.
enum Pending {
    Unchanged(ReadInput),
    Decoding(JoinHandle<anyhow::Result<ReadInput>>),
}

/// An input with a recorded fingerprint.
struct RecordedInput {
    /// Its index in the chunk.
    position: usize,
    /// Its index in [`Reader::inputs`].
    index: usize,
    /// The current metadata digest.
    metadata: Option<[u8; 32]>,
    recorded: IngestFingerprint,
}

/// An input whose files are unchanged.
struct Candidate {
    /// Its index in the chunk.
    position: usize,
    outcome: InputOutcome,
    fingerprint: Option<IngestFingerprint>,
}

impl Reader {
    /// Reads all inputs and returns them in order.
    pub(super) fn read_all(self: Arc<Self>) -> impl Stream<Item = anyhow::Result<ReadInput>> {
        let count = self.inputs.len();
        let chunks = (0..count).step_by(CHUNK).map(move |start| start..count.min(start + CHUNK));
        let (checking, reading) = (self.clone(), self);
        stream::iter(chunks)
            .map(move |chunk| tokio::spawn(checking.clone().check(chunk)))
            .buffered(CHUNKS_AHEAD)
            .flat_map(|checked| stream::iter(each(checked.map_err(anyhow::Error::from).flatten())))
            .map(move |checked| checked.map(|checked| reading.clone().read(checked)))
            .map(|pending| async move {
                match pending? {
                    Pending::Unchanged(input) => Ok(input),
                    Pending::Decoding(task) => task.await?,
                }
            })
            .buffered(READ_AHEAD)
    }

    /// Determines which inputs of a chunk are unchanged.
    async fn check(self: Arc<Self>, chunk: Range<usize>) -> anyhow::Result<Vec<CheckedInput>> {
        let metadata = self
            .blocking(move |reader| chunk.map(|index| (index, reader.metadata(index))).collect::<Vec<_>>());
        let unchecked = |(index, metadata)| CheckedInput { index, metadata, ..CheckedInput::default() };
        let mut checked: Vec<CheckedInput> = metadata.await?.into_iter().map(unchecked).collect();
        if let Some(store) = self.store.clone() {
            self.find_unchanged(&store, &mut checked).await?;
            self.find_stored(&store, &mut checked).await?;
        }
        Ok(checked)
    }

    fn metadata(&self, index: usize) -> Option<[u8; 32]> {
        self.fingerprinter?.metadata(&self.inputs[index], SystemTime::now())
    }

    async fn find_unchanged(
        self: &Arc<Self>,
        store: &Store,
        checked: &mut [CheckedInput],
    ) -> anyhow::Result<()> {
        if self.full || self.fingerprinter.is_none() {
            return Ok(());
        }
        let keys: Vec<[u8; 32]> =
            checked.iter().map(|checked| input_key(&self.inputs[checked.index])).collect();
        let recorded = retry_store_call(&self.stop, || store.ingest_fingerprints(&keys)).await?;
        let mut recorded: HashMap<[u8; 32], IngestFingerprint> =
            recorded.into_iter().map(|recorded| (recorded.input, recorded)).collect();
        let with_record = |(position, (checked, key)): (usize, (&CheckedInput, _))| {
            let CheckedInput { index, metadata, .. } = *checked;
            Some(RecordedInput { position, index, metadata, recorded: recorded.remove(key)? })
        };
        let inputs: Vec<_> = checked.iter().zip(&keys).enumerate().filter_map(with_record).collect();
        let candidates = self.blocking(move |reader| {
            inputs.into_iter().filter_map(|input| reader.candidate(input)).collect::<Vec<_>>()
        });
        self.confirm(store, candidates.await?, checked).await
    }

    /// A candidate, if the files of the input are unchanged.
    fn candidate(&self, input: RecordedInput) -> Option<Candidate> {
        let RecordedInput { position, index, metadata, mut recorded } = input;
        let outcome = serde_json::from_str(&recorded.outcome).ok()?;
        if metadata.is_some() && metadata == recorded.metadata {
            return Some(Candidate { position, outcome, fingerprint: None });
        }
        let input = &self.inputs[index];
        if self.fingerprinter?.content(input, &input_files::read(input).ok()?) != recorded.content {
            return None;
        }
        let is_new = recorded.metadata != metadata;
        recorded.metadata = metadata;
        Some(Candidate { position, outcome, fingerprint: is_new.then_some(recorded) })
    }

    /// Marks candidates as unchanged if the store still has their chartsets as recorded: another input or library may have
    /// stored them since.
    async fn confirm(
        &self,
        store: &Store,
        candidates: Vec<Candidate>,
        checked: &mut [CheckedInput],
    ) -> anyhow::Result<()> {
        let chartsets = candidates.iter().flat_map(|candidate| &candidate.outcome.chartsets);
        let expected: Vec<_> = chartsets.filter_map(StoredChartset::expected).collect();
        if expected.is_empty() && candidates.is_empty() {
            return Ok(());
        }
        let confirmed = retry_store_call(&self.stop, || store.check_chartsets(&expected, now_ms())).await?;
        // The key includes the content: two inputs with the same chartset may both be candidates.
        let removed: HashMap<_, _> = confirmed
            .into_iter()
            .map(|chartset| ((chartset.id, chartset.fingerprint), chartset.removed))
            .collect();
        for Candidate { position, mut outcome, fingerprint } in candidates {
            if outcome.confirm(&removed) {
                checked[position].unchanged = Some(outcome);
                checked[position].fingerprint = fingerprint;
            }
        }
        Ok(())
    }

    /// Looks up the stored charts of the inputs that have to be decoded.
    async fn find_stored(&self, store: &Store, checked: &mut [CheckedInput]) -> anyhow::Result<()> {
        let changed = checked.iter().filter(|checked| checked.unchanged.is_none());
        let ids: Vec<_> = changed.map(|checked| self.inputs[checked.index].identify("").id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let stored = Arc::new(retry_store_call(&self.stop, || store.chart_hashes_in(&ids)).await?);
        for checked in checked {
            checked.stored = stored.clone();
        }
        Ok(())
    }

    /// Starts to decode an input that changed.
    fn read(self: Arc<Self>, checked: CheckedInput) -> Pending {
        let CheckedInput { index, metadata, unchanged, fingerprint, stored } = checked;
        if let Some(outcome) = unchanged {
            let content = InputContent::Unchanged(outcome);
            return Pending::Unchanged(ReadInput { index, content, fingerprint });
        }
        // In a separate task, so that decoding starts when a core is free, even while the stream is not polled.
        let decoding =
            async move { self.blocking(move |reader| reader.decode(index, metadata, &stored)).await };
        Pending::Decoding(tokio::spawn(decoding))
    }

    fn decode(&self, index: usize, metadata: Option<[u8; 32]>, stored: &HashSet<NoteHash>) -> ReadInput {
        let input = &self.inputs[index];
        let files = match input_files::read(input) {
            Ok(files) => files,
            Err(error) => {
                let content = InputContent::Decoded(vec![SongFolder::unreadable(input, error)]);
                return ReadInput { index, content, fingerprint: None };
            }
        };
        let fingerprint = self.fingerprinter.map(|fingerprinter| IngestFingerprint {
            input: input_key(input),
            metadata,
            content: fingerprinter.content(input, &files),
            outcome: String::new(),
        });
        let is_stored = |hash: &NoteHash| stored.contains(hash) || self.stored.contains(hash);
        let content = InputContent::Decoded(song_folder::decode(input, files, &is_stored));
        ReadInput { index, content, fingerprint }
    }

    /// Runs CPU-bound work when a core is free.
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

/// Turns the result of a list into a list of results.
fn each<T, E>(items: Result<Vec<T>, E>) -> Vec<Result<T, E>> {
    match items {
        Ok(items) => items.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    }
}

/// Charts whose ROX files this run has stored. They are never replaced, so they need not be encoded again.
#[derive(Clone, Default)]
pub(super) struct StoredHashes(Arc<RwLock<HashSet<NoteHash>>>);

impl StoredHashes {
    fn contains(&self, hash: &NoteHash) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(hash)
    }

    /// Adds the new charts of a stored chartset, up to [`MAX_REMEMBERED`].
    pub(super) fn extend(&self, draft: &ChartsetDraft) {
        let new = draft.charts.iter().filter(|chart| chart.rox.is_some()).map(|chart| chart.hash);
        let mut hashes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if hashes.len() < MAX_REMEMBERED {
            hashes.extend(new);
        }
    }
}
