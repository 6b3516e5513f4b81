//! Where a chart gets hard: the densest parts of its curve.

use chart_index_domain::{ChartNumbers, DensityCurve};

use crate::curve::densities;
use crate::{format, level};

/// The maximum number of parts that are named.
const MAX: usize = 3;
/// How many parts of the curve lie between them at least: a peak is one of them.
const DISTANCE: usize = 5;

/// The length from which charts have moments: in a shorter one, they would be a few seconds apart.
const MIN_LENGTH_MS: u32 = 30_000;

/// A part of a chart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// When it begins, in seconds, as the preview reads it.
    pub(crate) seconds: String,
    /// Such as `1:40`.
    pub(crate) time: String,
    pub(crate) density: String,
    pub(crate) colour: usize,
}

/// The densest parts of a chart, in the order of time; none of a short one.
pub(crate) fn densest(curve: &DensityCurve, numbers: &ChartNumbers) -> Vec<Moment> {
    if numbers.length_ms < MIN_LENGTH_MS {
        return Vec::new();
    }
    let densities = densities(curve, numbers);
    let mut parts: Vec<usize> = (0..densities.len()).filter(|part| densities[*part] > 0.0).collect();
    parts.sort_by(|a, b| densities[*b].total_cmp(&densities[*a]));
    let mut chosen: Vec<usize> = Vec::with_capacity(MAX);
    for part in parts {
        if chosen.len() < MAX && chosen.iter().all(|other| other.abs_diff(part) >= DISTANCE) {
            chosen.push(part);
        }
    }
    chosen.sort_unstable();
    chosen.into_iter().map(|part| Moment::new(part, densities[part], numbers.length_ms)).collect()
}

impl Moment {
    fn new(part: usize, density: f64, length_ms: u32) -> Self {
        let parts = DensityCurve::PARTS as u64;
        let start = u64::from(length_ms) * part as u64 / parts;
        let start_ms = u32::try_from(start).unwrap_or(length_ms);
        Self {
            seconds: format!("{}.{}", start_ms / 1_000, start_ms % 1_000 / 100),
            time: format::length(start_ms),
            density: format!("{}/s", format::density(density)),
            colour: level::colour_of_part(density),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(length_ms: u32, density_peak: f64) -> ChartNumbers {
        ChartNumbers { length_ms, density_peak, ..ChartNumbers::default() }
    }

    #[test]
    fn peaks_are_in_the_order_of_time() {
        let mut values = [40; 48];
        (values[30], values[31], values[10], values[47]) = (200, 199, 150, 100);
        let moments = densest(&DensityCurve::from_bytes(values), &numbers(96_000, 60.0));
        let shown: Vec<_> =
            moments.iter().map(|moment| (moment.time.as_str(), moment.seconds.as_str())).collect();
        assert_eq!(shown, [("0:20", "20.0"), ("1:00", "60.0"), ("1:34", "94.0")]);
        assert_eq!((moments[1].density.as_str(), moments[1].colour), ("36.9/s", 7));
    }

    #[test]
    fn chart_without_notes_has_none() {
        assert_eq!(densest(&DensityCurve::from_bytes([0; 48]), &numbers(60_000, 0.0)), []);
    }

    #[test]
    fn short_chart_has_none() {
        let curve = DensityCurve::from_bytes([100; 48]);
        assert_eq!(densest(&curve, &numbers(29_999, 60.0)), []);
        assert_eq!(densest(&curve, &numbers(30_000, 60.0)).len(), MAX);
    }
}
