//! The timing of a song or of a chart: changes on rows.
//!
//! The rules are those of `TimingData` (itgmania 5d4f9dcb, TimingData.cpp and TimingSegments.h).

use super::number::Number;
use crate::Refusal;

/// The rows of a beat (`ROWS_PER_BEAT` in NoteTypes.h).
pub(super) const ROWS_PER_BEAT: f32 = 48.0;

/// The last row (`MAX_NOTE_ROW` in NoteTypes.h). Changes beyond it apply to no note.
pub(super) const MAX_ROW: i32 = 1 << 30;

/// Values that differ by at most this are the same (`TimingSegment::EPSILON`).
const EPSILON: f64 = 1e-6;

/// The BPM of a timing without any (`TimingData::TidyUpData`).
const DEFAULT_BPM: f32 = 60.0;

/// The maximum number of BPMs before others that were read first, each of which is inserted.
const MAX_INSERTED: usize = 10_000;

/// The row of a beat (`BeatToNoteRow` in NoteTypes.h).
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates, beyond the last row")]
pub(super) fn row_of(beat: f32) -> i32 {
    let row = (beat * ROWS_PER_BEAT).round_ties_even() as i32;
    row.clamp(-MAX_ROW, MAX_ROW)
}

/// The beat of a row (`NoteRowToBeat` in NoteTypes.h).
#[expect(clippy::cast_precision_loss, reason = "the game computes in single precision")]
pub(super) fn beat_of(row: i32) -> f32 {
    row as f32 / ROWS_PER_BEAT
}

/// A BPM from a row on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bpm {
    pub(super) row: i32,
    pub(super) bpm: Number,
}

impl Bpm {
    /// Whether the game takes both for one BPM: it compares beats a second.
    fn is_same(self, other: Self) -> bool {
        let bps = |bpm: Self| bpm.bpm.single / 60.0;
        f64::from((bps(self) - bps(other)).abs()) <= EPSILON
    }
}

/// A change that takes effect on a row: the seconds of a stop or delay, or the rows of a warp or of fake notes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change<T> {
    pub(super) row: i32,
    pub(super) value: T,
}

/// A value of a change.
pub(super) trait Value: Copy {
    /// Whether the change does something (`IsNotable`).
    fn is_notable(self) -> bool;
    /// Whether the game takes both values for one.
    fn is_same(self, other: Self) -> bool;
}

impl Value for Number {
    fn is_notable(self) -> bool {
        self.single > 0.0
    }

    fn is_same(self, other: Self) -> bool {
        f64::from((self.single - other.single).abs()) <= EPSILON
    }
}

impl Value for i32 {
    fn is_notable(self) -> bool {
        self > 0
    }

    fn is_same(self, other: Self) -> bool {
        self == other
    }
}

/// The timing of a song or of a chart.
#[derive(Debug, Clone, Default)]
pub(super) struct Timing {
    pub(super) bpms: Vec<Bpm>,
    pub(super) stops: Vec<Change<Number>>,
    pub(super) delays: Vec<Change<Number>>,
    pub(super) warps: Vec<Change<i32>>,
    pub(super) fakes: Vec<Change<i32>>,
    /// Whether it has changes that concern the display only, such as scroll speeds.
    pub(super) has_display_changes: bool,
    inserted: usize,
}

impl Timing {
    /// Whether it has no change at all (`TimingData::empty`).
    pub(super) fn is_empty(&self) -> bool {
        let has_pause = !self.stops.is_empty() || !self.delays.is_empty();
        let has_range = || !is_settled_empty(&self.warps) || !is_settled_empty(&self.fakes);
        !self.has_display_changes && self.bpms.is_empty() && !has_pause && !has_range()
    }

    /// Adds a BPM (`TimingData::AddSegment`): one that changes nothing is left out, and one that makes the next
    /// redundant replaces it.
    ///
    /// # Errors
    /// Too many BPMs are before others that were read first.
    pub(super) fn add_bpm(&mut self, row: i32, bpm: Number) -> Result<(), Refusal> {
        let new = Bpm { row, bpm };
        let end = self.bpms.partition_point(|bpm| bpm.row <= row);
        let index = end.saturating_sub(1);
        let Some(current) = self.bpms.get(index).copied() else {
            self.bpms.push(new);
            return Ok(());
        };
        let is_replaced = current.row == row;
        let is_repeated = self.bpms[index - usize::from(is_replaced && index > 0)].is_same(new);
        let repeats = self.bpms.get(index + 1).is_some_and(|next| next.is_same(new));
        if repeats && is_repeated {
            self.bpms.remove(index + 1);
        } else if repeats {
            self.bpms[index + 1].row = row;
        } else if !is_repeated {
            return self.set_bpm(new, index, end);
        }
        if is_replaced && index > 0 {
            self.bpms.remove(index);
        }
        Ok(())
    }

    /// Replaces the BPM of the same row at `index`, or inserts a new one at `end`.
    fn set_bpm(&mut self, new: Bpm, index: usize, end: usize) -> Result<(), Refusal> {
        if self.bpms[index].row == new.row {
            self.bpms[index] = new;
        } else {
            self.inserted += usize::from(end < self.bpms.len());
            if self.inserted > MAX_INSERTED {
                return Err(Refusal::DecodingLimit { what: "BPMs out of order" });
            }
            self.bpms.insert(end, new);
        }
        Ok(())
    }

    /// The timing of a chart, which the game copies change by change (`TimingData::Copy`).
    ///
    /// # Errors
    /// See [`add_bpm`](Self::add_bpm).
    pub(super) fn copied(&self) -> Result<Self, Refusal> {
        let mut copy = Self { bpms: Vec::new(), ..self.clone() };
        for bpm in &self.bpms {
            copy.add_bpm(bpm.row, bpm.bpm)?;
        }
        settle(&mut copy.warps);
        settle(&mut copy.fakes);
        copy.warps.retain(|warp| warp.value > 0);
        copy.fakes.retain(|fake| fake.value > 0);
        Ok(copy)
    }

