//! The sample library: every chart is decoded, and together they have every feature.

use std::collections::{BTreeMap, BTreeSet};

use chart_index_domain::{ChartDraft, InvalidKeyCount, NoteHash, Rating, SourceRef};

use crate::support::{chart_files, decode_file, workspace_root};

/// The charts of all samples, each with its set.
fn charts() -> Vec<(String, ChartDraft)> {
    let root = workspace_root().join("samples");
    let mut charts = Vec::new();
    for path in chart_files(&root) {
        let decoded = decode_file(&root.join(&path));
        let path = path.to_str().expect("a UTF-8 path");
        let decoded = decoded.unwrap_or_else(|refusal| panic!("{path}: {refusal}"));
        for refused in decoded.refused {
            assert_eq!(refused.reason, InvalidKeyCount(8).into(), "{path}");
        }
        let set = path.rsplit_once('/').expect("a file in a folder").0.to_owned();
        charts.extend(decoded.charts.into_iter().map(|chart| (set.clone(), chart)));
    }
    charts
}

#[test]
fn samples_cover_every_feature() {
    let charts = charts();
    let sets: BTreeSet<&String> = charts.iter().map(|(set, _)| set).collect();
    assert_eq!(sets.len(), 14);
    let drafts = || charts.iter().map(|(_, chart)| chart);
    let keys: BTreeSet<u8> = drafts().map(|chart| chart.numbers.keys.get()).collect();
    assert_eq!(keys, BTreeSet::from([4, 5, 6, 7]));
    assert!(drafts().any(|chart| chart.numbers.bpm_min < chart.numbers.bpm_max));
    assert!(drafts().all(|chart| chart.numbers.notes > 10 && !chart.metadata.creator.is_empty()));
    assert!(drafts().any(|chart| chart.metadata.title_romanised.as_deref() == Some("Yoake no Kouro")));
    assert!(drafts().any(|chart| chart.metadata.artist_romanised.as_deref() == Some("Tikhaya Stantsiya")));
    assert!(drafts().any(|chart| chart.metadata.tags == ["electronic", "slow jam", "glass"]));

    let of_set = |name: &str| {
        charts.iter().filter(|(set, _)| set.contains(name)).map(|(_, chart)| chart).collect::<Vec<_>>()
    };
    let declared = |name| of_set(name)[0].declared_source.as_ref().map(|source| source.reference.clone());
    assert_eq!(declared("borrowed umbrella"), SourceRef::from_number(900_108));
    assert_eq!(declared("workshop drafts"), None);
    assert_eq!(of_set("workshop drafts")[0].alpha_beatmap_id, None);
    assert_eq!(of_set("900104")[0].alpha_beatmap_id, Some(9_001_041));
}

#[test]
fn charts_shared_between_sets_have_one_hash() {
    let mut sets_of: BTreeMap<NoteHash, BTreeSet<String>> = BTreeMap::new();
    for (set, chart) in charts() {
        sets_of.entry(chart.hash).or_default().insert(set);
    }
    let shared: Vec<&BTreeSet<String>> = sets_of.values().filter(|sets| sets.len() > 1).collect();
    assert_eq!(shared.len(), 4, "one chart of the first game and three of the second: {shared:?}");
    assert!(shared.iter().any(|sets| sets.iter().all(|set| set.starts_with("alpha/"))));
}

/// In hundredths, in the order of the files; 0 for charts without one.
const RATINGS: [u16; 33] = [
    139, 0, 238, 198, 0, 133, 156, 167, 183, 121, 0, 183, 226, 0, 0, 134, 201, 0, 134, 201, 0, 0, 0, 0, 198,
    0, 134, 201, 0, 146, 198, 0, 238,
];

/// In both profiles, as `every_vector_of_a_rating_is_reproduced`.
#[test]
fn golden_ratings_of_the_samples_are_reproduced() {
    let rating =
        |chart: &ChartDraft| chart.analysis.expect("an analysis").rating.map_or(0, Rating::hundredths);
    let ratings: Vec<u16> = charts().iter().map(|(_, chart)| rating(chart)).collect();
    assert_eq!(ratings, RATINGS);
}
