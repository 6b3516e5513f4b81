//! `chart-indexer ingest`: decodes inputs on all cores and stores several song folders concurrently.
//!
//! Decoded inputs are processed in their order, so that of two inputs with the same chartset every run chooses
//! the same one, and decoding does not run far ahead of PostgreSQL. Each song folder is stored in one
//! transaction, so that an interrupted ingest leaves only complete chartsets. Unchanged inputs are not decoded,
//! see [`crate::fingerprint`].

mod batches;
mod outcome;
mod reader;
mod removed_charts;
mod writer;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use chart_index_domain::ChartsetId;
use chart_index_instrumentation::{Sampler, metrics};
use chart_index_store::{InputFingerprint, Store, StoreError};
use chart_index_telemetry::print;
use chart_index_telemetry::shutdown_signal;
use clap::Args;
use futures_util::StreamExt;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Level;
use tracing::{Instrument, Span};

use self::batches::{BATCH, Batches};
use self::outcome::{RecordedOutcome, StoredChartset};
use self::reader::{InputContent, ReadInput, Reader, StoredHashes};
use self::removed_charts::RemovedCharts;
use self::writer::{InputReport, Writer};
use crate::backoff::retry_store_call;
use crate::filter::{self, Due};
use crate::fingerprint::Fingerprinter;
use crate::library::{self, Input};
use crate::metrics::IngestMetrics;
use crate::percentiles;
use crate::report::{ChartsetLine, ChartsetOutcome, Report, plural};
use crate::song_folder::SongFolder;
use crate::stdout;

/// Number of inputs that are stored concurrently: enough for the transactions that run and for the next ones.
const WRITERS: usize = 3 * BATCH;
/// How long transactions may go on after a signal or a failure.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of fingerprints that are recorded in one statement.
const FINGERPRINT_BATCH: usize = 256;

#[derive(Debug, Args)]
pub(crate) struct IngestOptions {
    /// Libraries, folders and archives (.olz, .osz, .qp, .smzip, .zip)
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Write a report in JSON Lines format: one object per chartset, refused file and refused chart
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Decode all files, including unchanged ones
    #[arg(long)]
    pub(crate) full: bool,
}

/// How an ingest ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    /// All inputs were processed.
    All,
    /// SIGINT or SIGTERM was received. All stored chartsets are complete.
    Interrupted,
}

/// Ingests all inputs at the paths and prints a summary. Without a store, decodes everything and stores
/// nothing. Its changes are in the change feed and in the hash filter, even if the ingest fails or is
/// interrupted, as long as PostgreSQL is available. The sampler decides which inputs have a span.
///
/// # Errors
/// A path cannot be read, the report cannot be written, the store failed, PostgreSQL rejected a chartset, or
/// the hash filter could not be built.
pub(crate) async fn ingest(
    store: Option<Store>,
    options: IngestOptions,
    sampler: Sampler,
) -> Result<Completion> {
    let inputs = find_inputs(&options.paths)?;
    let mut report = Report::new(inputs.len() as u64, options.report.as_deref())?;
    if let Some(store) = &store {
        retry_store_call(&CancellationToken::new(), || store.record_ingest_start()).await?;
    }
    let mut signalled = std::pin::pin!(shutdown_signal().context("cannot listen for signals")?);
    let ingest = Ingest::new(store.clone(), inputs, options.full, sampler);
    let mut completion = ingest.run(&mut signalled, &mut report).await;
    let reported = report.finish().and_then(|()| {
        let printed = report.print_summary(&mut std::io::stdout().lock());
        Ok(stdout::unless_closed(printed)?)
    });
    if let Some(store) = &store {
        if let Ok(Completion::All) = completion {
            completion = tokio::select! {
                () = signalled => Ok(Completion::Interrupted),
                completed = complete(store, &report, reported.is_ok()) => completed.map(|()| Completion::All),
            };
        }
        if !matches!(completion, Ok(Completion::All)) {
            filter::build_after_interruption(store).await;
        }
    }
    let completion = completion?;
    reported?;
    if completion == Completion::All && report.failed() > 0 {
        bail!("PostgreSQL rejected {}", plural(report.failed() as u64, "chartset"));
    }
    Ok(completion)
}

/// Does what follows from the chartsets of an ingest that has processed all inputs.
async fn complete(store: &Store, report: &Report, is_reported: bool) -> Result<()> {
    // First, since a client finds no chart that is not in it.
    filter::build(store, Due::AnyChange).await?;
    // Of new charts in removed chartsets.
    store.withdraw_objects().await?;
    percentiles::compute(store, report.has_changes()).await?;
    if is_reported && report.failed() == 0 {
        retry_store_call(&CancellationToken::new(), || store.record_ingest_end()).await?;
    }
    Ok(())
}

fn find_inputs(paths: &[PathBuf]) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for path in paths {
        let found = library::find_inputs(path)?;
        if found.is_empty() {
            print(Level::WARN, format_args!("no chart files in {}", path.display()));
        }
        inputs.extend(found);
    }
    inputs.sort();
    inputs.dedup();
    Ok(inputs)
}

