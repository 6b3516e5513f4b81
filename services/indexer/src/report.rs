//! What an ingest tells: a progress bar or plain lines while it runs, a summary at its end, and a report of JSON
//! lines for programs.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use chart_index_domain::ChartsetId;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::song_folder::Refused;

/// How often plain lines tell the progress where there is no terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// What became of a song folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Outcome {
    /// The index did not know it.
    Added,
    /// The index has it as it is.
    Unchanged,
    /// The index had it otherwise.
    Updated,
    /// It was read and, in a dry run, not stored.
    Read,
    /// Another folder or archive stands for the same chartset and was chosen.
    Duplicate,
    /// PostgreSQL rejected it.
    Failed,
}

/// Counts and tells the outcomes of an ingest.
pub(crate) struct Report {
    file: Option<BufWriter<File>>,
    progress: Progress,
    added: u64,
    unchanged: u64,
    updated: u64,
    read: u64,
    kept_removed: u64,
    charts: u64,
    refused: Vec<Refused>,
    duplicates: Vec<ChartsetLine>,
    failed: Vec<ChartsetLine>,
}

/// What is reported of a chartset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChartsetLine {
    /// What became of it.
    pub(crate) outcome: Outcome,
    /// Where it lies below the library root.
    pub(crate) path: String,
    /// Its id.
    pub(crate) chartset: ChartsetId,
    /// How many charts were read.
    pub(crate) charts: usize,
    /// Whether it is removed from the index, and stays so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) removed: bool,
    /// For a duplicate, the folder or archive that was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chosen: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl ChartsetLine {
    /// A line about a chartset that is not removed.
    pub(crate) const fn new(outcome: Outcome, path: String, chartset: ChartsetId, charts: usize) -> Self {
        Self { outcome, path, chartset, charts, removed: false, chosen: None, reason: None }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RefusedLine<'a> {
    outcome: &'static str,
    #[serde(flatten)]
    refused: &'a Refused,
}

impl Report {
    /// A report over so many places, with its JSON lines going to `file`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn new(places: u64, file: Option<&Path>) -> Result<Self> {
        let file = file
            .map(|path| {
                File::create(path).with_context(|| format!("cannot write the report {}", path.display()))
            })
            .transpose()?
            .map(BufWriter::new);
        let progress = Progress::new(places);
        Ok(Self {
            file,
            progress,
            added: 0,
            unchanged: 0,
            updated: 0,
            read: 0,
            kept_removed: 0,
            charts: 0,
            refused: Vec::new(),
            duplicates: Vec::new(),
            failed: Vec::new(),
        })
    }

    /// A place was read; its song folders were told before.
    pub(crate) fn place_done(&mut self) {
        self.progress.advance();
    }

    /// What became of a song folder.
    pub(crate) fn chartset(&mut self, line: ChartsetLine) -> Result<()> {
        self.write(&line)?;
        match line.outcome {
            Outcome::Added => self.added += 1,
            Outcome::Unchanged => self.unchanged += 1,
            Outcome::Updated => self.updated += 1,
            Outcome::Read => self.read += 1,
            Outcome::Duplicate => {
                self.duplicates.push(line);
                return Ok(());
            }
            Outcome::Failed => {
                self.failed.push(line);
                return Ok(());
            }
        }
        self.kept_removed += u64::from(line.removed);
        self.charts += line.charts as u64;
        Ok(())
    }

    /// How many chartsets PostgreSQL rejected.
    pub(crate) const fn failed(&self) -> usize {
        self.failed.len()
    }

    /// Files or charts that are not indexed.
    pub(crate) fn refused(&mut self, refused: Vec<Refused>) -> Result<()> {
        for refused in &refused {
            self.write(&RefusedLine { outcome: "refused", refused })?;
        }
        self.refused.extend(refused);
        Ok(())
    }

    /// Ends the progress and writes what is left of the report.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.progress.finish();
        self.file.as_mut().map_or(Ok(()), BufWriter::flush).context("cannot write the report")
    }

    /// The summary: what was refused and why, then the counts.
    pub(crate) fn summary(&mut self, out: &mut impl Write) -> std::io::Result<()> {
        self.refused.sort_by(|a, b| (&a.file, &a.chart).cmp(&(&b.file, &b.chart)));
        for Refused { file, chart, reason } in &self.refused {
            match chart {
                Some(chart) => writeln!(out, "left out: {file}, {chart}: {reason}")?,
                None => writeln!(out, "refused: {file}: {reason}")?,
            }
        }
        self.unstored(out)?;
        let files = self.refused.iter().filter(|refused| refused.chart.is_none()).count();
        let parts = self.refused.len() - files;
        let refused = format!("{} refused", plural(files as u64, "file"));
        let left_out =
            if parts == 0 { String::new() } else { format!(", {} left out", plural(parts as u64, "chart")) };
        let done = if self.read > 0 {
            format!("{} read, none stored", plural(self.read, "chartset"))
        } else {
            let added = plural(self.added, "chartset");
            format!("{added} added, {} unchanged, {} updated", self.unchanged, self.updated)
        };
        writeln!(out, "{done} ({}); {refused}{left_out}", plural(self.charts, "chart"))?;
        if self.kept_removed > 0 {
            writeln!(out, "{} stay removed", plural(self.kept_removed, "chartset"))?;
        }
        if !self.duplicates.is_empty() {
            writeln!(out, "{} ignored", plural(self.duplicates.len() as u64, "duplicate"))?;
        }
        if !self.failed.is_empty() {
            writeln!(out, "{} failed", plural(self.failed.len() as u64, "chartset"))?;
        }
        Ok(())
    }

    /// The chartsets that were read and not stored.
    fn unstored(&self, out: &mut impl Write) -> std::io::Result<()> {
        for ChartsetLine { path, chartset, chosen, .. } in &self.duplicates {
            let chosen = chosen.as_deref().unwrap_or_default();
            writeln!(out, "duplicate: {path}: chartset {chartset} is read from {chosen}")?;
        }
        for ChartsetLine { path, chartset, reason, .. } in &self.failed {
            writeln!(out, "failed: {path}: chartset {chartset}: {}", reason.as_deref().unwrap_or_default())?;
        }
        Ok(())
    }

    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let written = serde_json::to_writer(&mut *file, line).map_err(std::io::Error::from);
        written.and_then(|()| file.write_all(b"\n")).context("cannot write the report")
    }
}

/// An error with its causes.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// A count and what is counted.
pub(crate) fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A bar on a terminal, a line now and then anywhere else.
pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines { done: u64, total: u64, told: Instant },
    Silent,
}

impl Progress {
    pub(crate) fn new(total: u64) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::Lines { done: 0, total, told: Instant::now() };
        }
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {per_sec}, {eta} left");
        Self::Bar(ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
    }

    pub(crate) fn advance(&mut self) {
        self.advance_by(1);
    }

    pub(crate) fn advance_by(&mut self, count: u64) {
        match self {
            Self::Silent => (),
            Self::Bar(bar) => bar.inc(count),
            Self::Lines { done, total, told } => {
                *done += count;
                if told.elapsed() >= PLAIN_INTERVAL {
                    *told = Instant::now();
                    let _ = writeln!(std::io::stderr(), "{done} of {total}");
                }
            }
        }
    }

    pub(crate) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
