//! The lines of the output of `chart-indexer hash`.

use std::io::Write;
use std::mem;

use anyhow::{Context, Result};
use chart_index_chartfile::archive::EntryError;
use chart_index_domain::{ChartDraft, KeyCount, NOTE_HASH_VERSION, NoteHash, VARIANT_VERSION, Variant};
use serde::Serialize;
use serde_json::Value;

use super::lookup::{Lookup, MAX_HASHES};
use crate::refusal_kind::RefusalKind;
use crate::stdout::write_json;

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Line {
    Chart(ChartLine),
    Refused(RefusedLine),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ChartLine {
    file: String,
    hash: NoteHash,
    note_hash_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    variant: Option<Variant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variant_version: Option<u8>,
    keys: KeyCount,
    title: String,
    artist: String,
    creator: String,
    difficulty: String,
    /// The body of the chart lookup, if an instance is asked. That of an unknown chart has the charts with its
    /// variant.
    #[serde(skip_serializing_if = "Option::is_none")]
    lookup: Option<Value>,
}

/// A file or chart without a note hash.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RefusedLine {
    file: String,
    /// The chart, if other charts of the file have a hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    chart: Option<String>,
    kind: RefusalKind,
    reason: String,
}

/// Writes lines: at once, or with what an instance knows of the charts. In that case the lines of up to
/// [`MAX_HASHES`] charts wait for one request.
pub(super) struct Lines<'a, W> {
    output: &'a mut W,
    instance: Option<&'a Lookup>,
    waiting: Vec<Line>,
    /// The number of charts among the lines that wait.
    charts: usize,
}

impl<'a, W: Write> Lines<'a, W> {
    pub(super) fn new(output: &'a mut W, instance: Option<&'a Lookup>) -> Self {
        Self { output, instance, waiting: Vec::new(), charts: 0 }
    }

    pub(super) async fn write_chart(&mut self, file: &str, chart: ChartDraft) -> Result<()> {
        let metadata = chart.metadata;
        self.charts += 1;
        self.write_line(Line::Chart(ChartLine {
            file: file.to_owned(),
            hash: chart.hash,
            note_hash_version: NOTE_HASH_VERSION,
            variant: chart.variant,
            variant_version: chart.variant.map(|_| VARIANT_VERSION),
            keys: chart.numbers.keys,
            title: metadata.title,
            artist: metadata.artist,
            creator: metadata.creator,
            difficulty: metadata.difficulty,
            lookup: None,
        }))
        .await
    }

    /// Writes the line of a file, or of one of its charts, that has no note hash.
    pub(super) async fn write_refused(
        &mut self,
        file: &str,
        chart: Option<String>,
        error: &EntryError,
    ) -> Result<()> {
        let (kind, reason) = (RefusalKind::from(error), error.to_string());
        self.write_line(Line::Refused(RefusedLine { file: file.to_owned(), chart, kind, reason })).await
    }

    async fn write_line(&mut self, line: Line) -> Result<()> {
        self.waiting.push(line);
        if self.instance.is_none() || self.charts == MAX_HASHES { self.write_waiting().await } else { Ok(()) }
    }

    /// Writes the lines that wait, and flushes the output.
    pub(super) async fn finish(mut self) -> Result<()> {
        self.write_waiting().await?;
        self.output.flush().context("cannot write the output")
    }

    async fn write_waiting(&mut self) -> Result<()> {
        let mut lines = mem::take(&mut self.waiting);
        self.charts = 0;
        let looked_up = match self.instance {
            Some(instance) => look_up(instance, &mut lines).await,
            None => Ok(()),
        };
        lines.iter().try_for_each(|line| self.write(line))?;
        if looked_up.is_err() {
            self.output.flush().context("cannot write the output")?;
        }
        looked_up
    }

    fn write(&mut self, line: &Line) -> Result<()> {
        write_json(self.output, line).context("cannot write the output")
    }
}

/// Adds to lines what an instance knows of their charts: also what is known before an error.
async fn look_up(instance: &Lookup, lines: &mut [Line]) -> Result<()> {
    let mut charts: Vec<_> = lines.iter_mut().filter_map(Line::chart).collect();
    let hashes: Vec<_> = charts.iter().map(|chart| chart.hash).collect();
    let mut items = Vec::with_capacity(hashes.len());
    let looked_up = instance.look_up(&hashes, &mut items).await;
    for (chart, item) in charts.iter_mut().zip(items) {
        chart.lookup = Some(item);
    }
    looked_up?;
    let mut unknown: Vec<_> = charts.into_iter().filter_map(ChartLine::unknown).collect();
    let variants: Vec<_> = unknown.iter().map(|(chart, variant)| (chart.hash, *variant)).collect();
    let mut items = Vec::with_capacity(variants.len());
    let looked_up = instance.look_up_variants(&variants, &mut items).await;
    for ((chart, _), item) in unknown.iter_mut().zip(items) {
        chart.lookup = Some(item);
    }
    looked_up
}

impl ChartLine {
    /// The chart with its variant, if the instance does not know the chart.
    fn unknown(&mut self) -> Option<(&mut Self, Variant)> {
        let is_unknown = self.lookup.as_ref().is_some_and(|lookup| lookup["status"] == "unknown");
        let variant = self.variant.filter(|_| is_unknown)?;
        Some((self, variant))
    }
}

impl Line {
    fn chart(&mut self) -> Option<&mut ChartLine> {
        match self {
            Self::Chart(chart) => Some(chart),
            Self::Refused(_) => None,
        }
    }
}
