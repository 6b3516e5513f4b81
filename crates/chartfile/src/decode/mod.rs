//! From the bytes of one chart file to its charts.

mod osu;
mod qua;
mod simfile;
mod work_limits;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use chart_index_domain::{ChartDraft, NoteHash, PublicSource, SourceKind, SourceRef};
use rox::RoxChart;
use rox::formats::{RomanisedNames, romanised_names_from_bytes};

use crate::metadata::chart_metadata;
use crate::text_encoding::{self, Text};
use crate::{ChartFormat, Refusal, rox_file};

/// The largest chart file that is read: 16 MiB. The largest real ones, which carry a storyboard or a hundred
/// thousand notes, have a few; what a decoder builds from a file is up to some fifty times the file.
pub const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The charts of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodedFile {
    /// The charts that can be indexed, at least one, in the order of the file. Each note hash once: where a file
    /// holds the same notes twice, the first chart counts.
    pub charts: Vec<ChartDraft>,
    /// The charts that cannot.
    pub skipped: Vec<SkippedChart>,
}

/// A chart of a file that is not indexed, while others are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedChart {
    /// Which: its place in the file (`chart 6`), or its step type and difficulty (`dance-double Challenge`).
    pub chart: String,
    /// Why.
    pub reason: Refusal,
}

/// Tells whether the ROX file of a chart is stored already, so that it need not be made again.
pub type IsStored<'a> = &'a (dyn Fn(&NoteHash) -> bool + 'a);

/// Reads a chart file and makes the ROX file of every chart in it. Refuses it where nothing in it can be indexed.
///
/// Text that is not UTF-8 is read in the encoding that its byte order mark or its bytes indicate; the notes do not
/// depend on it. Never panics: where the decoder does, the file is refused.
pub fn decode(format: ChartFormat, bytes: &[u8]) -> Result<DecodedFile, Refusal> {
    decode_skipping_stored_rox(format, bytes, &|_| false)
}

/// Reads a chart file as [`decode`] does, without making the ROX files that are stored already: encoding one and
/// reading it back is half of the work.
pub fn decode_skipping_stored_rox(
    format: ChartFormat,
    bytes: &[u8],
    is_stored: IsStored<'_>,
) -> Result<DecodedFile, Refusal> {
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Refusal::TooLarge { limit: MAX_FILE_BYTES });
    }
    match text_encoding::decode_text(bytes) {
        Text::Utf8(text) => read(format, &text, is_stored),
        Text::Detected(text) => {
            let detected = read(format, &text, is_stored);
            drop(text);
            // Bytes of other encodings can be the backslash of a simfile. What is read with a replacement
            // character for each wrong byte fixes the notes; the encoding only adds the right text.
            let replaced = String::from_utf8_lossy(bytes);
            match read(format, &replaced, &|_| true) {
                Ok(fixed) if !detected.as_ref().is_ok_and(|file| has_all_charts(file, &fixed)) => {
                    read(format, &replaced, is_stored)
                }
                _ => detected,
            }
        }
    }
}

fn has_all_charts(file: &DecodedFile, fixed: &DecodedFile) -> bool {
    fixed.charts.iter().all(|chart| file.charts.iter().any(|other| other.hash == chart.hash))
}

fn read(format: ChartFormat, text: &str, is_stored: IsStored<'_>) -> Result<DecodedFile, Refusal> {
    guarded(|| {
        let text = text.trim_start_matches('\u{feff}');
        let names = romanised_names_from_bytes(Path::new(format.example_name()), text.as_bytes())
            .map_err(|error| Refusal::from_decoder(&error))?;
        match format {
            ChartFormat::Osu => Ok(only(draft(osu::read(text, &names)?, &names, is_stored)?)),
            ChartFormat::Qua => Ok(only(draft(qua::read(text)?, &names, is_stored)?)),
            ChartFormat::Sm | ChartFormat::Ssc => simfile::read(format, text, &names, is_stored),
        }
    })
}

/// Runs the decoder's code and refuses the input where it panics. The panic's message still goes to the panic
/// hook: the hook belongs to the whole process, and what it prints is how a person finds the file.
pub(crate) fn guarded<T>(decode: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or(Err(Refusal::DecoderPanicked))
}

fn only(chart: ChartDraft) -> DecodedFile {
    DecodedFile { charts: vec![chart], skipped: Vec::new() }
}

/// Everything the index keeps of a decoded chart.
fn draft(chart: RoxChart, names: &RomanisedNames, is_stored: IsStored<'_>) -> Result<ChartDraft, Refusal> {
    let encoded = rox_file::encode(chart, is_stored)?;
    let metadata = &encoded.metadata;
    let declared_source = metadata
        .chartset_id
        .and_then(SourceRef::from_number)
        .map(|reference| PublicSource { kind: SourceKind::AlphaSet, reference });
    Ok(ChartDraft {
        hash: encoded.hash,
        numbers: encoded.numbers,
        metadata: chart_metadata(metadata, names),
        declared_source,
        // Games write 0 and negative numbers, which the decoder turns into very large ones, for "not published".
        alpha_beatmap_id: metadata.chart_id.filter(|id| (1..=i32::MAX as u64).contains(id)),
        rox: encoded.rox,
    })
}

/// The charts that can be indexed, each hash once, and those that cannot.
fn collect(charts: impl Iterator<Item = Result<ChartDraft, SkippedChart>>) -> Result<DecodedFile, Refusal> {
    let mut seen = HashSet::new();
    let mut file = DecodedFile { charts: Vec::new(), skipped: Vec::new() };
    for chart in charts {
        match chart {
            Ok(chart) if seen.insert(chart.hash) => file.charts.push(chart),
            Ok(_) => {}
            Err(skipped) => file.skipped.push(skipped),
        }
    }
    if file.charts.is_empty() { Err(Refusal::NoChart { skipped: file.skipped }) } else { Ok(file) }
}
