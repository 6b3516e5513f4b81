//! Reads and checks the chartsets of an export.

use std::io::{BufRead, BufReader, Read};

use anyhow::{Context, Result, ensure};
use chart_index_domain::{ChartsetRecord, ExportFile};
use chart_index_store::ImportedChartset;

use crate::export::ExportLine;

/// The longest line, above that of the largest chartset: 1 MiB of text, of which each character may be escaped
/// and takes three times its bytes then, and 512 charts with 200 tags each.
pub(crate) const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;
/// The largest window of the compression as a power of two (docs/formats/exports.md): 8 MiB.
const MAX_WINDOW_LOG: u32 = 23;
/// How far the clock of another instance may be ahead. A later time is not content: the present one is stored.
const CLOCK_TOLERANCE_MS: i64 = 5 * 60 * 1_000;

/// A chartset of another instance that can be stored.
#[derive(Debug)]
pub(crate) struct CheckedChartset {
    pub(crate) chartset: ImportedChartset,
    /// The sizes of the ROX files of its charts, in their order.
    pub(crate) rox_bytes: Vec<u64>,
}

impl CheckedChartset {
    /// Checks what another instance says of a chartset, and cleans its text as that of a chart file.
    ///
    /// # Errors
    /// No instance writes such a record.
    pub(crate) fn new(record: ChartsetRecord, checked_at_ms: i64, now_ms: i64) -> Result<Self> {
        let time = |field, time_ms| {
            ensure!(time_ms >= 0, "{field} is {time_ms}, before 1970");
            Ok(if time_ms > now_ms.saturating_add(CLOCK_TOLERANCE_MS) { now_ms } else { time_ms })
        };
        let updated_at_ms = time("updatedAtMs", record.updated_at_ms)?;
        let checked_at_ms = time("checkedAtMs", checked_at_ms)?;
        let rox_bytes = record.charts.iter().map(|chart| chart.rox_bytes).collect();
        let chartset = ImportedChartset { draft: record.into_draft()?, updated_at_ms, checked_at_ms };
        Ok(Self { chartset, rox_bytes })
    }
}

/// Reads the chartsets in the order of their ids, with the sizes of their lines, until `read` returns `false`.
/// No more than one line is in memory.
///
/// # Errors
/// The file is not one that an export with this number of chartsets has. The error names the line.
pub(super) fn read_chartsets(
    file: impl Read,
    chartsets: u64,
    now_ms: i64,
    mut read: impl FnMut(CheckedChartset, usize) -> bool,
) -> Result<()> {
    let name = ExportFile::Chartsets.name();
    let mut lines = decompress(file)?;
    let (mut previous, mut count, mut line) = (None, 0, Vec::new());
    while next_line(&mut lines, &mut line).with_context(|| format!("line {} of {name}", count + 1))? {
        ensure!(count < chartsets, "{name} has more chartsets than the {chartsets} in the manifest");
        let checked = parse_line(&line, now_ms).with_context(|| format!("line {} of {name}", count + 1))?;
        let id = checked.chartset.draft.id;
        ensure!(previous < Some(id), "{name} is not in the order of the ids at {id}");
        if !read(checked, line.len()) {
            return Ok(());
        }
        (previous, count) = (Some(id), count + 1);
    }
    ensure!(count == chartsets, "{name} has {count} chartsets, but {chartsets} in the manifest");
    Ok(())
}

/// Decompresses a file of an export.
fn decompress(file: impl Read) -> Result<impl BufRead> {
    let mut decoder = zstd::Decoder::new(file)?;
    // An export has no larger window, for which the decoder would take up to 128 MiB.
    decoder.window_log_max(MAX_WINDOW_LOG)?;
    Ok(BufReader::new(decoder))
}

/// Reads the next line, if there is one.
fn next_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool> {
    line.clear();
    let limit = MAX_LINE_BYTES as u64 + 1;
    let length = lines.take(limit).read_until(b'\n', line).context("cannot be read")?;
    ensure!(length <= MAX_LINE_BYTES, "is longer than {MAX_LINE_BYTES} bytes");
    Ok(length > 0)
}

fn parse_line(line: &[u8], now_ms: i64) -> Result<CheckedChartset> {
    let ExportLine { checked_at_ms, chartset } = serde_json::from_slice(line).context("is not a chartset")?;
    let id = chartset.id;
    CheckedChartset::new(chartset, checked_at_ms, now_ms)
        .with_context(|| format!("chartset {id} is not valid"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;

    fn line(checked_at_ms: i64, updated_at_ms: i64) -> String {
        format!(
            r#"{{"checkedAtMs":{checked_at_ms},"chartset":{{"id":"{}","updatedAtMs":{updated_at_ms},"charts":[{{
            "hash":"{}","noteHashVersion":1,"keys":4,"bpmMin":1.0,"bpmMax":1.0,"bpmMain":1.0,"lengthMs":1,"notes":1,
            "lns":0,"densityAvg":1.0,"densityPeak":1.0,"roxBytes":7,"title":"a","artist":"","creator":"",
            "difficulty":"","tags":[]}}]}}}}"#,
            "0".repeat(16),
            "0".repeat(64)
        )
    }

    fn error(line: &str) -> String {
        format!("{:#}", parse_line(line.as_bytes(), NOW_MS).unwrap_err())
    }

    #[test]
    fn times_of_the_future_are_those_of_now() {
        let ahead = NOW_MS + CLOCK_TOLERANCE_MS;
        for (given, [checked_at_ms, updated_at_ms]) in [
            (line(ahead, ahead), [ahead, ahead]),
            (line(ahead + 1, 0), [NOW_MS, 0]),
            (line(1 << 62, ahead + 1), [NOW_MS, NOW_MS]),
        ] {
            let CheckedChartset { chartset, rox_bytes } = parse_line(given.as_bytes(), NOW_MS).unwrap();
            assert_eq!([chartset.checked_at_ms, chartset.updated_at_ms], [checked_at_ms, updated_at_ms]);
            assert_eq!(rox_bytes, [7]);
        }
        assert!(error(&line(0, -1)).contains("updatedAtMs is -1, before 1970"));
    }

    #[test]
    fn lines_have_a_limit() {
        let text = format!("{}\n{}\n", "x".repeat(MAX_LINE_BYTES - 1), "y".repeat(MAX_LINE_BYTES));
        let (mut lines, mut line) = (text.as_bytes(), Vec::new());
        assert!(next_line(&mut lines, &mut line).unwrap());
        assert_eq!(line.len(), MAX_LINE_BYTES);
        let error = next_line(&mut lines, &mut line).unwrap_err();
        assert!(error.to_string().contains("longer than 4194304 bytes"), "{error}");
        assert!(line.capacity() <= 2 * MAX_LINE_BYTES, "{}", line.capacity());
    }
}
