//! The timing points of an `.osu` file: beat lengths, slider velocities and scroll speeds.
//!
//! ppy/osu e9451fe7, `LegacyBeatmapDecoder.handleTimingPoint`, `ControlPointInfo`, `LegacyControlPointInfo`.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use chart_index_rox::TimingPoint;

use super::microseconds;
use super::numbers::{double, double_or_nan, int};
use crate::dotnet::trim;

/// The beat length where there is no timing point, `TimingControlPoint.DEFAULT_BEAT_LENGTH`.
const DEFAULT_BEAT: Beat = Beat { length_ms: 1000.0, beats: 4 };

/// `TimingControlPoint`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Beat {
    length_ms: f64,
    beats: i32,
}

/// A line with its defaults.
struct Line {
    time_ms: f64,
    beat_length_ms: f64,
    beats: i32,
    is_timing_change: bool,
}

/// All timing points.
#[derive(Default)]
pub(super) struct TimingPoints {
    beats: BTreeMap<Time, Beat>,
    /// The speeds of `DifficultyControlPoint` and `EffectControlPoint`, within the limits of the latter, which
    /// are wider.
    speeds: BTreeMap<Time, f64>,
    pending: Pending,
}

/// The points of the lines with one time that follow one another.
#[derive(Default)]
struct Pending {
    time_ms: f64,
    beat: Option<Beat>,
    speed: Option<f64>,
}

impl TimingPoints {
    /// Reads a line, which is skipped if it is not a timing point. Of several with one time, the last one that
    /// is no timing change takes precedence, then the first timing change (`addControlPoint`,
    /// `flushPendingPoints`).
    pub(super) fn read(&mut self, line: &[u8], offset_ms: f64) {
        let Some(line) = Line::read(line, offset_ms) else { return };
        if line.time_ms.total_cmp(&self.pending.time_ms).is_ne() {
            self.flush();
            self.pending.time_ms = line.time_ms;
        }
        let speed = if line.beat_length_ms < 0.0 { 100.0 / -line.beat_length_ms } else { 1.0 };
        let speed = speed.clamp(0.01, 10.0);
        if line.is_timing_change {
            let length_ms = line.beat_length_ms.clamp(6.0, 60_000.0);
            self.pending.beat.get_or_insert(Beat { length_ms, beats: line.beats });
            self.pending.speed.get_or_insert(speed);
        } else {
            self.pending.speed = Some(speed);
        }
    }

    /// Adds the points of the last line: needed before the points are used. A speed without an effect among
    /// those that were added before it is left out, which matters for lines out of order
    /// (`CheckAlreadyExisting`).
    pub(super) fn flush(&mut self) {
        let Pending { time_ms, beat, speed } = std::mem::take(&mut self.pending);
        self.beats.extend(beat.map(|beat| (Time(time_ms), beat)));
        let speed = speed.filter(|speed| speed.total_cmp(&self.speed(time_ms)).is_ne());
        self.speeds.extend(speed.map(|speed| (Time(time_ms), speed)));
    }

    /// The beat length in milliseconds at a time. The first one also holds before its time.
    pub(super) fn beat_length_ms(&self, time_ms: f64) -> f64 {
        let first = self.beats.values().next().unwrap_or(&DEFAULT_BEAT);
        point_at(&self.beats, time_ms).unwrap_or(first).length_ms
    }

    /// The slider velocity at a time.
    pub(super) fn velocity(&self, time_ms: f64) -> f64 {
        self.speed(time_ms).max(0.1)
    }

    fn speed(&self, time_ms: f64) -> f64 {
        *point_at(&self.speeds, time_ms).unwrap_or(&1.0)
    }

    /// BPM points and scroll speeds by time.
    #[expect(clippy::cast_possible_truncation, reason = "the chart has single precision")]
    pub(super) fn points(&self) -> Vec<TimingPoint> {
        let bpm = |(time, beat): (&Time, &Beat)| TimingPoint::Bpm {
            time_us: microseconds(time.0),
            bpm: (60_000.0 / beat.length_ms) as f32,
            signature: u8::try_from(beat.beats).unwrap_or(u8::MAX),
        };
        let speed = |(time, speed): (&Time, &f64)| TimingPoint::sv(microseconds(time.0), *speed as f32);
        let default = self.beats.is_empty().then(|| bpm((&Time(0.0), &DEFAULT_BEAT)));
        let beats = default.into_iter().chain(self.beats.iter().map(bpm));
        let mut points: Vec<TimingPoint> = beats.chain(self.speeds.iter().map(speed)).collect();
        points.sort_by_key(TimingPoint::time_us);
        points
    }
}

fn point_at<T>(points: &BTreeMap<Time, T>, time_ms: f64) -> Option<&T> {
    points.range(..=Time(time_ms)).next_back().map(|(_, point)| point)
}

impl Line {
    /// `None` where the game throws an exception: it skips the line.
    fn read(line: &[u8], offset_ms: f64) -> Option<Self> {
        let mut fields = line.split(|&byte| byte == b',');
        let time_ms = double(trim(fields.next()?))? + offset_ms;
        let beat_length_ms = double_or_nan(trim(fields.next()?))?;
        let beats = match fields.next() {
            None | Some([b'0', ..]) => 4,
            Some(field) => int(field).filter(|&beats| beats > 0)?,
        };
        for _sample_set_bank_and_volume in 0..3 {
            fields.next().map_or(Some(0), int)?;
        }
        let is_timing_change = fields.next().map_or(Some(true), |field| Some(*field.first()? == b'1'))?;
        let _effects = fields.next().map_or(Some(0), int)?;
        // A timing change needs a beat length.
        let is_read = !is_timing_change || !beat_length_ms.is_nan();
        is_read.then_some(Self { time_ms, beat_length_ms, beats, is_timing_change })
    }
}

