//! The timing of a preview: BPM points and scroll speeds, as far as they matter for its notes.

use std::cmp::Reverse;

use chart_index_domain::round_to_thousandths;
use rox::{RoxChart, TimingPoint};
use serde::Serialize;

/// The maximum number of BPM points. Files that animate with them have tens of thousands, which only the game
/// can show.
const MAX_BPM_POINTS: usize = 2_000;

/// The maximum number of scroll speeds: a change every 45 ms of three minutes.
const MAX_SCROLL_POINTS: u32 = 4_000;

/// The beats of a measure if a BPM point does not say otherwise.
const USUAL_BEATS: u8 = 4;

/// A BPM point: time in milliseconds after the first note, BPM, and beats per measure if these are not 4.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum BpmPoint {
    Usual(i64, f64),
    WithBeats(i64, f64, u8),
}

/// A scroll speed: time in milliseconds after the first note, and the factor from then on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct ScrollPoint(i64, f64);

/// The timing points of a chart, relative to its first note.
pub(super) struct Timeline<'a> {
    points: &'a [TimingPoint],
    first_us: i64,
    length_ms: u32,
}

impl<'a> Timeline<'a> {
    /// The timeline of a chart of this length without mines and bursts.
    pub(super) fn new(chart: &'a RoxChart, length_ms: u32) -> Self {
        let playable = chart.notes.iter().filter(|note| !note.is_mine() && !note.is_burst());
        let first_us = playable.map(|note| note.time_us).min().unwrap_or(0);
        Self { points: &chart.timing_points, first_us, length_ms }
    }

    /// The BPM points. The first also applies before its time. Points without a measure (a BPM that is infinite
    /// or not above 0) are left out. If there are too many, those stay that apply for the longest time.
    pub(super) fn bpm_points(&self) -> Vec<BpmPoint> {
        let points = self.points.iter().filter_map(|point| match *point {
            TimingPoint::Bpm { time_us, bpm, signature } => {
                let bpm = round_to_thousandths(f64::from(bpm));
                (bpm > 0.0).then_some((self.relative_ms(time_us), (bpm, signature)))
            }
            TimingPoint::Sv { .. } => None,
        });
        let points = longest(self.effective(points), self.length_ms);
        let point = |(time_ms, (bpm, beats)): (i64, (f64, u8))| match beats {
            0 | USUAL_BEATS => BpmPoint::Usual(time_ms, bpm),
            beats => BpmPoint::WithBeats(time_ms, bpm, beats),
        };
        points.into_iter().map(point).collect()
    }

    /// The scroll speeds: none if the speed is constant from the first note on, otherwise each change. Before
    /// the first the factor is 1. If there are too many, each is the mean of an equal part of the chart, so
    /// that notes keep their distances at a larger scale.
    pub(super) fn scroll_points(&self) -> Vec<ScrollPoint> {
        let points = self.points.iter().filter_map(|point| match *point {
            TimingPoint::Sv { time_us, scroll_speed } if scroll_speed.is_finite() => {
                // Adding 0 turns -0 into 0.
                Some((self.relative_ms(time_us), round_to_thousandths(f64::from(scroll_speed)) + 0.0))
            }
            _ => None,
        });
        let mut changes = changes(self.effective(points));
        if changes.len() > MAX_SCROLL_POINTS as usize {
            changes = self::changes(means(&changes, self.length_ms));
        }
        match changes[..] {
            [(time_ms, _)] if time_ms <= 0 => Vec::new(),
            _ => changes.into_iter().map(|(time_ms, factor)| ScrollPoint(time_ms, factor)).collect(),
        }
    }

    /// The points in the order of their times, without those that never apply: after the end, replaced at the
    /// same time, or replaced before the first note.
    fn effective<T>(&self, points: impl Iterator<Item = (i64, T)>) -> Vec<(i64, T)> {
        let mut effective: Vec<(i64, T)> = Vec::new();
        for (time_ms, value) in points.take_while(|(time_ms, _)| *time_ms <= i64::from(self.length_ms)) {
            effective.pop_if(|(before_ms, _)| *before_ms == time_ms || time_ms <= 0);
            effective.push((time_ms, value));
        }
        effective
    }

