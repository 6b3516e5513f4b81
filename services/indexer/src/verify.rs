//! `chart-indexer verify`: checks that derived data in PostgreSQL matches the data that it was derived from.

use std::io::Write;

use anyhow::{Result, bail};
use chart_index_chartfile::inspect_rox;
use chart_index_store::{ColumnMismatch, Store, StoredChart};

use crate::report::Progress;

/// Rows per query.
const PAGE: u32 = 500;

/// Checks every ROX file and every chartset, and prints the findings.
///
/// # Errors
/// There are findings, or the store failed.
pub(crate) async fn verify(store: &Store) -> Result<()> {
    let mut findings = Findings::default();
    let charts = verify_charts(store, &mut findings).await?;
    let chartsets = verify_chartsets(store, &mut findings).await?;
    writeln!(
        std::io::stdout(),
        "{charts} charts and {chartsets} chartsets verified, {} findings",
        findings.0
    )?;
    if findings.0 > 0 {
        bail!("the database is inconsistent");
    }
    Ok(())
}

#[derive(Default)]
struct Findings(u64);

impl Findings {
    fn add(&mut self, finding: std::fmt::Arguments<'_>) -> Result<()> {
        self.0 += 1;
        writeln!(std::io::stdout(), "{finding}")?;
        Ok(())
    }
}

async fn verify_charts(store: &Store, findings: &mut Findings) -> Result<u64> {
    let mut progress = Progress::new(store.counts().await?.charts);
    let (mut count, mut after) = (0, None);
    loop {
        let page = store.stored_charts_after(after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.hash);
        for chart in &page {
            verify_chart(chart, findings)?;
            progress.advance();
        }
        count += page.len() as u64;
    }
    progress.finish();
    Ok(count)
}

fn verify_chart(chart: &StoredChart, findings: &mut Findings) -> Result<()> {
    let StoredChart { hash, rox_bytes, rox, .. } = chart;
    if *rox_bytes != rox.len() as u64 {
        findings.add(format_args!(
            "chart {hash}: rox_bytes is {rox_bytes}, but its ROX file has {} bytes",
            rox.len()
        ))?;
    }
    match inspect_rox(rox) {
        Err(refusal) => findings.add(format_args!("chart {hash}: invalid ROX file: {refusal}")),
        Ok((found, _)) if found != *hash => {
            findings.add(format_args!("chart {hash}: its ROX file has the note hash {found}"))
        }
        Ok((_, numbers)) if numbers != chart.numbers => findings.add(format_args!(
            "chart {hash}: its numbers are {:?}, but its ROX file has {numbers:?}",
            chart.numbers
        )),
        Ok(_) => Ok(()),
    }
}

async fn verify_chartsets(store: &Store, findings: &mut Findings) -> Result<u64> {
    let mut after = None;
    loop {
        let (mismatches, next) = store.column_mismatches(after, PAGE).await?;
        for mismatch in mismatches {
            let ColumnMismatch { id, column, stored, expected } = mismatch;
            findings.add(format_args!("chartset {id}: {column} is {stored}, but should be {expected}"))?;
        }
        match next {
            Some(next) => after = Some(next),
            None => return Ok(store.counts().await?.chartsets),
        }
    }
}
