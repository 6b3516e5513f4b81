//! Reads and decodes inputs in order, on all cores, a bounded number ahead of the writers.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use chart_index_domain::{ChartsetDraft, NoteHash};
use chart_index_instrumentation::Sampler;
use chart_index_store::{InputFingerprint, RemovedMember, Store};
use futures_util::{Stream, StreamExt, stream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{Span, field};

use super::outcome::{RecordedOutcome, StoredChartset};
use crate::backoff::retry_store_call;
use crate::clock::now_ms;
use crate::fingerprint::{Fingerprinter, input_key};
use crate::input_files;
use crate::library::{FolderInInput, Input};
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
    /// The inputs, in the order in which they are read.
    pub(super) inputs: Vec<Input>,
    /// The store with the recorded fingerprints; `None` in a dry run.
    pub(super) store: Option<Store>,
    /// Detects unchanged inputs; `None` in a dry run, and if the program cannot be read.
    pub(super) fingerprinter: Option<Fingerprinter>,
    /// Whether to decode unchanged inputs as well.
    pub(super) full: bool,
    /// The charts stored by this run.
    pub(super) stored_this_run: StoredHashes,
    /// One permit per core.
    pub(super) cores: Arc<Semaphore>,
    /// Cancels retries of store calls.
    pub(super) stop: CancellationToken,
    /// Decides which inputs have a span.
    pub(super) sampler: Sampler,
}

pub(super) struct ReadInput {
    /// Its index in [`Reader::inputs`].
    pub(super) index: usize,
    pub(super) content: InputContent,
    /// The erased charts that its files had when it was last decoded.
    pub(super) erased_before: Vec<RemovedMember>,
    /// The fingerprint to record. Its outcome is still empty for a decoded input.
    pub(super) fingerprint: Option<InputFingerprint>,
    /// The span of the input: disabled if it is unchanged or not sampled.
    pub(super) span: Span,
}

pub(super) enum InputContent {
    /// Files and stored chartsets are unchanged since the last run, which had this outcome.
    Unchanged(RecordedOutcome),
    Decoded(Vec<SongFolder>),
}

/// An input, and what is known about it before it is decoded.
#[derive(Default)]
struct PlannedInput {
    /// Its index in [`Reader::inputs`].
    index: usize,
    /// The digest of names, sizes, times and inodes of its files.
    file_metadata_digest: Option<[u8; 32]>,
    /// The recorded outcome, if the files of the input are unchanged, and then if its chartsets are.
    unchanged: Option<RecordedOutcome>,
    /// The fingerprint to record for an unchanged input with new metadata.
    fingerprint: Option<InputFingerprint>,
    /// The erased charts of the recorded outcome.
    erased_before: Vec<RemovedMember>,
    /// The charts that the chartsets of this chunk had in the store when the chunk was planned.
    stored_before: Arc<HashSet<NoteHash>>,
}

/// An input that is or will be read.
enum Pending {
    Unchanged(Box<ReadInput>),
    Decoding(JoinHandle<anyhow::Result<ReadInput>>),
}

impl Reader {
    /// Reads all inputs and returns them in order.
    pub(super) fn read_all(self: Arc<Self>) -> impl Stream<Item = anyhow::Result<ReadInput>> {
        let count = self.inputs.len();
        let chunks = (0..count).step_by(CHUNK).map(move |start| start..count.min(start + CHUNK));
        let (planning, reading) = (self.clone(), self);
        stream::iter(chunks)
            .map(move |chunk| tokio::spawn(planning.clone().plan(chunk)))
            .buffered(CHUNKS_AHEAD)
            .flat_map(|planned| stream::iter(each(planned.map_err(anyhow::Error::from).flatten())))
            .map(move |planned| planned.map(|planned| reading.clone().read(planned)))
            .map(|pending| async move {
                match pending? {
                    Pending::Unchanged(input) => Ok(*input),
                    Pending::Decoding(task) => task.await?,
                }
            })
            .buffered(READ_AHEAD)
    }

    /// Plans a chunk: determines which inputs are unchanged, and which charts of the others are stored.
    async fn plan(self: Arc<Self>, chunk: Range<usize>) -> anyhow::Result<Vec<PlannedInput>> {
        let digests = self.blocking(move |reader| {
            chunk.map(|index| (index, reader.file_metadata_digest(index))).collect::<Vec<_>>()
        });
        let plan = |(index, file_metadata_digest)| PlannedInput {
            index,
            file_metadata_digest,
            ..PlannedInput::default()
        };
        let mut planned: Vec<PlannedInput> = digests.await?.into_iter().map(plan).collect();
        if let Some(store) = self.store.clone() {
            planned = self.find_unchanged(&store, planned).await?;
            self.find_stored(&store, &mut planned).await?;
        }
        Ok(planned)
    }

    fn file_metadata_digest(&self, index: usize) -> Option<[u8; 32]> {
        self.fingerprinter?.file_metadata_digest(&self.inputs[index], SystemTime::now())
    }

    async fn find_unchanged(
        self: &Arc<Self>,
        store: &Store,
        mut planned: Vec<PlannedInput>,
    ) -> anyhow::Result<Vec<PlannedInput>> {
        if self.fingerprinter.is_none() {
            return Ok(planned);
        }
        let keys: Vec<[u8; 32]> =
            planned.iter().map(|planned| input_key(&self.inputs[planned.index])).collect();
        let recorded = retry_store_call(&self.stop, || store.input_fingerprints(&keys)).await?;
        let mut recorded: HashMap<[u8; 32], InputFingerprint> =
            recorded.into_iter().map(|recorded| (recorded.input_key, recorded)).collect();
        let compare = move |reader: &Self| {
            for (planned, key) in planned.iter_mut().zip(&keys) {
                let Some(recorded) = recorded.remove(key) else { continue };
                let Ok(outcome) = serde_json::from_str::<RecordedOutcome>(&recorded.outcome) else {
                    continue;
                };
                planned.erased_before = outcome.erased().collect();
                if let Some((outcome, fingerprint)) = reader.if_unchanged(planned, recorded, outcome) {
                    (planned.unchanged, planned.fingerprint) = (Some(outcome), fingerprint);
                }
            }
            planned
        };
        let mut planned = self.blocking(compare).await?;
        self.confirm(store, &mut planned).await?;
        Ok(planned)
    }