/// A time in milliseconds: a number, and not -0, which the offset makes 0.
#[derive(Clone, Copy)]
struct Time(f64);

impl PartialEq for Time {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Time {}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> TimingPoints {
        let mut points = TimingPoints::default();
        for line in lines {
            points.read(line.as_bytes(), 0.0);
        }
        points.flush();
        points
    }

    /// `LegacyBeatmapDecoder.handleTimingPoint`, with the limits of `TimingControlPoint` and
    /// `DifficultyControlPoint`.
    #[test]
    fn lines_are_read_or_skipped_as_in_the_game() {
        for (line, expected) in [
            ("0,500", Some((500.0, 1.0))),
            (" 0 ,\t5E2 ,4,1,0,100,1,0", Some((500.0, 1.0))),
            ("0,0", Some((6.0, 1.0))),
            ("0,70000", Some((60_000.0, 1.0))),
            ("0,-50", Some((6.0, 2.0))),
            ("0,500,0x", Some((500.0, 1.0))),
            ("0,500,7,1,0,100,1x,8", Some((500.0, 1.0))),
            ("0,-50,4,1,0,100,0,0", Some((1000.0, 2.0))),
            ("0,-50,4,1,0,100, 1,0", Some((1000.0, 2.0))),
            ("0,-5,4,1,0,100,0,0", Some((1000.0, 10.0))),
            ("0,-5000,4,1,0,100,0,0", Some((1000.0, 0.1))),
            ("0,NaN,4,1,0,100,0,0", Some((1000.0, 1.0))),
            ("0,NaN", None),
            ("0", None),
            ("0,", None),
            ("x,500", None),
            ("0,Infinity", None),
            ("0,500,", None),
            ("0,500,-3", None),
            ("0,500,4,x", None),
            ("0,500,4,1,0,", None),
            ("0,500,4,1,0,100,", None),
            ("0,500,4,1,0,100,1,1.5", None),
        ] {
            let points = read(&[line]);
            let is_read = Line::read(line.as_bytes(), 0.0).is_some();
            let found = is_read.then(|| (points.beat_length_ms(0.0), points.velocity(0.0)));
            assert_eq!(found, expected, "{line}");
        }
    }

    /// `addControlPoint`, `flushPendingPoints`, `CheckAlreadyExisting`.
    #[test]
    fn order_of_lines_decides_between_points() {
        for (lines, time_ms, beat_ms, velocity) in [
            // The first of several timing changes, the last of several other points.
            (&["5,500", "5,400"][..], 5.0, 500.0, 1.0),
            (&["5,500", "5,-50,4,1,0,100,0,0", "5,-25,4,1,0,100,0,0"], 5.0, 500.0, 4.0),
            (&["5,-50,4,1,0,100,0,0", "5,500"], 5.0, 500.0, 2.0),
            // Lines of one time that do not follow one another: the last.
            (&["5,500", "6,450", "5,400"], 5.0, 400.0, 1.0),
            (&["5,-50,4,1,0,100,0,0", "6,450", "5,-25,4,1,0,100,0,0"], 5.0, 450.0, 4.0),
            // A timing change resets the velocity.
            (&["5,-50,4,1,0,100,0,0", "9,500"], 9.0, 500.0, 1.0),
            // A point without an effect when it was read: not there for the point that follows out of order.
            (&["9,-100,4,1,0,100,0,0", "5,-50,4,1,0,100,0,0"], 9.0, 1000.0, 2.0),
            (&["5,-50,4,1,0,100,0,0", "9,-100,4,1,0,100,0,0"], 9.0, 1000.0, 1.0),
            // Before the first point.
            (&["5,500", "9,400", "5,-50,4,1,0,100,0,0"], 4.9, 500.0, 1.0),
        ] {
            let points = read(lines);
            let found = (points.beat_length_ms(time_ms), points.velocity(time_ms));
            assert_eq!(found, (beat_ms, velocity), "{lines:?}");
        }
    }

    #[test]
    fn points_of_the_chart_are_those_of_the_game() {
        for (lines, expected) in [
            (&["5,500,3"][..], vec![TimingPoint::Bpm { time_us: 5000, bpm: 120.0, signature: 3 }]),
            (&["5,500,0"], vec![TimingPoint::bpm(5000, 120.0)]),
            (&["0.0005,0,300"], vec![TimingPoint::Bpm { time_us: 1, bpm: 10_000.0, signature: 255 }]),
            (&[], vec![TimingPoint::bpm(0, 60.0)]),
            (
                &["0,500", "5,-50,4,1,0,100,0,0", "9,-5,4,1,0,100,0,0"],
                vec![TimingPoint::bpm(0, 120.0), TimingPoint::sv(5000, 2.0), TimingPoint::sv(9000, 10.0)],
            ),
            (&["0,-50000,4,1,0,100,0,0"], vec![TimingPoint::bpm(0, 60.0), TimingPoint::sv(0, 0.01)]),
        ] {
            assert_eq!(read(lines).points(), expected, "{lines:?}");
        }
    }
}
