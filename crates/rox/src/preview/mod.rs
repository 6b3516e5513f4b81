//! Computes the preview of a chart: its notes and its timing as JSON (docs/formats/preview.md).
//!
//! The web site draws charts in browsers, which have no zstd decoder for ROX files. A preview depends only on
//! what a ROX file stores: microseconds, 32-bit floats, and beats per measure.
//!
//! `crates/chartfile/golden/chart_preview_v1.json` has test vectors for other implementations.

mod timing;

use rox::RoxChart;
use serde::Serialize;

use self::timing::{BpmPoint, ScrollPoint, Timeline};
use crate::{CanonicalNotes, RoxError, read};

/// The version of the format, `version` in the JSON.
const VERSION: u8 = 1;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PreviewBody {
    version: u8,
    keys: u8,
    length_ms: u32,
    columns: Vec<Vec<i64>>,
    timing: Vec<BpmPoint>,
    scroll: Vec<ScrollPoint>,
}

/// The preview of the chart in a ROX file, as JSON.
///
/// # Errors
/// The file cannot be [read], or its notes have no note hash.
pub fn preview(file: &[u8]) -> Result<Vec<u8>, RoxError> {
    let chart = read(file)?;
    let notes = CanonicalNotes::from_chart(&chart)?;
    serde_json::to_vec(&body(&chart, &notes)).map_err(RoxError::Json)
}

fn body(chart: &RoxChart, notes: &CanonicalNotes) -> PreviewBody {
    let timeline = Timeline::new(chart, notes.length_ms());
    PreviewBody {
        version: VERSION,
        keys: notes.keys().get(),
        length_ms: notes.length_ms(),
        columns: note_columns(notes),
        timing: timeline.bpm_points(),
        scroll: timeline.scroll_points(),
    }
}

/// The notes of each column, with times in milliseconds: for each note the time from the start of the note
/// before it in the column, or from 0, to its own start; after that of a long note its negative duration.
#[must_use]
pub fn note_columns(notes: &CanonicalNotes) -> Vec<Vec<i64>> {
    let mut columns = vec![(0, Vec::new()); notes.keys().get().into()];
    for note in notes.notes() {
        // Canonical notes have no other columns.
        let Some((previous_ms, numbers)) = columns.get_mut(usize::from(note.column)) else { continue };
        let delta_ms = note.start_ms - std::mem::replace(previous_ms, note.start_ms);
        numbers.push(i64::from(delta_ms));
        numbers.extend(note.end_ms.map(|end_ms| i64::from(note.start_ms) - i64::from(end_ms)));
    }
    columns.into_iter().map(|(_, numbers)| numbers).collect()
}