    /// The recorded outcome, if the files of the input are unchanged, and the fingerprint to record if their
    /// metadata is new.
    fn if_unchanged(
        &self,
        planned: &PlannedInput,
        mut recorded: InputFingerprint,
        outcome: RecordedOutcome,
    ) -> Option<(RecordedOutcome, Option<InputFingerprint>)> {
        if self.full {
            return None;
        }
        let file_metadata_digest = planned.file_metadata_digest;
        if file_metadata_digest.is_some() && file_metadata_digest == recorded.file_metadata_digest {
            return Some((outcome, None));
        }
        let input = &self.inputs[planned.index];
        if self.fingerprinter?.content_digest(input, &input_files::read(input).ok()?)
            != recorded.content_digest
        {
            return None;
        }
        let is_new = recorded.file_metadata_digest != file_metadata_digest;
        recorded.file_metadata_digest = file_metadata_digest;
        Some((outcome, is_new.then_some(recorded)))
    }

    /// Keeps inputs as unchanged only if the store still has their chartsets as recorded: another input or
    /// library may have stored them since.
    async fn confirm(&self, store: &Store, planned: &mut [PlannedInput]) -> anyhow::Result<()> {
        let outcomes = planned.iter().filter_map(|planned| planned.unchanged.as_ref());
        let chartsets = outcomes.flat_map(|outcome| &outcome.chartsets);
        let expected: Vec<_> = chartsets.filter_map(StoredChartset::expected).collect();
        if planned.iter().all(|planned| planned.unchanged.is_none()) {
            return Ok(());
        }
        let confirmed =
            retry_store_call(&self.stop, || store.record_unchanged_chartsets(&expected, now_ms())).await?;
        // The key includes the content: two inputs with the same chartset may both be unchanged.
        let removed: HashMap<_, _> = confirmed
            .into_iter()
            .map(|chartset| ((chartset.id, chartset.fingerprint), chartset.removed))
            .collect();
        for planned in planned {
            if planned.unchanged.as_mut().is_some_and(|outcome| !outcome.confirm(&removed)) {
                (planned.unchanged, planned.fingerprint) = (None, None);
            }
        }
        Ok(())
    }

    /// Looks up the stored charts of the inputs that have to be decoded.
    async fn find_stored(&self, store: &Store, planned: &mut [PlannedInput]) -> anyhow::Result<()> {
        let changed = planned.iter().filter(|planned| planned.unchanged.is_none());
        let own = FolderInInput::default();
        let ids: Vec<_> = changed.map(|planned| self.inputs[planned.index].identify(&own).id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let stored = Arc::new(retry_store_call(&self.stop, || store.chart_hashes_in(&ids)).await?);
        for planned in planned {
            planned.stored_before = stored.clone();
        }
        Ok(())
    }

    /// Starts to decode an input that changed.
    fn read(self: Arc<Self>, planned: PlannedInput) -> Pending {
        let PlannedInput { index, file_metadata_digest, stored_before, erased_before, .. } = planned;
        if let Some(outcome) = planned.unchanged {
            let (content, fingerprint) = (InputContent::Unchanged(outcome), planned.fingerprint);
            let input = ReadInput { index, content, erased_before, fingerprint, span: Span::none() };
            return Pending::Unchanged(input.into());
        }
        // In a separate task, so that decoding starts when a core is free, even while the stream is not polled.
        let decoding = async move {
            let decode = move |reader: &Self| {
                let span = reader.input_span();
                let (content, fingerprint) = span.in_scope(|| {
                    let decode = || reader.decode(index, file_metadata_digest, &stored_before);
                    tracing::debug_span!("decode").in_scope(decode)
                });
                ReadInput { index, content, erased_before, fingerprint, span }
            };
            self.blocking(decode).await
        };
        Pending::Decoding(tokio::spawn(decoding))
    }

    /// The root span of an input, if it is sampled.
    fn input_span(&self) -> Span {
        if !self.sampler.sample() {
            return Span::none();
        }
        tracing::info_span!(
            parent: None,
            "ingest chartset",
            "chart_index.ingest.chartsets" = field::Empty,
            "chart_index.ingest.refusals" = field::Empty,
            "otel.status_code" = field::Empty,
        )
    }

    fn decode(
        &self,
        index: usize,
        file_metadata_digest: Option<[u8; 32]>,
        stored_before: &HashSet<NoteHash>,
    ) -> (InputContent, Option<InputFingerprint>) {
        let input = &self.inputs[index];
        let files = match input_files::read(input) {
            Ok(files) => files,
            Err(error) => {
                let content = InputContent::Decoded(vec![SongFolder::unreadable(input, error)]);
                return (content, None);
            }
        };
        let fingerprint = self.fingerprinter.map(|fingerprinter| InputFingerprint {
            input_key: input_key(input),
            file_metadata_digest,
            content_digest: fingerprinter.content_digest(input, &files),
            outcome: String::new(),
        });
        let is_stored = |hash: &NoteHash| stored_before.contains(hash) || self.stored_this_run.contains(hash);
        (InputContent::Decoded(song_folder::decode(input, files, &is_stored)), fingerprint)
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

/// Turns a failed list into a list with one error.
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
