//! Generated catalogues: sizes, distributions, scripts, and that they depend on nothing but seed and size.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use chart_index_chartfile::inspect_rox;

use super::*;

const SETS: u64 = 20_000;
const CHARTS: u64 = 66_667;

/// The catalogue of most tests, without the ROX bytes.
static CATALOGUE: LazyLock<Vec<(ChartsetDraft, i64)>> = LazyLock::new(|| {
    let mut catalogue: Vec<_> = Vec::new();
    for (mut draft, updated_at_ms) in drafts(CatalogueOptions::new(SETS, CHARTS, 1).unwrap()) {
        draft.charts.iter_mut().for_each(|chart| chart.rox = None);
        catalogue.push((draft, updated_at_ms));
    }
    catalogue
});

fn charts(catalogue: &[(ChartsetDraft, i64)]) -> impl Iterator<Item = &ChartDraft> {
    catalogue.iter().flat_map(|(draft, _)| &draft.charts)
}

/// The percentage of items that match.
fn percentage<T>(items: impl Iterator<Item = T>, matches: impl Fn(&T) -> bool) -> f64 {
    let (mut matching, mut all) = (0_u32, 0_u32);
    for item in items {
        matching += u32::from(matches(&item));
        all += 1;
    }
    f64::from(matching) * 100.0 / f64::from(all)
}

/// The number of occurrences of each value, in descending order.
fn frequencies<T: std::hash::Hash + Eq>(values: impl Iterator<Item = T>) -> Vec<usize> {
    let mut counts: HashMap<T, usize> = HashMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let mut counts: Vec<usize> = counts.into_values().collect();
    counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
    counts
}

#[test]
fn catalogue_depends_on_seed_and_size_alone() {
    let catalogue = |seed| drafts(CatalogueOptions::new(300, 1_000, seed).unwrap()).collect::<Vec<_>>();
    assert_eq!(catalogue(7), catalogue(7));
    let ids = |seed| catalogue(seed).into_iter().map(|(draft, _)| draft.id).collect::<HashSet<_>>();
    assert!(ids(7).is_disjoint(&ids(8)));
}

#[test]
fn sizes_are_exact_and_ids_are_unique() {
    for (sets, number) in [(1, 1), (1, 20), (7, 140), (500, 500), (500, 1_667), (500, 9_999)] {
        let catalogue: Vec<_> = drafts(CatalogueOptions::new(sets, number, 3).unwrap()).collect();
        assert_eq!((catalogue.len() as u64, charts(&catalogue).count() as u64), (sets, number));
    }
    let catalogue = &*CATALOGUE;
    assert_eq!(catalogue.iter().map(|(draft, _)| draft.id).collect::<HashSet<_>>().len() as u64, SETS);
    assert_eq!(charts(catalogue).map(|chart| chart.hash).collect::<HashSet<_>>().len() as u64, CHARTS);
}

#[test]
fn impossible_sizes_are_errors() {
    for (sets, charts) in [(0, 0), (0, 1), (2, 1), (1, 21), (10, 201)] {
        let error = ImpossibleSize { chartsets: sets, charts };
        assert_eq!(CatalogueOptions::new(sets, charts, 1), Err(error));
    }
}

#[test]
fn few_creators_have_many_charts() {
    let catalogue = &*CATALOGUE;
    let counts = frequencies(charts(catalogue).map(|chart| &chart.metadata.creator));
    let (all, top) = (counts.iter().sum::<usize>(), counts.iter().take(counts.len() / 100).sum::<usize>());
    assert!((10..60).contains(&(top * 100 / all)), "1 % of the creators have {top} of {all} charts");
    assert!(counts[0] < all / 30, "the first creator has {} charts", counts[0]);
    assert!(counts[counts.len() / 2] * 5 < all / counts.len() * 4, "the median is below the mean");

    let creators = catalogue.iter().map(|(draft, _)| {
        draft.charts.iter().map(|chart| &chart.metadata.creator).collect::<HashSet<_>>().len()
    });
    let shared = percentage(creators, |creators| (2..=3).contains(creators));
    assert!((8.0..25.0).contains(&shared), "{shared} % of the sets have two or three creators");
}

