//! Generated catalogues: their sizes, and that they depend on nothing but seed and size.

use std::collections::HashSet;

use super::*;

#[test]
fn catalogue_depends_on_seed_and_size_alone() {
    let catalogue = |seed| drafts(CatalogueOptions::new(300, 1_000, seed).unwrap()).collect::<Vec<_>>();
    assert_eq!(catalogue(7), catalogue(7));
    let ids = |seed| catalogue(seed).into_iter().map(|(draft, _)| draft.id).collect::<HashSet<_>>();
    assert!(ids(7).is_disjoint(&ids(8)));
}

#[test]
fn sizes_are_exact_and_ids_are_unique() {
    for (sets, number) in [(1, 1), (1, 20), (7, 140), (500, 500), (500, 9_999), (20_000, 66_667)] {
        let (mut ids, mut hashes) = (HashSet::new(), HashSet::new());
        for (draft, _) in drafts(CatalogueOptions::new(sets, number, 3).unwrap()) {
            assert!(ids.insert(draft.id), "{}", draft.id);
            assert!(draft.charts.iter().all(|chart| hashes.insert(chart.hash)), "{}", draft.id);
        }
        assert_eq!((ids.len() as u64, hashes.len() as u64), (sets, number));
    }
}

#[test]
fn impossible_sizes_are_errors() {
    for (sets, charts) in [(0, 0), (0, 1), (2, 1), (1, 21), (10, 201)] {
        let error = ImpossibleSize { chartsets: sets, charts };
        assert_eq!(CatalogueOptions::new(sets, charts, 1), Err(error));
    }
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
