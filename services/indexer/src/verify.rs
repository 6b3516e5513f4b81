//! `chart-indexer verify`: checks that derived data in PostgreSQL matches the data that it was derived from.

use anyhow::{Result, bail};
use chart_index_chartfile::{RoxContent, inspect_rox};
use chart_index_domain::{Entity, NOTE_HASH_VERSION};
use chart_index_store::{ColumnMismatch, FeedMismatch, Store, StoredChart};
use indicatif::ProgressBar;

use crate::filter;
use crate::progress;
use crate::report::plural;
use crate::stdout;

/// Rows per query.
const PAGE: u32 = 500;

/// Checks every ROX file and chartset, the list of removals, the change feed and the hash filter, and
/// prints the findings.
///
/// # Errors
/// There are findings, or the store failed.
pub(crate) async fn verify(store: &Store) -> Result<()> {
    let mut findings = Findings { count: 0, incomplete: 0, progress: ProgressBar::hidden() };
    let charts = verify_charts(store, &mut findings).await?;
    verify_computed(&mut findings)?;
    let chartsets = verify_chartsets(store, &mut findings).await?;
    verify_removals(store, &mut findings).await?;
    verify_change_feed(store, &mut findings).await?;
    if let Some(finding) = filter::verify(store).await? {
        findings.add(format_args!("{finding}"))?;
    }
    let count = findings.count;
    stdout::print(format_args!("{charts} charts and {chartsets} chartsets verified, {count} findings"))?;
    if findings.count > 0 {
        bail!("the database is inconsistent");
    }
    Ok(())
}

struct Findings {
    count: u64,
    /// The charts without all values of this version, which are one finding together.
    incomplete: u64,
    /// That of the rows that are read.
    progress: ProgressBar,
}

impl Findings {
    fn add(&mut self, finding: std::fmt::Arguments<'_>) -> Result<()> {
        self.count += 1;
        Ok(self.progress.suspend(|| stdout::print(finding))?)
    }
}

async fn verify_charts(store: &Store, findings: &mut Findings) -> Result<u64> {
    findings.progress = progress::items(store.counts().await?.charts);
    let (mut count, mut after) = (0, None);
    loop {
        let page = store.stored_charts_after(after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.hash);
        for chart in &page {
            verify_chart(chart, findings)?;
            findings.progress.inc(1);
        }
        count += page.len() as u64;
    }
    findings.progress.finish_and_clear();
    Ok(count)
}

fn verify_chart(chart: &StoredChart, findings: &mut Findings) -> Result<()> {
    let StoredChart { hash, note_hash_version: version, values, rox, lost, .. } = chart;
    let rox_bytes = values.rox_bytes;
    if *version != NOTE_HASH_VERSION {
        findings.add(format_args!(
            "chart {hash}: its note hash has version {version}, but should have {NOTE_HASH_VERSION}"
        ))?;
    }
    if let Some(reason) = lost {
        return findings.add(format_args!("chart {hash}: its ROX file is lost: {reason}"));
    }
    if rox_bytes != rox.len() as u64 {
        findings.add(format_args!(
            "chart {hash}: rox_bytes is {rox_bytes}, but its ROX file has {} bytes",
            rox.len()
        ))?;
    }
    match inspect_rox(rox) {
        Err(refusal) => findings.add(format_args!("chart {hash}: invalid ROX file: {refusal}")),
        Ok(content) if content.hash != *hash => {
            findings.add(format_args!("chart {hash}: its ROX file has the note hash {}", content.hash))
        }
        Ok(content) => verify_content(chart, &content, findings),
    }
}

fn verify_content(chart: &StoredChart, content: &RoxContent, findings: &mut Findings) -> Result<()> {
    let StoredChart { hash, values, is_complete, .. } = chart;
    if !is_complete {
        findings.incomplete += 1;
        return Ok(());
    }
    if content.numbers != values.numbers {
        findings.add(format_args!(
            "chart {hash}: its numbers are {:?}, but its ROX file has {:?}",
            values.numbers, content.numbers
        ))?;
    }
    if content.variant != values.variant {
        findings.add(format_args!("chart {hash}: its variant differs from that of its ROX file"))?;
    }
    if Some(content.analysis) != values.analysis {
        findings.add(format_args!(
            "chart {hash}: its rating and patterns are {:?}, but its ROX file has {:?}",
            values.analysis, content.analysis
        ))?;
    }
    if Some(content.curve) != values.curve {
        findings.add(format_args!("chart {hash}: its density curve differs from that of its ROX file"))?;
    }
    Ok(())
}

/// Reports what is not computed once: after an upgrade it is missing from all charts.
fn verify_computed(findings: &mut Findings) -> Result<()> {
    if findings.incomplete > 0 {
        let charts = plural(findings.incomplete, "chart");
        findings.add(format_args!("{charts} without all computed values: run `chart-indexer backfill`"))?;
    }
    Ok(())
}

async fn verify_chartsets(store: &Store, findings: &mut Findings) -> Result<u64> {
    let chartsets = store.counts().await?.chartsets;
    findings.progress = progress::items(chartsets);
    let mut after = None;
    loop {
        let (mismatches, next) = store.column_mismatches(after, PAGE).await?;
        for mismatch in mismatches {
            let ColumnMismatch { id, column, stored, expected } = mismatch;
            findings.add(format_args!("chartset {id}: {column} is {stored}, but should be {expected}"))?;
        }
        findings.progress.inc(PAGE.into());
        after = next;
        if after.is_none() {
            findings.progress.finish_and_clear();
            return Ok(chartsets);
        }
    }
}

async fn verify_removals(store: &Store, findings: &mut Findings) -> Result<()> {
    for entity in store.removal_mismatches().await? {
        findings.add(format_args!("{entity}: its row and the list of removals differ"))?;
    }
    Ok(())
}

async fn verify_change_feed(store: &Store, findings: &mut Findings) -> Result<()> {
    for FeedMismatch { entity, is_shown } in store.feed_mismatches().await? {
        let shown = if matches!(entity, Entity::Chart(_)) { "known" } else { "shown" };
        if is_shown {
            findings.add(format_args!("{entity}: it is {shown}, but not in the change feed"))?;
        } else {
            findings.add(format_args!("{entity}: it is in the change feed, but not {shown}"))?;
        }
    }
    Ok(())
}
