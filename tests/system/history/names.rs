//! The names of the charts and chartsets of a history, in files and in responses.

use std::collections::BTreeMap;

use chart_index_tests::ChartSpec;

use crate::model::{CHARTS, Chart, SETS, Set, Version, count};

/// The first words of titles, none of which is a typo of another. A set has the same one in all versions.
const WORDS: [&str; 5] = ["harbour", "lantern", "meadow", "crystal", "thunder"];

/// The ids of all charts and sets.
#[derive(Debug)]
pub(crate) struct Names {
    /// Note hashes. That of a large chartset's chart is the first one of those that it stands for.
    pub(crate) hashes: Vec<String>,
    /// Chartset ids.
    pub(crate) ids: Vec<String>,
    charts: BTreeMap<String, Chart>,
    sets: BTreeMap<String, Set>,
}

impl Names {
    /// `ids` has the id of each chartset by the id of its source.
    pub(crate) fn new(ids: &BTreeMap<String, String>) -> Self {
        let hashes_of = |chart| specs(0, 0, chart).map(|spec| spec.note_hash()).collect::<Vec<_>>();
        let all: Vec<_> = (0..CHARTS).map(hashes_of).collect();
        let hashes = all.iter().map(|hashes| hashes[0].clone()).collect();
        let ids: Vec<_> = (0..SETS).map(|set| ids[&source_id(set).to_string()].clone()).collect();
        let charts =
            (0..).zip(all).flat_map(|(chart, hashes)| hashes.into_iter().map(move |hash| (hash, chart)));
        let charts = charts.collect();
        let sets = ids.iter().cloned().zip(0..).collect();
        Self { hashes, ids, charts, sets }
    }

    pub(crate) fn hash(&self, chart: Chart) -> &str {
        &self.hashes[chart as usize]
    }

    pub(crate) fn id(&self, set: Set) -> &str {
        &self.ids[set as usize]
    }

    pub(crate) fn chart(&self, hash: &str) -> Option<Chart> {
        self.charts.get(hash).copied()
    }

    pub(crate) fn set(&self, id: &str) -> Option<Set> {
        self.sets.get(id).copied()
    }
}

/// The word that finds a set.
pub(crate) fn word(set: Set) -> &'static str {
    WORDS[set as usize % WORDS.len()]
}

/// The id that the public source has for a set.
pub(crate) fn source_id(set: Set) -> u32 {
    1000 + set
}

/// The key count of a chart.
pub(crate) fn keys(chart: Chart) -> u32 {
    4 + chart % 4
}

/// The BPM of a chart.
pub(crate) fn bpm(chart: Chart) -> u32 {
    100 + chart
}

/// The length of a chart in milliseconds.
pub(crate) fn length_ms(chart: Chart) -> u32 {
    60_000 + 1000 * chart
}

pub(crate) fn title(set: Set, version: Version) -> String {
    format!("{} s{set:03}v{version:05}", word(set))
}

/// The file of a chart in a version of a set: the first one, if it stands for several.
pub(crate) fn spec(set: Set, version: Version, chart: Chart) -> ChartSpec {
    specs(set, version, chart).next().expect("a chart")
}

/// The files of a chart in a version of a set.
pub(crate) fn specs(set: Set, version: Version, chart: Chart) -> impl Iterator<Item = ChartSpec> {
    (0..count(chart)).map(move |number| numbered_spec(set, version, chart, number))
}

fn numbered_spec(set: Set, version: Version, chart: Chart, number: u32) -> ChartSpec {
    let mut notes = vec![(0, 0, None), (100 + i64::from(chart + number), 1, None)];
    // With fewer than eight, a chart would not have the sources of all its sets (docs/api.md, "Chart lookup").
    notes.extend((1..=5).map(|second| (1000 * second, 3, None)));
    notes.push((length_ms(chart).into(), 2, None));
    ChartSpec {
        keys: u8::try_from(keys(chart)).expect("a key count"),
        title: title(set, version),
        creator: format!("mapper{}", set % 7),
        difficulty: format!("Chart {chart}, {number}"),
        set_id: source_id(set).into(),
        bpm: bpm(chart).into(),
        notes,
        ..ChartSpec::default()
    }
}

/// All versions of sets that a text names.
pub(crate) fn versions_in(text: &str) -> Vec<(Set, Version)> {
    let versions = text.match_indices(" s").filter_map(|(position, _)| {
        let token = text.get(position + 2..position + 11)?;
        let (set, version) = token.split_once('v')?;
        let is_number =
            |digits: &str, length| digits.len() == length && digits.bytes().all(|b| b.is_ascii_digit());
        (is_number(set, 3) && is_number(version, 5))
            .then(|| Some((set.parse().ok()?, version.parse().ok()?)))?
    });
    versions.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_found_in_text() {
        let text = format!("<b>{}</b> {} s1v2", title(3, 14), title(23, 99_999));
        assert_eq!(versions_in(&text), [(3, 14), (23, 99_999)]);
    }
}
