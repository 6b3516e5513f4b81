//! Repairs of a decoded chart of any format that fails the decoder's validation.

use rox::{NoteType, RoxChart, TimingPoint};

/// Turns long notes without length into taps, sorts notes and timing points, and moves the first BPM before the
/// first note.
pub(crate) fn repair_chart(chart: &mut RoxChart) {
    for note in &mut chart.notes {
        if matches!(note.note_type, NoteType::Hold { duration_us } if duration_us <= 0) {
            note.note_type = NoteType::Tap;
        }
    }
    // The order of the note hash. With a sort by time alone, the order of the file would decide whether a tap
    // on the head of a long note is refused.
    chart.notes.sort_by_key(|note| (note.time_us, note.column, note.is_hold(), note.duration_us()));
    chart.timing_points.sort_by_key(TimingPoint::time_us);
    let first_note_us = chart.notes.first().map(|note| note.time_us);
    let first_bpm = chart.timing_points.iter_mut().find(|point| point.is_bpm());
    if let (Some(first_note_us), Some(TimingPoint::Bpm { time_us, .. })) = (first_note_us, first_bpm)
        && *time_us > first_note_us
    {
        *time_us = first_note_us.saturating_sub(1);
        chart.timing_points.sort_by_key(TimingPoint::time_us);
    }
}