struct Ingest {
    /// `None` in a dry run.
    store: Option<Store>,
    reader: Arc<Reader>,
    writer: Writer,
    metrics: IngestMetrics,
    stop: CancellationToken,
    /// The index of the input from which each chartset is ingested in this run.
    claims: HashMap<ChartsetId, usize>,
    /// Fingerprints to record, by input key.
    fingerprints: HashMap<[u8; 32], InputFingerprint>,
    removed: RemovedCharts,
}

impl Ingest {
    fn new(store: Option<Store>, inputs: Vec<Input>, full: bool, sampler: Sampler) -> Self {
        let (stored_this_run, stop) = (StoredHashes::default(), CancellationToken::new());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let fingerprinter = if store.is_some() { Fingerprinter::for_this_program().ok() } else { None };
        let reader = Reader {
            inputs,
            store: store.clone(),
            fingerprinter,
            full,
            stored_this_run: stored_this_run.clone(),
            cores: Arc::new(Semaphore::new(cores)),
            stop: stop.clone(),
            sampler,
        };
        let removed = RemovedCharts::default();
        let batches = store.clone().map(|store| Arc::new(Batches::new(store)));
        let writer = Writer { batches, stored_this_run, erased: removed.erased.clone(), stop: stop.clone() };
        Self {
            store,
            reader: Arc::new(reader),
            writer,
            metrics: IngestMetrics::new(metrics()),
            stop,
            claims: HashMap::new(),
            fingerprints: HashMap::new(),
            removed,
        }
    }

    /// Processes inputs until the last one, a signal, or a failure, and then reports removed charts that no
    /// file has any more.
    async fn run(
        mut self,
        signalled: &mut (impl Future<Output = ()> + Unpin),
        report: &mut Report,
    ) -> Result<Completion> {
        let Some(store) = self.store.clone() else {
            return self.process_all(signalled, report).await;
        };
        self.removed = tokio::select! {
            () = &mut *signalled => return Ok(Completion::Interrupted),
            removed = RemovedCharts::read(&store, &self.stop) => removed?,
        };
        self.writer.erased = self.removed.erased.clone();
        let completion = self.process_all(signalled, report).await?;
        let is_complete = completion == Completion::All;
        let end = async {
            // After a signal the process must end soon. The next run decodes the inputs of the last batch
            // again.
            if is_complete {
                self.flush().await?;
            }
            std::mem::take(&mut self.removed).unmatched(&store, &self.stop).await
        };
        let unmatched = tokio::select! {
            () = &mut *signalled, if is_complete => return Ok(Completion::Interrupted),
            unmatched = end => unmatched,
        };
        match unmatched {
            Err(_) if completion == Completion::Interrupted => {}
            unmatched => report.add_unmatched_removals(unmatched?)?,
        }
        Ok(completion)
    }

    /// Processes inputs until the last one, a signal, or a failure. Then waits for transactions in progress,
    /// after a signal or a failure no longer than [`STOP_TIMEOUT`]: those of an outage wait for a connection
    /// several times.
    async fn process_all(
        &mut self,
        signalled: &mut (impl Future<Output = ()> + Unpin),
        report: &mut Report,
    ) -> Result<Completion> {
        let mut inputs = std::pin::pin!(self.reader.clone().read_all());
        let mut writers = JoinSet::new();
        let stopping = self.stop.clone();
        let mut timeout = std::pin::pin!(async move {
            stopping.cancelled().await;
            tokio::time::sleep(STOP_TIMEOUT).await;
        });
        let mut end: Option<Result<Completion>> = None;
        while end.is_none() || !writers.is_empty() {
            let step = tokio::select! {
                () = &mut *signalled, if !self.stop.is_cancelled() => Ok(Some(Completion::Interrupted)),
                Some(joined) = writers.join_next() => self.finish(joined, report).await.map(|()| None),
                () = &mut timeout, if !writers.is_empty() => {
                    writers.shutdown().await;
                    Ok(None)
                }
                input = inputs.next(), if end.is_none() && writers.len() < WRITERS => match input {
                    Some(input) => self.process(input, &mut writers, report).await.map(|()| None),
                    None => Ok(Some(Completion::All)),
                },
            };
            if !matches!(step, Ok(None | Some(Completion::All))) {
                self.stop.cancel();
            }
            end = match (end, step) {
                // The first failure or signal counts: writers that are still running may fail because of it.
                (end @ Some(Err(_) | Ok(Completion::Interrupted)), _) | (end, Ok(None)) => end,
                (_, step) => step.transpose(),
            };
            if let Some(batches) = self.writer.batches.as_ref().filter(|_| end.is_some()) {
                batches.stop_gathering();
            }
        }
        end.unwrap_or(Ok(Completion::All))
    }

