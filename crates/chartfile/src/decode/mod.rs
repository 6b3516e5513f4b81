//! Decodes one chart file.

mod drafts;
mod osu;
mod qua;
mod work_limits;

use std::path::Path;

use chart_index_domain::{DistinctCharts, FileMd5};
use md5::{Digest, Md5};
use rox::formats::romanised_names_from_bytes;

pub use drafts::DecodedFile;

use self::drafts::{draft, single_chart};
use crate::game_chart::GameChart;
use crate::panic_guard::catch_panic;
use crate::simfile;
use crate::text_encoding::{self, Text};
use crate::{ChartFormat, IsStored, Refusal};

/// The maximum size of a chart file: 16 MiB. The largest real ones, with a storyboard or 100,000 notes, have a
/// few MiB, and the decoder needs up to fifty times the size of the file in memory.
pub const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Decodes a chart file and encodes the ROX file of every chart in it. Refuses a file without an indexable
/// chart.
///
/// Text that is not UTF-8 is converted from the encoding that its byte order mark or its bytes indicate; the
/// notes do not depend on the encoding. Never panics: a panic of the decoder is a refusal.
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
        return Err(Refusal::TooLarge { limit: MAX_FILE_BYTES });
    }
    let mut file = match format {
        ChartFormat::Osu | ChartFormat::Qua => decode_bytes(format, bytes, is_stored)?,
        ChartFormat::Sm | ChartFormat::Ssc => catch_panic(|| decode_simfile(format, bytes, is_stored))?,
    };
    if matches!(format, ChartFormat::Osu | ChartFormat::Qua) {
        let md5 = FileMd5::from_bytes(Md5::digest(bytes).into());
        for chart in &mut file.charts {
            chart.aliases.md5s.push(md5);
        }
    }
    Ok(file)
}

fn decode_bytes(format: ChartFormat, bytes: &[u8], is_stored: IsStored<'_>) -> Result<DecodedFile, Refusal> {
    match text_encoding::decode_text(bytes) {
        Text::Utf8(text) => decode_text(format, &text, is_stored),
        Text::Detected(text) => {
            let detected = decode_text(format, &text, is_stored);
            drop(text);
            // In some encodings a byte of a character equals the backslash of a simfile. Decoding with a
            // replacement character for each invalid byte determines the notes; the detected encoding only adds
            // the metadata.
            let lossy = String::from_utf8_lossy(bytes);
            match decode_text(format, &lossy, &|_| true) {
                Ok(reference) if !detected.as_ref().is_ok_and(|file| has_all_charts(file, &reference)) => {
                    decode_text(format, &lossy, is_stored)
                }
                _ => detected,
            }
        }
    }
}

fn has_all_charts(file: &DecodedFile, reference: &DecodedFile) -> bool {
    reference.charts.iter().all(|chart| file.charts.iter().any(|other| other.hash == chart.hash))
}

fn decode_text(format: ChartFormat, text: &str, is_stored: IsStored<'_>) -> Result<DecodedFile, Refusal> {
    catch_panic(|| {
        let text = text.trim_start_matches('\u{feff}');
        let names = romanised_names_from_bytes(Path::new(format.example_name()), text.as_bytes())
            .map_err(|error| Refusal::from_decoder(&error))?;
        match format {
            ChartFormat::Osu => Ok(single_chart(draft(game(osu::decode(text, &names)?, names), is_stored)?)),
            _ => Ok(single_chart(draft(game(qua::decode(text)?, names), is_stored)?)),
        }
    })
}

fn game(chart: rox::RoxChart, names: rox::formats::RomanisedNames) -> GameChart {
    GameChart { chart, title_romanised: names.title, artist_romanised: names.artist }
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
