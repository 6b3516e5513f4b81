//! The changes of timing that tags list, `beat=value,beat=value`.
//!
//! The rules are those of `SMLoader` and `SSCLoader` (itgmania 5d4f9dcb, NotesLoaderSM.cpp and
//! NotesLoaderSSC.cpp, functions `Parse…` and `Process…`): an entry without exactly one value is ignored, and
//! so is one whose value does nothing.

use super::negative::Entry;
use super::number::Number;
use super::timing::{Change, Timing, row_of};
use crate::Refusal;

/// The maximum number of changes of a timing. Real ones have a few thousand.
const MAX_CHANGES: usize = 500_000;

/// The version of the format with timing of charts (`VERSION_SPLIT_TIMING`).
pub(super) const VERSION_SPLIT_TIMING: f32 = 0.7;

/// The BPMs or stops of an `.sm` file (`ParseBPMs`, `ParseStops`).
pub(super) fn sm_entries(text: &[u8]) -> Result<Vec<Entry>, Refusal> {
    let mut entries = Vec::new();
    for (beat, value) in pairs(text) {
        let entry = (beat_or_row(beat)?, Number::read(value)?);
        if entry.1.single != 0.0 {
            push(&mut entries, entry)?;
        }
    }
    Ok(entries)
}

/// Adds the delays of a tag (`ProcessDelays`).
pub(super) fn add_delays(timing: &mut Timing, text: &[u8]) -> Result<(), Refusal> {
    for (beat, value) in pairs(text) {
        let (beat, value) = (beat_or_row(beat)?, Number::read(value)?);
        if value.single > 0.0 {
            push(&mut timing.delays, Change { row: row_of(beat), value })?;
        }
    }
    Ok(())
}

/// Adds what a tag of an `.ssc` file lists. Other tags change nothing.
pub(super) fn add_ssc_tag(
    timing: &mut Timing,
    name: &[u8],
    text: &[u8],
    version: f32,
) -> Result<(), Refusal> {
    match name {
        b"BPMS" => add_ssc_bpms(timing, text),
        b"STOPS" => add_ssc_stops(timing, text),
        b"DELAYS" => add_delays(timing, text),
        b"WARPS" => add_warps(timing, text, version),
        b"FAKES" => add_fakes(timing, text),
        _ => {
            timing.has_display_changes |= has_display_change(name, text)?;
            Ok(())
        }
    }
}

fn add_ssc_bpms(timing: &mut Timing, text: &[u8]) -> Result<(), Refusal> {
    for (beat, bpm) in pairs(text) {
        let (beat, bpm) = (Number::read(beat)?.single, Number::read(bpm)?);
        if beat >= 0.0 && bpm.single > 0.0 {
            check_count(timing.bpms.len())?;
            timing.add_bpm(row_of(beat), bpm)?;
        }
    }
    Ok(())
}

fn add_ssc_stops(timing: &mut Timing, text: &[u8]) -> Result<(), Refusal> {
    for (beat, value) in pairs(text) {
        let (beat, value) = (Number::read(beat)?.single, Number::read(value)?);
        if beat >= 0.0 && value.single > 0.0 {
            push(&mut timing.stops, Change { row: row_of(beat), value })?;
        }
    }
    Ok(())
}

/// Adds warps. In old versions the value is the end of the warp, where that is after its beat.
fn add_warps(timing: &mut Timing, text: &[u8], version: f32) -> Result<(), Refusal> {
    for (beat, value) in pairs(text) {
        let (beat, value) = (Number::read(beat)?.single, Number::read(value)?.single);
        let is_end = version < VERSION_SPLIT_TIMING && value > beat;
        let beats = if is_end { value - beat } else { value };
        if beats > 0.0 {
            push(&mut timing.warps, Change { row: row_of(beat), value: row_of(beats) })?;
        }
    }
    Ok(())
}

fn add_fakes(timing: &mut Timing, text: &[u8]) -> Result<(), Refusal> {
    for (beat, beats) in pairs(text) {
        let (beat, beats) = (beat_or_row(beat)?, Number::read(beats)?.single);
        if beats > 0.0 {
            push(&mut timing.fakes, Change { row: row_of(beat), value: row_of(beats) })?;
        }
    }
    Ok(())
}

/// Whether a tag has a change that concerns the display only. With one of them a chart has timing of its own.
fn has_display_change(name: &[u8], text: &[u8]) -> Result<bool, Refusal> {
    for entry in entries(text) {
        let parts: Vec<&[u8]> = parts(entry).collect();
        let number = |index: usize| Ok::<f32, Refusal>(Number::read(parts[index])?.single);
        let is_change = match (name, parts.len()) {
            (b"TIMESIGNATURES", 3..) => {
                beat_or_row(parts[0])? >= 0.0 && number(1)? >= 1.0 && number(2)? >= 1.0
            }
            (b"SPEEDS", 3..) => beat_or_row(parts[0])? >= 0.0 && number(2)? >= 0.0,
            (b"SCROLLS", 2..) | (b"LABELS", 2) => number(0)? >= 0.0,
            (b"COMBOS", 2..) | (b"TICKCOUNTS", 2) => true,
            _ => false,
        };
        if is_change {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A beat, or with an `r` around it a row, which the game divides by -1 (`RowToBeat`).
fn beat_or_row(text: &[u8]) -> Result<f32, Refusal> {
    let trimmed = trim_byte(trim_byte(text, b'r'), b'R');
    let beat = Number::read(trimmed)?.single;
    Ok(if trimmed.len() < text.len() { -beat } else { beat })
}

fn trim_byte(mut text: &[u8], byte: u8) -> &[u8] {
    while let Some(rest) = text.strip_prefix(&[byte]) {
        text = rest;
    }
    while let Some(rest) = text.strip_suffix(&[byte]) {
        text = rest;
    }
    text
}

fn entries(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b',').filter(|entry| !entry.is_empty())
}

/// The parts of an entry between equals signs, of which several count as one.
fn parts(entry: &[u8]) -> impl Iterator<Item = &[u8]> {
    entry.split(|&byte| byte == b'=').filter(|part| !part.is_empty())
}

/// The entries with exactly two parts.
fn pairs(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    entries(text).filter_map(|entry| {
        let mut parts = parts(entry);
        let pair = (parts.next()?, parts.next()?);
        parts.next().is_none().then_some(pair)
    })
}

fn push<T>(changes: &mut Vec<T>, change: T) -> Result<(), Refusal> {
    check_count(changes.len())?;
    changes.push(change);
    Ok(())
}

fn check_count(count: usize) -> Result<(), Refusal> {
    if count < MAX_CHANGES { Ok(()) } else { Err(Refusal::DecodingLimit { what: "timing changes" }) }
}
