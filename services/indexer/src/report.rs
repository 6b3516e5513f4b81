//! The output of an ingest: progress while it runs, a summary at its end, and a report in JSON Lines format.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use chart_index_domain::{ChartsetId, NoteHash};
use chart_index_store::RemovedMember;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::progress;
use crate::song_folder::RefusedFile;
use crate::stdout::{write_json, write_line};

/// What an ingest did with a chartset: the `outcome` of its [`ChartsetLine`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ChartsetOutcome {
    /// The chartset is new.
    Added,
    /// The chartset was stored with the same content.
    Unchanged,
    /// The chartset was stored with other content.
    Updated,
    /// The chartset was decoded in a dry run.
    Read,
    /// The chartset is ingested from another folder or archive.
    Duplicate,
    /// PostgreSQL rejected the chartset.
    Failed,
}

/// Counts and reports the outcomes of an ingest.
pub(crate) struct Report {
    file: Option<BufWriter<File>>,
    progress: ProgressBar,
    added: u64,
    unchanged: u64,
    updated: u64,
    read: u64,
    still_removed: u64,
    charts: u64,
    refused: Vec<RefusedFile>,
    duplicates: Vec<ChartsetLine>,
    failed: Vec<ChartsetLine>,
    unmatched_removals: Vec<UnmatchedRemovalLine>,
}

/// A line of the report about a chartset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChartsetLine {
    pub(crate) outcome: ChartsetOutcome,
    /// The path below the library root.
    pub(crate) path: String,
    pub(crate) chartset: ChartsetId,
    pub(crate) charts: usize,
    /// Whether the chartset is removed from the index.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) removed: bool,
    /// For a duplicate, the folder or archive from which the chartset is ingested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chosen: Option<String>,
    /// For a failed chartset, the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl ChartsetLine {
    /// A line about a chartset that is not removed.
    pub(crate) const fn new(
        outcome: ChartsetOutcome,
        path: String,
        chartset: ChartsetId,
        charts: usize,
    ) -> Self {
        Self { outcome, path, chartset, charts, removed: false, chosen: None, reason: None }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RefusedLine<'a> {
    outcome: &'static str,
    #[serde(flatten)]
    refused: &'a RefusedFile,
}

/// A line of the report about a removed chart that no file has any more.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UnmatchedRemovalLine {
    outcome: &'static str,
    chart_hash: NoteHash,
    /// The path of a chartset that had it.
    path: String,
    chartset: ChartsetId,
}

