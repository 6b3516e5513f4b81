//! Computes the numbers of a chart (docs/formats/records.md, "Chart numbers").

use std::collections::BTreeMap;

use chart_index_domain::{ChartNumbers, round_to_thousandths};
use chart_index_rox::{CanonicalNotes, RoxChart, TimingPoint};

/// The numbers of `chart`, whose canonical notes are `notes`.
///
/// They depend only on what a ROX file stores (BPM as `f32`, for example), so that a stored ROX file gives
/// identical numbers.
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

/// The maximum number of notes that start in any window `[t, t + 1000 ms)`. Only windows that start at a note
/// need to be counted.
fn density_peak(notes: &CanonicalNotes) -> usize {
    let notes = notes.notes();
    let (mut peak, mut end) = (0, 0);
    for (start, note) in notes.iter().enumerate() {
        while notes.get(end).is_some_and(|later| later.start_ms - note.start_ms < 1000) {
            end += 1;
        }
        peak = peak.max(end - start);
    }
    peak
}

#[derive(Default)]
struct Bpm {
    min: f64,
    max: f64,
    main: f64,
}

/// Lowest, highest and main BPM, rounded. Infinite BPMs (beats of almost no length, used for visual effects)
/// are ignored; all three are 0 if there is no other.
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
            // Adding 0 turns -0 into 0.
            Some((time_us, round_to_thousandths(f64::from(bpm)) + 0.0))
        }
        _ => None,
    }
}

/// The BPM that applies for the longest total time between the start of the first note and the end of the last;
/// on a tie the higher one. The first BPM also applies before its point.
fn main_bpm(chart: &RoxChart, points: &[(i64, f64)]) -> Option<f64> {
    let playable = || chart.notes.iter().filter(|note| !note.is_mine() && !note.is_burst());
    let first_us = playable().map(|note| note.time_us).min()?;
    let last_us = playable().map(|note| note.time_us.saturating_add(note.duration_us())).max()?;
    let mut durations: BTreeMap<i64, (i64, f64)> = BTreeMap::new();
    for (index, &(time_us, bpm)) in points.iter().enumerate() {
        let from_us = if index == 0 { first_us } else { time_us.clamp(first_us, last_us) };
        let next_us = points.get(index + 1).map(|&(next_us, _)| next_us);
        // Skip points that start after the last note, or end before the first.
        if (index > 0 && time_us > last_us) || next_us.is_some_and(|next_us| next_us <= first_us) {
            continue;
        }
        let until_us = next_us.unwrap_or(last_us).clamp(first_us, last_us);
        let entry = durations.entry(thousandths(bpm)).or_insert((0, bpm));
        entry.0 = entry.0.saturating_add(until_us.saturating_sub(from_us));
    }
    // `max_by_key` returns the last of several equal elements, here the highest BPM.
    durations.into_values().max_by_key(|&(duration_us, _)| duration_us).map(|(_, bpm)| bpm)
}

#[expect(clippy::cast_possible_truncation, reason = "the value is only a key, and the cast saturates")]
fn thousandths(bpm: f64) -> i64 {
    (bpm * 1000.0).round() as i64
}

fn as_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn as_f64(count: usize) -> f64 {
    f64::from(as_u32(count))
}