    /// Starts to store the chartsets of an input, or reports them as unchanged.
    async fn process(
        &mut self,
        input: Result<ReadInput>,
        writers: &mut JoinSet<Result<InputReport, StoreError>>,
        report: &mut Report,
    ) -> Result<()> {
        let ReadInput { index, content, erased_before, fingerprint, span } = input?;
        match content {
            InputContent::Unchanged(outcome) => {
                self.removed.add_unchanged(erased_before);
                let input_report = self.unchanged(index, outcome, fingerprint);
                self.record(input_report, report).await
            }
            InputContent::Decoded(folders) => {
                self.removed.add_decoded(erased_before, &folders);
                let refused = folders.iter().filter(|folder| folder.is_refused()).count() as u64;
                let (folders, duplicates) = self.split_duplicates(index, folders);
                // An input with duplicates is decoded again in the next run: the chosen one may be gone by
                // then.
                let fingerprint = fingerprint.filter(|_| duplicates.is_empty());
                let writer = self.writer.clone();
                let store = async move {
                    let stored = writer.store(folders, refused, fingerprint).await;
                    let mut input_report = stored.inspect_err(|_| {
                        Span::current().record("otel.status_code", "ERROR");
                    })?;
                    input_report.chartsets.extend(duplicates);
                    Ok(input_report)
                };
                writers.spawn(store.instrument(span));
                Ok(())
            }
        }
    }

    fn unchanged(
        &mut self,
        index: usize,
        outcome: RecordedOutcome,
        fingerprint: Option<InputFingerprint>,
    ) -> InputReport {
        let mut chartsets = Vec::with_capacity(outcome.chartsets.len());
        for chartset in outcome.chartsets {
            let StoredChartset { id, path, charts, removed, .. } = chartset;
            chartsets.push(match self.claim_chartset(id, index) {
                Some(other) => self.duplicate(index, other, id, &path, charts),
                None => ChartsetLine {
                    removed,
                    ..ChartsetLine::new(ChartsetOutcome::Unchanged, path, id, charts)
                },
            });
        }
        let RecordedOutcome { refused, refused_chartsets, .. } = outcome;
        InputReport { chartsets, refused, refused_chartsets, fingerprint }
    }

    /// Claims the chartsets of an input. Returns its song folders, without the drafts of chartsets that another
    /// input has claimed, and a line of the report about each of these.
    fn split_duplicates(
        &mut self,
        index: usize,
        folders: Vec<SongFolder>,
    ) -> (Vec<SongFolder>, Vec<ChartsetLine>) {
        let (mut remaining, mut duplicates) = (Vec::new(), Vec::new());
        for mut folder in folders {
            let has_chartset = folder.draft.is_some() || folder.is_unreadable;
            if has_chartset
                && let Some(other) = self.claim_chartset(folder.id, index)
                && let Some(draft) = folder.draft.take()
            {
                duplicates.push(self.duplicate(index, other, draft.id, &draft.path, draft.charts.len()));
            }
            remaining.push(folder);
        }
        (remaining, duplicates)
    }

    /// Claims a chartset for the input at `index`, from which this run then ingests it. Returns the input that
    /// has claimed it before, if there is one.
    fn claim_chartset(&mut self, id: ChartsetId, index: usize) -> Option<usize> {
        match self.claims.entry(id) {
            Entry::Occupied(claimed) => Some(*claimed.get()),
            Entry::Vacant(entry) => {
                entry.insert(index);
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
        let inputs = &self.reader.inputs;
        let subfolder = path.strip_prefix(&inputs[index].path).unwrap_or_default();
        let path = inputs[index].full_path() + subfolder;
        let chosen = Some(inputs[other].full_path());
        ChartsetLine { chosen, ..ChartsetLine::new(ChartsetOutcome::Duplicate, path, id, charts) }
    }

    async fn finish(
        &mut self,
        joined: Result<Result<InputReport, StoreError>, JoinError>,
        report: &mut Report,
    ) -> Result<()> {
        self.record(joined??, report).await
    }

    /// Reports the result of an input, and records its fingerprint for the next run.
    async fn record(&mut self, input_report: InputReport, report: &mut Report) -> Result<()> {
        self.count(&input_report);
        for line in input_report.chartsets {
            report.add_chartset(line)?;
        }
        report.add_refused(input_report.refused)?;
        report.finish_input();
        // Inputs of two libraries may have the same key: the last one is recorded.
        self.fingerprints
            .extend(input_report.fingerprint.map(|fingerprint| (fingerprint.input_key, fingerprint)));
        if self.fingerprints.len() >= FINGERPRINT_BATCH { self.flush().await } else { Ok(()) }
    }

    fn count(&self, input_report: &InputReport) {
        for line in &input_report.chartsets {
            self.metrics.record_chartset(line.outcome);
        }
        self.metrics.record_refused_chartsets(input_report.refused_chartsets);
        for refused in &input_report.refused {
            self.metrics.record_refusal(refused.kind);
        }
    }

    async fn flush(&mut self) -> Result<()> {
        let fingerprints: Vec<_> = self.fingerprints.drain().map(|(_, fingerprint)| fingerprint).collect();
        let Some(store) = self.store.as_ref().filter(|_| !fingerprints.is_empty()) else {
            return Ok(());
        };
        retry_store_call(&self.stop, || store.put_input_fingerprints(&fingerprints)).await?;
        Ok(())
    }
}
