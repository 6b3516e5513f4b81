//! Charts as rows: in a chartset, and similar to another chart.

use chart_index_domain::{Chart, DensityCurve};

use crate::bpm::Bpm;
use crate::creators::CreatorLink;
use crate::curve::Curve;
use crate::format;
use crate::format::named;
use crate::level::Level;

#[derive(Debug)]
pub(crate) struct ChartRow {
    pub(crate) href: String,
    pub(crate) level: Level,
    pub(crate) title: String,
    pub(crate) artist: String,
    pub(crate) keys: u8,
    pub(crate) difficulty: String,
    pub(crate) bpm: Bpm,
    pub(crate) length: String,
    pub(crate) notes: String,
    pub(crate) long_notes: String,
    pub(crate) density_avg: String,
    pub(crate) density_peak: String,
    /// `None` if the file names no creator.
    pub(crate) creator: Option<CreatorLink>,
    pub(crate) curve: Curve,
}

impl ChartRow {
    pub(crate) fn new(chart: &Chart, density: Option<&DensityCurve>) -> Self {
        let numbers = &chart.numbers;
        Self {
            href: format!("/charts/{}", chart.hash),
            level: Level::new(chart),
            title: named(chart.title.clone(), "Untitled"),
            artist: named(chart.artist.clone(), "Unknown artist"),
            keys: numbers.keys.get(),
            difficulty: named(chart.difficulty.clone(), "Unnamed"),
            bpm: Bpm::of_chart(chart),
            length: format::length(numbers.length_ms),
            notes: format::count(numbers.notes.into()),
            long_notes: format::share(numbers.lns, numbers.notes),
            density_avg: format::density(numbers.density_avg),
            density_peak: format::density(numbers.density_peak),
            creator: (!chart.creator.is_empty()).then(|| CreatorLink::new(&chart.creator)),
            curve: density.map(|curve| Curve::in_line(curve, numbers)).unwrap_or_default(),
        }
    }

    /// The keys before the name of the difficulty, such as `4K `; empty if it begins with them, as many do.
    pub(crate) fn keys_if_not_named(&self) -> String {
        let keys = format!("{}K ", self.keys);
        if self.difficulty.starts_with(&keys) { String::new() } else { keys }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::tests::chart;

    #[test]
    fn keys_are_named_once() {
        for (difficulty, keys) in [("Hard", "7K "), ("7K Hard", ""), ("7Keys", "7K "), ("4K Hard", "7K ")] {
            let row = ChartRow::new(&Chart { difficulty: difficulty.into(), ..chart() }, None);
            assert_eq!(row.keys_if_not_named(), keys, "{difficulty}");
        }
    }
}
