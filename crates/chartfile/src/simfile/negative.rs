//! BPMs and stops of `.sm` files: negative ones and very high BPMs are the old way to write warps.
//!
//! The rules are those of `SMLoader::ProcessBPMsAndStops` (itgmania 5d4f9dcb, NotesLoaderSM.cpp), in its single
//! precision. An example at 120 BPM, two beats a second: the stop of -1 s at beat 3 jumps back to where time
//! was at beat 1, so beats 3 to 5 play in no time and the notes between them are skipped.
//!
//! ```text
//! beat     0    1    2    3    4    5    6
//! time, s  0   0.5   1   1.5   1   1.5   2      with the negative stop, after beat 3
//! time, s  0   0.5   1   1.5  1.5  1.5   2      with a warp of 2 beats at beat 3
//! ```

use std::cmp::Ordering;

use super::number::Number;
use super::timing::{Change, Timing, row_of};
use crate::Refusal;

/// A BPM above this is a warp (`FAST_BPM_WARP` in NotesLoaderSM.h).
const FAST_BPM: f32 = 9_999_999.0;

/// The end of a warp to the end of the chart.
const ENDLESS_BEAT: f32 = 99_999_999.0;

/// A beat, and the BPM or the seconds of a stop there, which are not 0.
pub(super) type Entry = (f32, Number);

/// Adds BPMs and stops to a timing. Returns by how many seconds stops before beat 0 move the notes against the
/// audio.
pub(super) fn add_bpms_and_stops(
    timing: &mut Timing,
    mut bpms: Vec<Entry>,
    mut stops: Vec<Entry>,
) -> Result<f64, Refusal> {
    sort(&mut bpms);
    sort(&mut stops);
    let (early, stops) = stops.split_at(stops.partition_point(|&(beat, _)| beat < 0.0));
    let (first, bpms) = bpms.split_at(bpms.partition_point(|&(beat, _)| beat <= 0.0));
    // The game crashes or not if the first BPM is after beat 0; here it holds from there.
    let first = first.last().or(bpms.first()).map_or(Number::from(60.0), |&(_, bpm)| bpm);
    let mut converter = Converter { timing, bpm: first, beat: 0.0, elapsed_s: 0.0, warp: None };
    converter.add_first()?;
    let (mut bpms, mut stops) = (bpms.iter().peekable(), stops.iter().peekable());
    loop {
        // On the same beat the BPM changes first.
        if let Some(bpm) = bpms.next_if(|bpm| stops.peek().is_none_or(|stop| bpm.0 <= stop.0)) {
            converter.change_bpm(*bpm)?;
        } else if let Some(stop) = stops.next() {
            converter.stop(*stop)?;
        } else {
            break;
        }
    }
    converter.finish()?;
    Ok(early.iter().map(|(_, seconds)| seconds.double).sum())
}

fn sort(entries: &mut [Entry]) {
    entries.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal));
}

/// A warp whose end is not known yet.
struct OpenWarp {
    beat: f32,
    bpm_before: f32,
}

/// Converts the changes in the order of their beats.
struct Converter<'a> {
    timing: &'a mut Timing,
    bpm: Number,
    /// The beat of the change before.
    beat: f32,
    /// The seconds since the start of the warp: negative until time is back there, where the warp ends.
    elapsed_s: f32,
    warp: Option<OpenWarp>,
}

impl Converter<'_> {
    fn is_warping_bpm(&self) -> bool {
        self.bpm.single < 0.0 || self.bpm.single > FAST_BPM
    }

    fn add_first(&mut self) -> Result<(), Refusal> {
        if self.is_warping_bpm() { Ok(()) } else { self.timing.add_bpm(0, self.bpm) }
    }

    /// Lets the time until a beat pass, in which a warp may end.
    fn pass(&mut self, beat: f32) -> Result<(), Refusal> {
        let bpm = self.bpm.single;
        if bpm <= FAST_BPM {
            self.elapsed_s += (beat - self.beat) * 60.0 / bpm;
            if self.warp.is_some() && bpm > 0.0 && self.elapsed_s > 0.0 {
                self.end_warp(beat - self.elapsed_s * bpm / 60.0)?;
            }
        }
        self.beat = beat;
        Ok(())
    }

    fn change_bpm(&mut self, (beat, bpm): Entry) -> Result<(), Refusal> {
        self.pass(beat)?;
        let bpm_before = std::mem::replace(&mut self.bpm, bpm).single;
        if self.warp.is_some() {
            return Ok(());
        }
        if self.is_warping_bpm() {
            self.warp = Some(OpenWarp { beat, bpm_before });
            self.elapsed_s = 0.0;
            return Ok(());
        }
        self.timing.add_bpm(row_of(beat), bpm)
    }

    fn stop(&mut self, (beat, seconds): Entry) -> Result<(), Refusal> {
        self.pass(beat)?;
        if self.warp.is_some() {
            self.elapsed_s += seconds.single;
            if seconds.single > 0.0 && self.elapsed_s > 0.0 {
                self.end_warp_by_stop(beat)?;
            }
        } else if seconds.single < 0.0 {
            self.warp = Some(OpenWarp { beat, bpm_before: self.bpm.single });
            self.elapsed_s = seconds.single;
        } else {
            self.timing.stops.push(Change { row: row_of(beat), value: seconds });
        }
        Ok(())
    }

    /// Ends a warp by a stop that lasts longer than what is left of it. It continues behind the stop if the BPM
    /// is one of a warp.
    fn end_warp_by_stop(&mut self, beat: f32) -> Result<(), Refusal> {
        let stop = Change { row: row_of(beat), value: self.elapsed_s.into() };
        self.timing.stops.push(stop);
        if self.is_warping_bpm() {
            self.add_warp(beat);
            self.elapsed_s = 0.0;
            if let Some(warp) = &mut self.warp {
                warp.beat = beat;
            }
            return Ok(());
        }
        self.end_warp(beat)
    }

    /// Ends the warp. A BPM that changed within it holds from its start; that of an endless warp never does,
    /// unless there is no other.
    fn end_warp(&mut self, end: f32) -> Result<(), Refusal> {
        self.add_warp(end);
        let holds = !self.is_warping_bpm() || self.timing.bpms.is_empty();
        match self.warp.take() {
            #[expect(clippy::float_cmp, reason = "as the game compares")]
            Some(warp) if holds && warp.bpm_before != self.bpm.single => {
                self.timing.add_bpm(row_of(warp.beat), self.bpm)
            }
            _ => Ok(()),
        }
    }

    fn add_warp(&mut self, end: f32) {
        if let Some(warp) = &self.warp {
            self.timing.warps.push(Change { row: row_of(warp.beat), value: row_of(end - warp.beat) });
        }
    }

    fn finish(mut self) -> Result<(), Refusal> {
        let end = if self.is_warping_bpm() {
            ENDLESS_BEAT
        } else {
            self.beat - self.elapsed_s * self.bpm.single / 60.0
        };
        self.end_warp(end)
    }
}