    /// Completes the timing (`TimingData::TidyUpData`): sorts its changes, and begins with a BPM.
    ///
    /// # Errors
    /// The BPMs are in an order in which the game misreads them, or let time run backwards.
    pub(super) fn complete(mut self) -> Result<Self, Refusal> {
        if self.bpms.is_empty() {
            self.bpms.push(Bpm { row: 0, bpm: DEFAULT_BPM.into() });
        }
        self.bpms[0].row = 0;
        if !self.bpms.is_sorted_by(|before, after| before.row < after.row) {
            return Err(Refusal::undecodable("BPMs out of order"));
        }
        if self.bpms.iter().any(|bpm| bpm.bpm.single < 0.0) {
            return Err(Refusal::undecodable("negative BPM without a warp"));
        }
        settle(&mut self.stops);
        settle(&mut self.delays);
        settle(&mut self.warps);
        settle(&mut self.fakes);
        Ok(self)
    }

    /// Whether notes on a row are judged (`TimingData::IsWarpAtRow` and `IsFakeAtRow`): not within the last
    /// warp before it, unless the row has a stop or delay, and not among fake notes.
    pub(super) fn is_judged(&self, row: i32) -> bool {
        let has_pause = || has_row(&self.stops, row) || has_row(&self.delays, row);
        (!is_within(&self.warps, row) || has_pause()) && !is_within(&self.fakes, row)
    }
}

/// Sorts changes by row. The last of a row counts; one that does nothing removes the one before it, and is
/// itself left out unless it is the very first (`TimingData::AddSegment`): as the last warp before a row it
/// decides that the row is in none.
fn settle<T: Value>(changes: &mut Vec<Change<T>>) {
    let first = changes.first().map(|first| first.row);
    let first = first.filter(|&row| changes[1..].iter().all(|change| change.row != row));
    changes.sort_by_key(|change| change.row);
    changes.dedup_by(|new, old| {
        let is_one_row = new.row == old.row;
        if is_one_row && !(old.value.is_notable() && old.value.is_same(new.value)) {
            old.value = new.value;
        }
        is_one_row
    });
    changes.retain(|change| change.value.is_notable() || Some(change.row) == first);
}

/// Whether nothing is left of changes of which some may remove others.
fn is_settled_empty(changes: &[Change<i32>]) -> bool {
    let mut changes = changes.to_vec();
    settle(&mut changes);
    changes.is_empty()
}

fn has_row<T>(changes: &[Change<T>], row: i32) -> bool {
    changes.binary_search_by_key(&row, |change| change.row).is_ok()
}

/// Whether the last change at or before a row reaches beyond it.
fn is_within(changes: &[Change<i32>], row: i32) -> bool {
    let end = changes.partition_point(|change| change.row <= row);
    let last = end.checked_sub(1).map(|index| changes[index]);
    last.is_some_and(|last| beat_of(row) < beat_of(last.row) + beat_of(last.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bpms(entries: &[(i32, f32)]) -> Vec<(i32, f32)> {
        let mut timing = Timing::default();
        for &(row, bpm) in entries {
            timing.add_bpm(row, bpm.into()).unwrap();
        }
        timing.bpms.iter().map(|bpm| (bpm.row, bpm.bpm.single)).collect()
    }

    #[test]
    fn bpms_are_added_as_in_the_game() {
        for (entries, expected) in [
            (&[(0, 120.0), (48, 140.0)][..], &[(0, 120.0), (48, 140.0)][..]),
            (&[(0, 120.0), (48, 120.000_05)], &[(0, 120.0)]),
            (&[(48, 140.0), (0, 120.0)], &[(0, 120.0), (48, 140.0)]),
            (&[(0, 120.0), (0, 140.0)], &[(0, 140.0)]),
            (&[(0, 120.0), (48, 140.0), (48, 120.0)], &[(0, 120.0)]),
            (&[(0, 120.0), (96, 140.0), (48, 140.0)], &[(0, 120.0), (48, 140.0)]),
            (&[(0, 120.0), (48, 130.0), (96, 120.0), (48, 120.0)], &[(0, 120.0)]),
            (&[(48, 100.0), (96, 120.0), (0, 120.0)], &[(48, 100.0), (0, 120.0)]),
        ] {
            assert_eq!(bpms(entries), expected, "{entries:?}");
        }
    }

    #[test]
    fn the_last_change_of_a_row_counts() {
        for (entries, expected) in [
            (&[(48, 0.5), (48, 0.25)][..], &[(48, 0.25)][..]),
            (&[(96, 0.5), (48, 0.25)], &[(48, 0.25), (96, 0.5)]),
            (&[(48, 0.5), (48, 0.0)], &[]),
            (&[(48, 0.5), (48, 0.500_000_5)], &[(48, 0.5)]),
            (&[(48, 0.0), (48, 0.5)], &[(48, 0.5)]),
            (&[(48, 0.0), (96, 0.5), (144, 0.0)], &[(48, 0.0), (96, 0.5)]),
            (&[(48, 0.0), (96, 0.5), (48, 0.0)], &[(96, 0.5)]),
        ] {
            let mut changes: Vec<Change<Number>> = entries
                .iter()
                .map(|&(row, value): &(i32, f32)| Change { row, value: value.into() })
                .collect();
            settle(&mut changes);
            let found: Vec<(i32, f32)> =
                changes.iter().map(|change| (change.row, change.value.single)).collect();
            assert_eq!(found, expected, "{entries:?}");
        }
    }
}
