//! The ROX file of a chart: written once from a decoded chart, and read again to verify it.

use chart_index_domain::{ChartNumbers, NoteHash};
use rox::codec::{Decoder, Encoder};
use rox::formats::RoxNativeCodec;
use rox::{Metadata, Note, NoteType, RoxChart, TimingPoint};

use crate::Refusal;
use crate::chart_numbers::chart_numbers;
use crate::decode::{IsStored, guarded};
use crate::note_hash::CanonicalNotes;

/// The most notes of a chart: ten times the longest one known.
pub(crate) const MAX_NOTES: usize = 500_000;

/// The most timing points of a chart. Charts that animate their scrolling have up to some ten thousand.
pub(crate) const MAX_TIMING_POINTS: usize = 500_000;

/// What follows from the notes and the timing of a chart.
pub(crate) struct Encoded {
    pub(crate) hash: NoteHash,
    pub(crate) numbers: ChartNumbers,
    pub(crate) rox: Option<Vec<u8>>,
    pub(crate) metadata: Metadata,
}

/// The note hash and the numbers of the chart in a ROX file.
///
/// For a file that this crate made they are those that the chart had when it was read.
pub fn inspect_rox(bytes: &[u8]) -> Result<(NoteHash, ChartNumbers), Refusal> {
    guarded(|| {
        let chart = RoxNativeCodec::decode(bytes).map_err(|error| Refusal::from_decoder(&error))?;
        let notes = CanonicalNotes::of(&chart)?;
        Ok((notes.hash(), chart_numbers(&chart, &notes)))
    })
}

/// Encodes `chart` without its mines and bursts, as it was decoded where the decoder's own check accepts it, else
/// mended. The result is read back before it is given out, so that the ROX file of every indexed chart gives the
/// chart's own hash. Both are spared where the ROX file of the hash `is_stored`.
pub(crate) fn encode(mut chart: RoxChart, is_stored: IsStored<'_>) -> Result<Encoded, Refusal> {
    if chart.notes.len() > MAX_NOTES {
        return Err(Refusal::TooMuchWork { what: "notes" });
    }
    if chart.timing_points.len() > MAX_TIMING_POINTS {
        return Err(Refusal::TooMuchWork { what: "timing points" });
    }
    chart.remove_unsupported_notes();
    let mended = chart.validate().is_err();
    if mended {
        mend(&mut chart);
    }
    let notes = CanonicalNotes::of(&chart)?;
    if mended {
        chart.validate().map_err(|error| Refusal::from_decoder(&error))?;
    }
    let (hash, numbers) = (notes.hash(), chart_numbers(&chart, &notes));
    let rox = if is_stored(&hash) { None } else { Some(encode_checked(&chart, hash, numbers)?) };
    Ok(Encoded { hash, numbers, rox, metadata: chart.metadata })
}

fn encode_checked(chart: &RoxChart, hash: NoteHash, numbers: ChartNumbers) -> Result<Vec<u8>, Refusal> {
    let rox = RoxNativeCodec::encode(chart).map_err(|error| Refusal::from_decoder(&error))?;
    if inspect_rox(&rox)? == (hash, numbers) { Ok(rox) } else { Err(Refusal::RoxDiffers) }
}

/// Makes the chart what the games play, where the decoder's own check refuses it: long notes without length as
/// taps, notes and timing points in order, and a tempo from the first note on.
fn mend(chart: &mut RoxChart) {
    for note in &mut chart.notes {
        if matches!(note.note_type, NoteType::Hold { duration_us } if duration_us <= 0) {
            note.note_type = NoteType::Tap;
        }
    }
    // The order of the hash. Were the file's order kept among notes of one time, it would decide whether a tap
    // on the head of a long note is refused.
    chart.notes.sort_by_key(|note| (note.time_us, note.column, note.is_hold(), note.duration_us()));
    chart.timing_points.sort_by_key(TimingPoint::time_us);
    let first_us = chart.notes.first().map(|note: &Note| note.time_us);
    let first_bpm = chart.timing_points.iter_mut().find(|point| point.is_bpm());
    if let (Some(first_us), Some(TimingPoint::Bpm { time_us, .. })) = (first_us, first_bpm)
        && *time_us > first_us
    {
        *time_us = first_us.saturating_sub(1);
        chart.timing_points.sort_by_key(TimingPoint::time_us);
    }
}
