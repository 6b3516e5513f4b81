//! Draws bars in the colours of difficulties. Those of the density of a chart are the same on all pages: their
//! heights show where this chart gets hard, their colours how hard that is beside other charts.

use std::fmt::Write as _;

use chart_index_domain::{ChartNumbers, DensityCurve};

use crate::level;

/// The height of a drawing in a line of text, in steps. More is not visible, and a list has hundreds of them.
const LINE_STEPS: u8 = 16;

/// The height of a figure of its own.
const FIGURE_STEPS: u8 = 64;

/// A drawing, in a view box of the number of its bars to its height.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Curve {
    pub(crate) height: u8,
    /// The bars of each colour that occurs; none if the curve is not known.
    pub(crate) areas: Vec<Area>,
}

/// All bars of a colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Area {
    /// The index of the colour, as that of a [`Level`](level::Level).
    pub(crate) colour: usize,
    /// An SVG path.
    pub(crate) path: String,
}

impl Curve {
    /// A curve in a line of text.
    pub(crate) fn in_line(curve: &DensityCurve, numbers: &ChartNumbers) -> Self {
        Self::of_densities(&densities(curve, numbers), LINE_STEPS)
    }

    /// A curve as a figure of its own.
    pub(crate) fn figure(curve: &DensityCurve, numbers: &ChartNumbers) -> Self {
        Self::of_densities(&densities(curve, numbers), FIGURE_STEPS)
    }

    fn of_densities(densities: &[f64; DensityCurve::PARTS], height: u8) -> Self {
        Self::draw(&densities.map(|density| (level::colour_of_part(density), density)), height)
    }

    /// Draws bars of these colours and lengths, the longest with the whole height: each run of one colour as an
    /// area, with as few commands as possible.
    pub(crate) fn draw(bars: &[(usize, f64)], height: u8) -> Self {
        let longest = bars.iter().map(|(_, length)| *length).fold(0.0, f64::max);
        let bars: Vec<_> =
            bars.iter().map(|(colour, length)| (*colour, steps(length / longest, height))).collect();
        let mut areas: Vec<Area> = Vec::new();
        let mut start = 0;
        for run in bars.chunk_by(|(a, high), (b, other)| a == b && (*high > 0) == (*other > 0)) {
            if run[0].1 > 0 {
                let colour = run[0].0;
                let index = areas.iter().position(|area| area.colour == colour).unwrap_or_else(|| {
                    areas.push(Area { colour, path: String::new() });
                    areas.len() - 1
                });
                push_run(&mut areas[index].path, start, run, height);
            }
            start += run.len();
        }
        Self { height, areas }
    }
}

/// The density of each part of a chart, in notes per second, over at least a second around it: in a part that
/// is shorter, a single note would be a peak. None is above the peak of the chart.
pub(crate) fn densities(curve: &DensityCurve, numbers: &ChartNumbers) -> [f64; DensityCurve::PARTS] {
    let densities = curve.densities();
    // On each side of a part.
    let neighbours = (DensityCurve::PARTS * 500).checked_div(numbers.length_ms as usize).unwrap_or(0);
    std::array::from_fn(|part| {
        let end = (part + neighbours + 1).min(DensityCurve::PARTS);
        let around = &densities[part.saturating_sub(neighbours)..end];
        let (sum, count) =
            around.iter().fold((0.0, 0.0), |(sum, count), density| (sum + density, count + 1.0));
        numbers.density_peak.min(sum / count)
    })
}

/// Appends adjacent bars that begin at this one.
fn push_run(path: &mut String, start: usize, run: &[(usize, u8)], height: u8) {
    let _ = write!(path, "M{start} {height}");
    for bars in run.chunk_by(|(_, high), (_, other)| high == other) {
        let _ = write!(path, "V{}h{}", height - bars[0].1, bars.len());
    }
    let _ = write!(path, "V{height}");
}

/// A share of the height in whole steps; a part with notes is never without any.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the height")]
fn steps(share: f64, height: u8) -> u8 {
    if share > 0.0 { ((share * f64::from(height)).round() as u8).max(1) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(values: [u8; DensityCurve::PARTS]) -> Vec<(usize, String)> {
        let curve = Curve::of_densities(&DensityCurve::from_bytes(values).densities(), LINE_STEPS);
        curve.areas.into_iter().map(|area| (area.colour, area.path)).collect()
    }

    /// The stored value of a density in notes per second.
    fn value(density: u32) -> u8 {
        let starts = (0..48 * density).map(|note| note * 1_000 / density.max(1));
        DensityCurve::from_starts(starts, 48_000).as_bytes()[10]
    }

    /// A note every second, in parts of a quarter of a second.
    #[test]
    fn density_of_short_parts_is_that_around_them() {
        let curve = DensityCurve::from_starts((0..12).map(|second| 1_000 * second), 11_000);
        assert!(curve.densities().iter().any(|density| *density > 3.0));
        let numbers = ChartNumbers { length_ms: 11_000, density_peak: 1.0, ..ChartNumbers::default() };
        let found = densities(&curve, &numbers);
        assert!(found.iter().all(|density| (0.7..=1.0).contains(density)), "{found:?}");
    }

    #[test]
    fn curve_without_notes_has_no_bars() {
        assert_eq!(drawn([0; 48]), []);
    }

    #[test]
    fn highest_bar_has_the_whole_height() {
        for density in [1, 12, 60] {
            let areas = drawn([value(density); 48]);
            assert_eq!((areas.len(), areas[0].1.as_str()), (1, "M0 16V0h48V16"), "{density}");
        }
    }

    #[test]
    fn height_is_that_beside_the_peak() {
        let mut values = [value(2); 48];
        (values[0], values[47]) = (value(1), 1);
        assert_eq!(drawn(values), [(0, "M0 16V8h1V0h46V15h1V16".to_owned())]);
    }

    #[test]
    fn colour_is_that_of_the_density() {
        let mut values = [0; 48];
        (values[0], values[1], values[5], values[6]) = (value(40), value(10), value(10), value(40));
        let quarter = (level::colour_of_part(10.0), "M1 16V12h1V16M5 16V12h1V16".to_owned());
        assert_eq!(drawn(values), [(7, "M0 16V0h1V16M6 16V0h1V16".to_owned()), quarter]);
    }

    #[test]
    fn bars_of_all_areas_are_those_of_the_curve() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..1_000 {
            let most = random.u8(1..=255);
            let values = std::array::from_fn(|_| random.u8(0..=most));
            let curve = Curve::of_densities(&DensityCurve::from_bytes(values).densities(), FIGURE_STEPS);
            assert!(curve.areas.len() <= level::STOPS.len());
            let bars: usize = curve.areas.iter().map(|area| bars(&area.path)).sum();
            assert_eq!(bars, values.iter().filter(|value| **value > 0).count(), "{values:?}");
        }
    }

    /// The number of bars of a path.
    fn bars(path: &str) -> usize {
        let widths = path.split('h').skip(1);
        widths.map(|rest| rest.split('V').next().unwrap().parse::<usize>().unwrap()).sum()
    }
}