#[test]
fn keys_sources_and_charts_per_set_are_realistic() {
    let catalogue = &*CATALOGUE;
    for (keys, expected) in [(4, 60.0), (5, 5.0), (6, 5.0), (7, 30.0)] {
        let share = percentage(charts(catalogue), |chart| chart.numbers.keys.get() == keys);
        assert!((share - expected).abs() < 2.0, "{share} % have {keys} keys");
    }
    let several = percentage(catalogue.iter(), |(draft, _)| {
        draft.charts.iter().any(|chart| chart.numbers.keys != draft.charts[0].numbers.keys)
    });
    assert!((1.0..8.0).contains(&several), "{several} % have several key counts");
    for (kind, expected) in
        [(Some(SourceKind::AlphaSet), 70.0), (Some(SourceKind::BetaPack), 25.0), (None, 5.0)]
    {
        let share = percentage(catalogue.iter(), |(draft, _)| {
            draft.exact_source.as_ref().map(|exact| exact.kind) == kind
        });
        assert!((share - expected).abs() < 1.5, "{share} % are {kind:?}");
    }
    let single = percentage(catalogue.iter(), |(draft, _)| draft.charts.len() == 1);
    let many = percentage(catalogue.iter(), |(draft, _)| draft.charts.len() > 10);
    assert!((20.0..40.0).contains(&single) && (0.5..6.0).contains(&many), "{single} % and {many} %");
}

#[test]
fn bpm_length_and_density_are_realistic() {
    let catalogue = &*CATALOGUE;
    let share = |matches: &dyn Fn(&ChartDraft) -> bool| percentage(charts(catalogue), |chart| matches(chart));
    let between =
        |low: f64, share: f64, high: f64| assert!((low..high).contains(&share), "{low} < {share} < {high}");
    between(70.0, share(&|chart| (120.0..=200.0).contains(&chart.numbers.bpm_main)), 95.0);
    between(15.0, share(&|chart| [174.0, 180.0, 200.0].contains(&chart.numbers.bpm_main)), 35.0);
    between(5.0, share(&|chart| chart.numbers.bpm_main.fract() != 0.0), 25.0);
    between(1.0, share(&|chart| chart.numbers.bpm_max > 1.5 * chart.numbers.bpm_min), 15.0);
    between(40.0, share(&|chart| (90_000..=150_000).contains(&chart.numbers.length_ms)), 85.0);
    between(5.0, share(&|chart| chart.numbers.length_ms > 200_000), 30.0);
    between(0.001, share(&|chart| chart.numbers.length_ms > 3_000_000), 0.3);
    let mean = |keys| {
        let of_keys = || charts(catalogue).filter(|chart| chart.numbers.keys.get() == keys);
        of_keys().map(|chart| chart.numbers.density_avg).sum::<f64>() / of_keys().map(|_| 1.0).sum::<f64>()
    };
    assert!(mean(4) > 4.0 && mean(7) > 1.3 * mean(4) && mean(7) < 20.0, "{} and {}", mean(4), mean(7));
}

