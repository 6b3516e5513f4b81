//! When the rows of a chart are.
//!
//! The order of events is that of `TimingData::GetElapsedTimeInternal` and `FindEvent` (itgmania 5d4f9dcb,
//! TimingData.cpp). Times are computed in double precision from row 0, without the offset of the song
//! (docs/formats/note-hash.md, "Simfiles").

use chart_index_rox::{InvalidNotes, TimingPoint};

use super::number::Number;
use super::timing::{Bpm, Timing, beat_of, row_of};
use crate::Refusal;

/// The limit for times, negative ones included: more than a century, in seconds.
const MAX_SECONDS: f64 = 4e9;

/// What happens on a row, in this order. Notes on the row are between delays and stops.
#[derive(Debug, Clone, Copy)]
enum Event {
    WarpEnd,
    Bpm(Number),
    Delay(Number),
    Stop(Number),
    Warp { end: f32 },
}

/// A row with events.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    row: i32,
    /// When notes on the row are, in seconds.
    note_s: f64,
    /// When the time after the row begins, in seconds.
    after_s: f64,
    bpm: Number,
    is_warping: bool,
}

impl Anchor {
    /// When a later row is, in seconds.
    fn seconds_at(&self, row: i32) -> f64 {
        let beats = f64::from(row - self.row) / 48.0;
        if self.is_warping { self.after_s } else { self.after_s + beats * 60.0 / self.bpm.double }
    }
}

/// A timing with the times of its rows.
#[derive(Debug)]
pub(super) struct Timeline {
    timing: Timing,
    /// In the order of their rows, with at least one at or before row 0.
    anchors: Vec<Anchor>,
}

impl Timeline {
    /// Completes a timing, and computes when its changes are.
    ///
    /// # Errors
    /// See [`Timing::complete`].
    pub(super) fn new(timing: Timing) -> Result<Self, Refusal> {
        let timing = timing.complete()?;
        let first = Anchor { row: 0, note_s: 0.0, after_s: 0.0, bpm: timing.bpms[0].bpm, is_warping: false };
        let mut anchors: Vec<Anchor> = Vec::new();
        for (row, event) in Events::new(&timing) {
            if anchors.last().is_none_or(|last| last.row != row) {
                let last = anchors.last().copied().unwrap_or(first);
                let seconds = last.seconds_at(row);
                anchors.push(Anchor { row, note_s: seconds, after_s: seconds, ..last });
            }
            if let Some(anchor) = anchors.last_mut() {
                apply(anchor, event);
            }
        }
        Ok(Self { timing, anchors })
    }

    /// See [`Timing::is_judged`].
    pub(super) fn is_judged(&self, row: i32) -> bool {
        self.timing.is_judged(row)
    }

    /// When notes on a row are, in microseconds after row 0.
    ///
    /// # Errors
    /// The time is beyond a century.
    pub(super) fn note_us(&self, row: i32) -> Result<i64, Refusal> {
        let anchor = self.anchor(row);
        microseconds(if anchor.row == row { anchor.note_s } else { anchor.seconds_at(row) })
    }

    /// The BPMs in the order of their rows. Those beyond a century apply to no note, and are left out.
    pub(super) fn bpm_points(&self) -> impl Iterator<Item = TimingPoint> {
        let point = |bpm: &Bpm| {
            let anchor = self.anchor(bpm.row);
            let start_s = if bpm.row == 0 { 0.0 } else { anchor.note_s };
            Some(TimingPoint::bpm(microseconds(start_s).ok()?, bpm.bpm.single))
        };
        self.timing.bpms.iter().filter_map(point)
    }

    /// The last anchor at or before a row.
    fn anchor(&self, row: i32) -> &Anchor {
        let end = self.anchors.partition_point(|anchor| anchor.row <= row);
        &self.anchors[end.saturating_sub(1)]
    }
}

fn apply(anchor: &mut Anchor, event: Event) {
    match event {
        Event::WarpEnd => anchor.is_warping = false,
        Event::Bpm(bpm) => anchor.bpm = bpm,
        Event::Delay(seconds) => {
            anchor.note_s += seconds.double;
            anchor.after_s = anchor.note_s;
        }
        Event::Stop(seconds) => anchor.after_s += seconds.double,
        Event::Warp { .. } => anchor.is_warping = true,
    }
}

/// Rounds to whole microseconds, half away from zero.
///
/// # Errors
/// The time is beyond a century.
#[expect(clippy::cast_possible_truncation, reason = "the value is within the limits")]
pub(super) fn microseconds(seconds: f64) -> Result<i64, Refusal> {
    if seconds.abs() <= MAX_SECONDS {
        Ok((seconds * 1e6).round() as i64)
    } else {
        Err(InvalidNotes::TimeOutOfRange.into())
    }
}

/// The events of a timing in their order, with their rows.
struct Events<'a> {
    timing: &'a Timing,
    bpm: usize,
    delay: usize,
    stop: usize,
    warp: usize,
    /// The end of the warps so far, in beats. It stays when they have ended.
    warp_end: f32,
    is_warping: bool,
}

impl<'a> Events<'a> {
    const fn new(timing: &'a Timing) -> Self {
        Self { timing, bpm: 0, delay: 0, stop: 0, warp: 0, warp_end: 0.0, is_warping: false }
    }

    /// The next event of each kind; the first of those on the earliest row comes next.
    fn candidates(&self) -> [Option<(i32, Event)>; 5] {
        let Timing { bpms, delays, stops, warps, .. } = self.timing;
        let warp_end = |start: i32, rows: i32| beat_of(start) + beat_of(rows);
        [
            self.is_warping.then(|| (row_of(self.warp_end), Event::WarpEnd)),
            bpms.get(self.bpm).map(|bpm| (bpm.row, Event::Bpm(bpm.bpm))),
            delays.get(self.delay).map(|delay| (delay.row, Event::Delay(delay.value))),
            stops.get(self.stop).map(|stop| (stop.row, Event::Stop(stop.value))),
            warps.get(self.warp).map(|warp| (warp.row, Event::Warp { end: warp_end(warp.row, warp.value) })),
        ]
    }
}

impl Iterator for Events<'_> {
    type Item = (i32, Event);

    fn next(&mut self) -> Option<Self::Item> {
        let (row, event) = self.candidates().into_iter().flatten().min_by_key(|(row, _)| *row)?;
        match event {
            Event::WarpEnd => self.is_warping = false,
            Event::Bpm(_) => self.bpm += 1,
            Event::Delay(_) => self.delay += 1,
            Event::Stop(_) => self.stop += 1,
            Event::Warp { end } => {
                self.warp += 1;
                self.is_warping = true;
                self.warp_end = self.warp_end.max(end);
            }
        }
        Some((row, event))
    }
}
