//! The numbers of a chart (decisions, "Chart numbers").

use std::collections::BTreeMap;

use chart_index_domain::{ChartNumbers, round_to_thousandths};
use rox::{RoxChart, TimingPoint};

use crate::note_hash::CanonicalNotes;

/// The numbers of `chart`, whose canonical notes are `notes`.
///
/// Everything is computed from what a ROX file keeps, tempo as `f32` included, so that a stored ROX file gives
/// the identical numbers again.
pub(crate) fn chart_numbers(chart: &RoxChart, notes: &CanonicalNotes) -> ChartNumbers {
    let length_ms = notes.length_ms();
    let count = notes.notes().len();
    let lns = notes.notes().iter().filter(|note| note.end_ms.is_some()).count();
    let density_avg = if length_ms == 0 { 0.0 } else { as_f64(count) * 1000.0 / f64::from(length_ms) };
    let bpm = bpm_numbers(chart);
    ChartNumbers {
        keys: notes.keys(),
        bpm_min: bpm.min,
        bpm_max: bpm.max,
        bpm_main: bpm.main,
        length_ms,
        notes: as_u32(count),
        lns: as_u32(lns),
        density_avg: round_to_thousandths(density_avg),
        density_peak: as_f64(density_peak(notes)),
    }
}

/// The most notes that start in any `[t, t + 1000 ms)`. Such a window can always be moved to begin at a note.
fn density_peak(notes: &CanonicalNotes) -> usize {
    let notes = notes.notes();
    let (mut peak, mut end) = (0, 0);
    for (begin, note) in notes.iter().enumerate() {
        while notes.get(end).is_some_and(|later| later.start_ms - note.start_ms < 1000) {
            end += 1;
        }
        peak = peak.max(end - begin);
    }
    peak
}

#[derive(Default)]
struct Bpm {
    min: f64,
    max: f64,
    main: f64,
}

/// Lowest, highest and main BPM, each rounded. Points whose BPM is not finite (a beat of almost no length,
/// written for its visual effect) have no number to give and are passed over; 0 without any other.
fn bpm_numbers(chart: &RoxChart) -> Bpm {
    let points: Vec<(i64, f64)> = chart.timing_points.iter().filter_map(bpm_point).collect();
    let values = || points.iter().map(|&(_, bpm)| bpm);
    let Some(max) = values().reduce(f64::max) else {
        return Bpm::default();
    };
    Bpm { min: values().fold(max, f64::min), max, main: main_bpm(chart, &points).unwrap_or(max) }
}

fn bpm_point(point: &TimingPoint) -> Option<(i64, f64)> {
    match *point {
        TimingPoint::Bpm { time_us, bpm, .. } if bpm.is_finite() => {
            // Adding 0 turns a negative zero into the ordinary one.
            Some((time_us, round_to_thousandths(f64::from(bpm)) + 0.0))
        }
        _ => None,
    }
}

/// The BPM in force for the longest time from the start of the first note to the end of the last, the higher
/// one on a tie. Times of one BPM add up. The first point also covers the time before it.
fn main_bpm(chart: &RoxChart, points: &[(i64, f64)]) -> Option<f64> {
    let counted = || chart.notes.iter().filter(|note| !note.is_mine() && !note.is_burst());
    let first_us = counted().map(|note| note.time_us).min()?;
    let last_us = counted().map(|note| note.time_us.saturating_add(note.duration_us())).max()?;
    let mut in_force: BTreeMap<i64, (i64, f64)> = BTreeMap::new();
    for (index, &(time_us, bpm)) in points.iter().enumerate() {
        let from_us = if index == 0 { first_us } else { time_us.clamp(first_us, last_us) };
        let next_us = points.get(index + 1).map(|&(next_us, _)| next_us);
        // In force nowhere: it begins after the last note, or the next one has begun by the first note.
        if (index > 0 && time_us > last_us) || next_us.is_some_and(|next_us| next_us <= first_us) {
            continue;
        }
        let until_us = next_us.unwrap_or(last_us).clamp(first_us, last_us);
        let entry = in_force.entry(thousandths(bpm)).or_insert((0, bpm));
        entry.0 = entry.0.saturating_add(until_us.saturating_sub(from_us));
    }
    // Ascending by BPM, and the last of equals wins.
    in_force.into_values().max_by_key(|&(duration_us, _)| duration_us).map(|(_, bpm)| bpm)
}

#[expect(clippy::cast_possible_truncation, reason = "an order is all that is needed, and a cast saturates")]
fn thousandths(bpm: f64) -> i64 {
    (bpm * 1000.0).round() as i64
}

fn as_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn as_f64(count: usize) -> f64 {
    f64::from(as_u32(count))
}