#[test]
fn titles_and_tags_are_in_many_scripts_and_repeat() {
    let catalogue = &*CATALOGUE;
    let titles = || catalogue.iter().map(|(draft, _)| draft.charts[0].metadata.title.as_str());
    let scripts = [
        ('\u{3040}', '\u{30ff}'),
        ('\u{ac00}', '\u{d7a3}'),
        ('\u{4e00}', '\u{9fff}'),
        ('а', 'я'),
        ('à', 'ž'),
    ];
    for (first, last) in scripts {
        let share =
            percentage(titles(), |title| title.chars().any(|letter| (first..=last).contains(&letter)));
        assert!(share > 2.0, "{share} % have letters of {first} to {last}");
    }
    let counts = frequencies(titles());
    assert!(
        counts[0] > 20 && counts.len() as u64 > SETS / 4,
        "{} titles, one {} times",
        counts.len(),
        counts[0]
    );
    assert!(titles().any(|title| title.chars().count() > 200), "a very long one");
    assert!(titles().any(|title| !title.chars().any(char::is_alphanumeric)), "one without a letter");
    let romanised =
        percentage(catalogue.iter(), |(draft, _)| draft.charts[0].metadata.title_romanised.is_some());
    assert!((20.0..50.0).contains(&romanised), "{romanised} % are romanised");
    let tags: Vec<usize> = catalogue.iter().map(|(draft, _)| draft.charts[0].metadata.tags.len()).collect();
    assert_eq!((tags.iter().min(), tags.iter().max()), (Some(&0), Some(&20)));
}

#[test]
fn rox_lengths_are_realistic() {
    let catalogue: Vec<_> = drafts(CatalogueOptions::new(500, 1_667, 1).unwrap()).collect();
    let mut lengths: Vec<usize> = charts(&catalogue).map(|chart| chart.rox.as_ref().unwrap().len()).collect();
    lengths.sort_unstable();
    assert!(lengths[0] >= 300 && lengths[lengths.len() - 1] <= 60_000, "{lengths:?}");
    assert!((1_000..6_000).contains(&lengths[lengths.len() / 2]), "{lengths:?}");
}

#[test]
fn valid_rox_files_have_about_the_numbers_of_random_ones() {
    let options = CatalogueOptions::new(60, 200, 1).unwrap();
    let with = |rox_files| drafts(options.with_rox_files(rox_files)).collect::<Vec<_>>();
    let (valid, random) = (with(RoxFiles::Valid), with(RoxFiles::Random));
    for (chart, expected) in charts(&valid).zip(charts(&random)) {
        let content = inspect_rox(chart.rox.as_ref().unwrap()).unwrap();
        assert_eq!((content.hash, content.numbers), (chart.hash, chart.numbers));
        assert_eq!(chart.curve, Some(content.curve));
        assert_eq!(chart.metadata, expected.metadata);
        let (numbers, expected) = (chart.numbers, expected.numbers);
        assert_eq!((numbers.keys, numbers.bpm_main), (expected.keys, expected.bpm_main));
        let ratio = f64::from(numbers.notes) / f64::from(expected.notes);
        assert!((0.5..1.5).contains(&ratio), "{} notes, not {}", numbers.notes, expected.notes);
    }
}

#[test]
fn updates_span_three_years_and_some_come_in_bursts() {
    let times: Vec<i64> = CATALOGUE.iter().map(|(_, updated_at_ms)| *updated_at_ms).collect();
    let day_ms = 86_400_000;
    let days = (times.iter().max().unwrap() - times.iter().min().unwrap()) / day_ms;
    assert!((1_000..=3 * 365).contains(&days), "{days} days");
    let in_bursts =
        frequencies(times.iter().map(|time| time / 10_000)).into_iter().filter(|count| *count > 10);
    let share = in_bursts.sum::<usize>() as u64 * 100 / SETS;
    assert!((10..45).contains(&share), "{share} % in bursts");
    assert!(frequencies(times.iter())[0] >= 20, "some in the same millisecond");
}

#[test]
fn first_rank_is_drawn_by_its_share() {
    let (zipf, mut random) = (Zipf::new(1_000, 1), Rng::with_seed(1));
    let ranks: Vec<u64> = (0..100_000).map(|_| zipf.rank(&mut random)).collect();
    assert!(ranks.iter().all(|rank| *rank < 1_000));
    // 1 / (1 + 1/2 + … + 1/1000) = 0.1336
    let first = ranks.iter().filter(|rank| **rank == 0).count();
    assert!((12_860..13_860).contains(&first), "{first}");
}
