use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::*;

const SETS: u64 = 20_000;
const CHARTS: u64 = 66_667;

/// The catalogue that most tests look at, without the ROX bytes.
static CATALOGUE: LazyLock<Vec<(ChartsetDraft, i64)>> = LazyLock::new(|| {
    let mut made: Vec<_> = Vec::new();
    for (mut draft, updated_at_ms) in drafts(CatalogueOptions::new(SETS, CHARTS, 1).unwrap()) {
        draft.charts.iter_mut().for_each(|chart| chart.rox = None);
        made.push((draft, updated_at_ms));
    }
    made
});

fn charts(catalogue: &[(ChartsetDraft, i64)]) -> impl Iterator<Item = &ChartDraft> {
    catalogue.iter().flat_map(|(draft, _)| &draft.charts)
}

/// How many of a hundred items are like this.
fn per_hundred<T>(items: impl Iterator<Item = T>, is_such: impl Fn(&T) -> bool) -> f64 {
    let (mut such, mut all) = (0_u32, 0_u32);
    for item in items {
        such += u32::from(is_such(&item));
        all += 1;
    }
    f64::from(such) * 100.0 / f64::from(all)
}

/// How often each value occurs, the most frequent first.
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
fn a_seed_and_a_size_give_one_catalogue_and_another_seed_another() {
    let made = |seed| drafts(CatalogueOptions::new(300, 1_000, seed).unwrap()).collect::<Vec<_>>();
    assert_eq!(made(7), made(7));
    let ids = |seed| made(seed).into_iter().map(|(draft, _)| draft.id).collect::<HashSet<_>>();
    assert!(ids(7).is_disjoint(&ids(8)));
}

#[test]
fn sizes_are_exact_and_no_id_or_hash_comes_twice() {
    for (sets, number) in [(1, 1), (1, 20), (7, 140), (500, 500), (500, 1_667), (500, 9_999)] {
        let made: Vec<_> = drafts(CatalogueOptions::new(sets, number, 3).unwrap()).collect();
        assert_eq!((made.len() as u64, charts(&made).count() as u64), (sets, number));
    }
    let made = &*CATALOGUE;
    assert_eq!(made.iter().map(|(draft, _)| draft.id).collect::<HashSet<_>>().len() as u64, SETS);
    assert_eq!(charts(made).map(|chart| chart.hash).collect::<HashSet<_>>().len() as u64, CHARTS);
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    for (sets, charts) in [(0, 0), (0, 1), (2, 1), (1, 21), (10, 201)] {
        let refused = ImpossibleSize { chartsets: sets, charts };
        assert_eq!(CatalogueOptions::new(sets, charts, 1), Err(refused));
    }
}

#[test]
fn few_creators_make_much_and_most_make_little() {
    let made = &*CATALOGUE;
    let counts = frequencies(charts(made).map(|chart| &chart.metadata.creator));
    let (all, top) = (counts.iter().sum::<usize>(), counts.iter().take(counts.len() / 100).sum::<usize>());
    assert!((10..60).contains(&(top * 100 / all)), "one of a hundred creators made {top} of {all}");
    assert!(counts[0] < all / 30, "nobody made everything: {}", counts[0]);
    assert!(counts[counts.len() / 2] * 5 < all / counts.len() * 4, "half of them made less than the mean");

    let creators = made.iter().map(|(draft, _)| {
        draft.charts.iter().map(|chart| &chart.metadata.creator).collect::<HashSet<_>>().len()
    });
    let shared = per_hundred(creators, |creators| (2..=3).contains(creators));
    assert!((8.0..25.0).contains(&shared), "{shared} % of the sets have two or three creators");
}

#[test]
fn keys_sources_and_charts_per_set_are_as_in_real_catalogues() {
    let made = &*CATALOGUE;
    for (keys, expected) in [(4, 60.0), (5, 5.0), (6, 5.0), (7, 30.0)] {
        let share = per_hundred(charts(made), |chart| chart.numbers.keys.get() == keys);
        assert!((share - expected).abs() < 2.0, "{share} % have {keys} keys");
    }
    let several = per_hundred(made.iter(), |(draft, _)| {
        draft.charts.iter().any(|chart| chart.numbers.keys != draft.charts[0].numbers.keys)
    });
    assert!((1.0..8.0).contains(&several), "{several} % have several key counts");
    for (kind, expected) in
        [(Some(SourceKind::AlphaSet), 70.0), (Some(SourceKind::BetaPack), 25.0), (None, 5.0)]
    {
        let share = per_hundred(made.iter(), |(draft, _)| {
            draft.exact_source.as_ref().map(|exact| exact.kind) == kind
        });
        assert!((share - expected).abs() < 1.5, "{share} % are {kind:?}");
    }
    let single = per_hundred(made.iter(), |(draft, _)| draft.charts.len() == 1);
    let many = per_hundred(made.iter(), |(draft, _)| draft.charts.len() > 10);
    assert!((20.0..40.0).contains(&single) && (0.5..6.0).contains(&many), "{single} % and {many} %");
}

#[test]
fn bpm_lengths_and_densities_are_as_in_real_catalogues() {
    let made = &*CATALOGUE;
    let share = |is_such: &dyn Fn(&ChartDraft) -> bool| per_hundred(charts(made), |chart| is_such(chart));
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
        let of_keys = || charts(made).filter(|chart| chart.numbers.keys.get() == keys);
        of_keys().map(|chart| chart.numbers.density_avg).sum::<f64>() / of_keys().map(|_| 1.0).sum::<f64>()
    };
    assert!(mean(4) > 4.0 && mean(7) > 1.3 * mean(4) && mean(7) < 20.0, "{} and {}", mean(4), mean(7));
}

#[test]
fn titles_and_tags_are_of_many_scripts_and_repeat_themselves() {
    let made = &*CATALOGUE;
    let titles = || made.iter().map(|(draft, _)| draft.charts[0].metadata.title.as_str());
    let scripts = [
        ('\u{3040}', '\u{30ff}'),
        ('\u{ac00}', '\u{d7a3}'),
        ('\u{4e00}', '\u{9fff}'),
        ('а', 'я'),
        ('à', 'ž'),
    ];
    for (first, last) in scripts {
        let share =
            per_hundred(titles(), |title| title.chars().any(|letter| (first..=last).contains(&letter)));
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
    let romanised = per_hundred(made.iter(), |(draft, _)| draft.charts[0].metadata.title_romanised.is_some());
    assert!((20.0..50.0).contains(&romanised), "{romanised} % are romanised");
    let tags: Vec<usize> = made.iter().map(|(draft, _)| draft.charts[0].metadata.tags.len()).collect();
    assert_eq!((tags.iter().min(), tags.iter().max()), (Some(&0), Some(&20)));
}

#[test]
fn rox_bytes_are_as_long_as_those_of_real_charts() {
    let made: Vec<_> = drafts(CatalogueOptions::new(500, 1_667, 1).unwrap()).collect();
    let mut lengths: Vec<usize> = charts(&made).map(|chart| chart.rox.as_ref().unwrap().len()).collect();
    lengths.sort_unstable();
    assert!(lengths[0] >= 300 && lengths[lengths.len() - 1] <= 60_000, "{lengths:?}");
    assert!((1_000..6_000).contains(&lengths[lengths.len() / 2]), "{lengths:?}");
}

#[test]
fn updates_spread_over_three_years_and_many_fall_into_the_same_second() {
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
