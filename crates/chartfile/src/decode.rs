//! Decodes one chart file.

use chart_index_domain::{ChartDraft, DistinctCharts, FileMd5};
use md5::{Digest, Md5};

use crate::game_chart::GameChart;
use crate::panic_guard::catch_panic;
use crate::text_encoding::without_byte_order_mark;
use crate::{ChartFormat, IsStored, Refusal, RefusedChart, osu, qua, rox_file, simfile};

/// The maximum size of a chart file: 16 MiB. The largest real ones, with a storyboard or 100,000 notes, have a
/// few MiB.
pub const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The charts of one file, indexable or not.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodedFile {
    /// The indexable charts, at least one, in the order of the file. Each note hash once: if a file contains
    /// the same notes twice, the first chart is used.
    pub charts: Vec<ChartDraft>,
    /// The charts that cannot be indexed.
    pub refused: Vec<RefusedChart>,
}

/// Decodes a chart file and encodes the ROX file of every chart in it. Refuses a file without an indexable
/// chart. Never panics: a panic is a refusal.
pub fn decode(format: ChartFormat, bytes: &[u8]) -> Result<DecodedFile, Refusal> {
    decode_skipping_stored_rox(format, bytes, &|_| false)
}

/// Decodes a chart file like [`decode`], but encodes only the ROX files that are not stored yet: encoding and
/// verifying them is half of the work.
pub fn decode_skipping_stored_rox(
    format: ChartFormat,
    bytes: &[u8],
    is_stored: IsStored<'_>,
) -> Result<DecodedFile, Refusal> {
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Refusal::FileTooLarge { limit: MAX_FILE_BYTES });
    }
    let text = || without_byte_order_mark(bytes);
    catch_panic(|| match format {
        ChartFormat::Osu => decode_chart(osu::read(&text())?, bytes, is_stored),
        ChartFormat::Qua => decode_chart(qua::read(&text())?, bytes, is_stored),
        ChartFormat::Sm | ChartFormat::Ssc => decode_simfile(format, bytes, is_stored),
    })
}

/// The chart of a file with one, which the first game knows by the MD5 digest of the file.
fn decode_chart(chart: GameChart, bytes: &[u8], is_stored: IsStored<'_>) -> Result<DecodedFile, Refusal> {
    let mut chart = draft(chart, is_stored)?;
    chart.aliases.md5s.push(FileMd5::from_bytes(Md5::digest(bytes).into()));
    Ok(DecodedFile { charts: vec![chart], refused: Vec::new() })
}

/// The charts of a simfile, of which some may be refused.
fn decode_simfile(
    format: ChartFormat,
    bytes: &[u8],
    is_stored: IsStored<'_>,
) -> Result<DecodedFile, Refusal> {
    let mut charts = DistinctCharts::default();
    let refused = simfile::read(format, bytes, |chart| {
        charts.add(draft(chart, is_stored)?);
        Ok(())
    })?;
    let charts = charts.into_charts();
    if charts.is_empty() { Err(Refusal::NoChart { refused }) } else { Ok(DecodedFile { charts, refused }) }
}

fn draft(chart: GameChart, is_stored: IsStored<'_>) -> Result<ChartDraft, Refusal> {
    let metadata = chart.metadata();
    rox_file::encode(chart.chart, metadata, is_stored)
}