    /// A time in milliseconds after the first note, rounded like those of notes.
    const fn relative_ms(&self, time_us: i64) -> i64 {
        time_us.saturating_sub(self.first_us).saturating_add(500).div_euclid(1000)
    }
}

/// Those points that apply for the longest time, the earlier one of equals, in the order of their times.
fn longest<T>(points: Vec<(i64, T)>, length_ms: u32) -> Vec<(i64, T)> {
    if points.len() <= MAX_BPM_POINTS {
        return points;
    }
    let times: Vec<i64> = points.iter().map(|(time_ms, _)| *time_ms).chain([i64::from(length_ms)]).collect();
    let mut durations: Vec<(Reverse<i64>, usize)> = times
        .array_windows()
        .enumerate()
        .map(|(index, [from_ms, until_ms])| (Reverse(until_ms - from_ms.max(&0)), index))
        .collect();
    durations.sort_unstable();
    let mut kept = vec![false; points.len()];
    for (_, index) in durations.into_iter().take(MAX_BPM_POINTS) {
        kept[index] = true;
    }
    points.into_iter().zip(kept).filter_map(|(point, is_kept)| is_kept.then_some(point)).collect()
}

/// The points that change the factor, which is 1 before the first.
fn changes(points: Vec<(i64, f64)>) -> Vec<(i64, f64)> {
    let mut factor = 1.0_f64;
    let is_change =
        |(_, next): &(i64, f64)| std::mem::replace(&mut factor, *next).to_bits() != next.to_bits();
    points.into_iter().filter(is_change).collect()
}

/// The mean factor in each of [`MAX_SCROLL_POINTS`] equal parts of the chart.
fn means(points: &[(i64, f64)], length_ms: u32) -> Vec<(i64, f64)> {
    let boundary = |part: u32| i64::from(length_ms) * i64::from(part) / i64::from(MAX_SCROLL_POINTS);
    let mut means = Vec::with_capacity(MAX_SCROLL_POINTS as usize);
    let (mut next, mut factor) = (0, 1.0);
    for part in 0..MAX_SCROLL_POINTS {
        let (from_ms, until_ms) = (boundary(part), boundary(part + 1));
        let (mut at_ms, mut distance) = (from_ms, 0.0);
        while let Some(&(time_ms, next_factor)) = points.get(next).filter(|(time_ms, _)| *time_ms < until_ms)
        {
            distance += factor * milliseconds(time_ms.max(at_ms) - at_ms);
            (at_ms, factor, next) = (time_ms.max(at_ms), next_factor, next + 1);
        }
        distance += factor * milliseconds(until_ms - at_ms);
        if until_ms > from_ms {
            means.push((from_ms, round_to_thousandths(distance / milliseconds(until_ms - from_ms)) + 0.0));
        }
    }
    means
}

