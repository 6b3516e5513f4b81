//! `chart-indexer replace-rox`: replaces the ROX file of a chart.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use chart_index_chartfile::decode;
use chart_index_chartfile::local_files::{chart_format, read_file};
use chart_index_domain::{ChartDraft, NoteHash};
use chart_index_store::Store;

use crate::clock::now_ms;
use crate::import::draft_of_rox;
use crate::stdout;

/// Replaces the ROX file of a chart with that of a file with the same notes.
///
/// # Errors
/// The file has no such chart, the chart is not stored, or the store failed.
pub(crate) async fn replace_rox(store: &Store, hash: NoteHash, file: &Path) -> Result<()> {
    let name = file.display();
    let draft =
        read_chart(hash, file).with_context(|| format!("{name} cannot replace the file of chart {hash}"))?;
    ensure!(store.replace_rox(&draft, Some(now_ms())).await?, "chart {hash} is not in the index");
    Ok(stdout::print(format_args!("chart {hash} has the ROX file of {name}"))?)
}

/// Reads the chart from a chart file or a ROX file.
fn read_chart(hash: NoteHash, file: &Path) -> Result<ChartDraft> {
    let bytes = read_file(file)?;
    let Some(format) = chart_format(file) else {
        // It is none of the formats of chart files: its content shows whether it is a ROX file.
        return draft_of_rox(hash, bytes);
    };
    let charts = decode(format, &bytes)?.charts;
    charts.into_iter().find(|chart| chart.hash == hash).context("it has no chart with these notes")
}