impl Report {
    /// A report about this number of inputs, which writes JSON Lines to `file`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn new(inputs: u64, file: Option<&Path>) -> Result<Self> {
        let file = file
            .map(|path| {
                File::create(path).with_context(|| format!("cannot write the report {}", path.display()))
            })
            .transpose()?
            .map(BufWriter::new);
        Ok(Self {
            file,
            progress: progress::items(inputs),
            added: 0,
            unchanged: 0,
            updated: 0,
            read: 0,
            still_removed: 0,
            charts: 0,
            refused: Vec::new(),
            duplicates: Vec::new(),
            failed: Vec::new(),
            unmatched_removals: Vec::new(),
        })
    }

    /// Counts an input as finished, for the progress.
    pub(crate) fn finish_input(&self) {
        self.progress.inc(1);
    }

    /// Reports the outcome of a song folder.
    pub(crate) fn add_chartset(&mut self, line: ChartsetLine) -> Result<()> {
        self.write(&line)?;
        match line.outcome {
            ChartsetOutcome::Added => self.added += 1,
            ChartsetOutcome::Unchanged => self.unchanged += 1,
            ChartsetOutcome::Updated => self.updated += 1,
            ChartsetOutcome::Read => self.read += 1,
            ChartsetOutcome::Duplicate => {
                self.duplicates.push(line);
                return Ok(());
            }
            ChartsetOutcome::Failed => {
                self.failed.push(line);
                return Ok(());
            }
        }
        self.still_removed += u64::from(line.removed);
        self.charts += line.charts as u64;
        Ok(())
    }

    /// Whether chartsets were added or updated.
    pub(crate) const fn has_changes(&self) -> bool {
        self.added + self.updated > 0
    }

    /// The number of chartsets that PostgreSQL rejected.
    pub(crate) const fn failed(&self) -> usize {
        self.failed.len()
    }

    /// Reports files and charts that are not indexed.
    pub(crate) fn add_refused(&mut self, refused: Vec<RefusedFile>) -> Result<()> {
        for refused in &refused {
            self.write(&RefusedLine { outcome: "refused", refused })?;
        }
        self.refused.extend(refused);
        Ok(())
    }

    /// Reports removed charts that no file has any more, with the chartsets that had them.
    pub(crate) fn add_unmatched_removals(&mut self, removals: Vec<RemovedMember>) -> Result<()> {
        for RemovedMember { chart: chart_hash, chartset, path } in removals {
            let line = UnmatchedRemovalLine { outcome: "unmatchedRemoval", chart_hash, path, chartset };
            self.write(&line)?;
            self.unmatched_removals.push(line);
        }
        Ok(())
    }

    /// Ends the progress output and flushes the report.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.progress.finish_and_clear();
        self.file.as_mut().map_or(Ok(()), BufWriter::flush).context("cannot write the report")
    }

    /// Prints the summary: what was refused and why, then the counts.
    pub(crate) fn print_summary(&mut self, out: &mut impl Write) -> std::io::Result<()> {
        self.refused.sort_by(|a, b| (&a.file, &a.chart).cmp(&(&b.file, &b.chart)));
        for RefusedFile { file, chart, reason, .. } in &self.refused {
            match chart {
                Some(chart) => write_line(out, format_args!("refused: {file}, {chart}: {reason}"))?,
                None => write_line(out, format_args!("refused: {file}: {reason}"))?,
            }
        }
        self.print_unstored(out)?;
        self.counts(out)
    }

    fn counts(&self, out: &mut impl Write) -> std::io::Result<()> {
        let files = self.refused.iter().filter(|refused| refused.chart.is_none()).count();
        let charts = self.refused.len() - files;
        let refused_files = format!("{} refused", plural(files as u64, "file"));
        let refused_charts =
            if charts == 0 { String::new() } else { format!(", {} refused", plural(charts as u64, "chart")) };
        let done = if self.read > 0 {
            format!("{} decoded, none stored", plural(self.read, "chartset"))
        } else {
            let added = plural(self.added, "chartset");
            format!("{added} added, {} unchanged, {} updated", self.unchanged, self.updated)
        };
        writeln!(out, "{done} ({}); {refused_files}{refused_charts}", plural(self.charts, "chart"))?;
        for (count, noun, outcome) in [
            (self.still_removed, "chartset", "still removed"),
            (self.duplicates.len() as u64, "duplicate", "ignored"),
            (self.failed.len() as u64, "chartset", "failed"),
            (self.unmatched_removals.len() as u64, "removal", "without a file"),
        ] {
            if count > 0 {
                writeln!(out, "{} {outcome}", plural(count, noun))?;
            }
        }
        Ok(())
    }

    /// Prints the duplicate and failed chartsets, and the removed charts that no file has any more.
    fn print_unstored(&self, out: &mut impl Write) -> std::io::Result<()> {
        for ChartsetLine { path, chartset, chosen, .. } in &self.duplicates {
            let chosen = chosen.as_deref().unwrap_or_default();
            let ingested = format_args!("chartset {chartset} is ingested from {chosen}");
            write_line(out, format_args!("duplicate: {path}: {ingested}"))?;
        }
        for ChartsetLine { path, chartset, reason, .. } in &self.failed {
            let reason = reason.as_deref().unwrap_or_default();
            write_line(out, format_args!("failed: {path}: chartset {chartset}: {reason}"))?;
        }
        for UnmatchedRemovalLine { chart_hash, path, chartset, .. } in &self.unmatched_removals {
            let earlier = format_args!("it was in {path} (chartset {chartset})");
            write_line(out, format_args!("removed chart {chart_hash}: no file has it any more; {earlier}"))?;
        }
        Ok(())
    }

    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        write_json(file, line).context("cannot write the report")
    }
}

/// A count with its noun, which gets an `s` unless the count is 1.
pub(crate) fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