/// A duration within a chart.
fn milliseconds(duration_ms: i64) -> f64 {
    f64::from(u32::try_from(duration_ms).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use rox::Note;

    use super::*;

    /// The timeline of a chart of 10 s that begins at 5 s, with these points at times after its first note.
    fn with_timeline<T>(points: &[TimingPoint], read: impl FnOnce(Timeline<'_>) -> T) -> T {
        let mut chart = RoxChart::new(4);
        chart.notes = vec![Note::mine(0, 0), Note::tap(5_000_000, 0), Note::tap(15_000_000, 0)];
        chart.timing_points = points.to_vec();
        read(Timeline::new(&chart, 10_000))
    }

    fn bpm(time_ms: i64, bpm: f32) -> TimingPoint {
        TimingPoint::bpm(5_000_000 + time_ms * 1000, bpm)
    }

    fn sv(time_ms: i64, factor: f32) -> TimingPoint {
        TimingPoint::sv(5_000_000 + time_ms * 1000, factor)
    }

    #[test]
    fn only_bpm_points_that_apply_are_left() {
        use BpmPoint::{Usual, WithBeats};
        let waltz = TimingPoint::Bpm { time_us: 7_000_499, bpm: 174.999_94, signature: 3 };
        let points = [
            bpm(-4000, 100.0),
            sv(-3000, 2.0),
            bpm(-300, 120.0),
            waltz,
            bpm(3000, f32::INFINITY),
            bpm(3000, -120.0),
            bpm(4000, 1.0),
            bpm(4000, 140.0),
            bpm(10_000, 150.0),
            bpm(10_001, 160.0),
        ];
        let expected =
            [Usual(-300, 120.0), WithBeats(2000, 175.0, 3), Usual(4000, 140.0), Usual(10_000, 150.0)];
        assert_eq!(with_timeline(&points, |timeline| timeline.bpm_points()), expected);
        assert_eq!(with_timeline(&[bpm(200, 90.0)], |timeline| timeline.bpm_points()), [Usual(200, 90.0)]);
    }

    #[test]
    fn the_longest_of_many_bpm_points_are_kept() {
        // Pairs of a short and a long section.
        let points: Vec<TimingPoint> =
            (0..2_500).flat_map(|pair| [bpm(pair * 4, 100.0), bpm(pair * 4 + 1, 200.0)]).collect();
        let kept = with_timeline(&points, |timeline| timeline.bpm_points());
        assert_eq!(kept.len(), MAX_BPM_POINTS);
        assert_eq!((kept[0], kept[1_999]), (BpmPoint::Usual(1, 200.0), BpmPoint::Usual(7_997, 200.0)));
    }

    #[test]
    fn constant_speed_has_no_scroll_points() {
        let scroll = |points: &[TimingPoint]| with_timeline(points, |timeline| timeline.scroll_points());
        for constant in [
            vec![],
            vec![sv(-100, 1.0), sv(2000, 1.0)],
            vec![sv(-100, 1.5), sv(500, 1.5)],
            vec![sv(-100, 1.5), sv(0, 0.7)],
            vec![sv(10_001, 0.5)],
            vec![sv(500, f32::NAN)],
        ] {
            assert_eq!(scroll(&constant), [], "{constant:?}");
        }
        let changing = [sv(-100, 0.75), sv(500, 1.0), sv(600, 1.0), sv(700, -0.000_1), sv(800, 0.0)];
        assert_eq!(
            scroll(&changing),
            [ScrollPoint(-100, 0.75), ScrollPoint(500, 1.0), ScrollPoint(700, 0.0)]
        );
        assert_eq!(scroll(&[sv(500, 2.0)]), [ScrollPoint(500, 2.0)], "1 before the first");
    }

    #[test]
    fn many_scroll_points_are_averaged() {
        // 1.5 on average in every 2 ms, and twice as fast in the second half.
        let factor = |time_ms: i64| {
            [1.0, 2.0][usize::from(time_ms % 2 == 1)] * [1.0, 2.0][usize::from(time_ms >= 5_000)]
        };
        let points: Vec<TimingPoint> = (0..10_000).map(|time_ms| sv(time_ms, factor(time_ms))).collect();
        let averaged = with_timeline(&points, |timeline| timeline.scroll_points());
        assert!(averaged.len() <= MAX_SCROLL_POINTS as usize);
        let position = |until_ms: i64| {
            let mut position = 0.0;
            for (index, &ScrollPoint(from_ms, factor)) in averaged.iter().enumerate() {
                let end_ms = averaged.get(index + 1).map_or(10_000, |next| next.0).min(until_ms);
                position += factor * milliseconds((end_ms - from_ms).max(0));
            }
            position
        };
        for (until_ms, expected) in [(2_500, 3_750.0), (5_000, 7_500.0), (10_000, 22_500.0)] {
            assert!((position(until_ms) - expected).abs() < 10.0, "{until_ms}: {}", position(until_ms));
        }
    }

    #[test]
    fn any_length_has_means() {
        for length_ms in [0, 1, 3_999, u32::MAX] {
            let means = means(&[(-5, 0.5), (0, 2.0)], length_ms);
            assert!(means.iter().all(|&(_, factor)| (factor - 2.0_f64).abs() < 1e-9), "{length_ms}");
        }
    }
}
