//! Charts that play like another one.

use std::time::Duration;

use chart_index_domain::{ChartDraft, KeyCount, NoteHash};
use chart_index_tests::within;

use crate::support::{Catalogue, chart, folder, hash, id};

/// A chart with these numbers, in a chartset of its own unless `set` says otherwise.
fn with_numbers(number: u32, keys: u8, bpm: f64, peak: f64, lns: u32) -> ChartDraft {
    let mut draft = chart(number);
    let numbers = &mut draft.numbers;
    (numbers.keys, numbers.notes, numbers.lns) = (KeyCount::try_from(keys).unwrap(), 1_000, lns);
    (numbers.bpm_min, numbers.bpm_max, numbers.bpm_main) = (bpm, bpm, bpm);
    numbers.density_peak = peak;
    draft
}

async fn similar(catalogue: &Catalogue, hash: NoteHash) -> Vec<(u64, NoteHash)> {
    let found = catalogue.store.similar_charts(hash).await.unwrap();
    let number = |id: [u8; 8]| u64::from_be_bytes(id);
    found.iter().map(|similar| (number(*similar.chartset_id.as_bytes()), similar.chart.hash)).collect()
}

#[tokio::test]
async fn similar_charts_are_within_the_ranges() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [with_numbers(1, 4, 200.0, 20.0, 0)]), 10).await;
    for (number, keys, bpm, peak) in [
        (2, 4, 190.0, 20.0),
        (3, 4, 210.0, 20.0),
        (4, 4, 200.0, 18.0),
        (5, 4, 200.0, 25.0),
        (6, 4, 210.0, 25.0),
        // Outside.
        (12, 4, 189.9, 20.0),
        (13, 4, 210.1, 20.0),
        (14, 4, 200.0, 17.9),
        (15, 4, 200.0, 25.1),
        (16, 5, 200.0, 20.0),
        (17, 7, 200.0, 20.0),
    ] {
        catalogue.put(&folder(number.into(), [with_numbers(number, keys, bpm, peak, 0)]), 10).await;
    }
    let mut sets: Vec<u64> = similar(&catalogue, hash(1)).await.into_iter().map(|(set, _)| set).collect();
    assert_eq!(sets, [4, 5, 3, 2, 6], "nearest first");
    sets.clear();
    catalogue.remove(hash(4), 20).await;
    catalogue.remove(id(5), 20).await;
    let found = similar(&catalogue, hash(1)).await;
    assert_eq!(found.iter().map(|(set, _)| *set).collect::<Vec<_>>(), [3, 2, 6], "without removed ones");
    assert_eq!(similar(&catalogue, hash(4)).await, [], "of a removed chart");
    assert_eq!(similar(&catalogue, hash(99)).await, [], "of an unknown chart");
}

#[tokio::test]
async fn each_chartset_is_listed_once_without_the_own_ones() {
    let catalogue = Catalogue::create().await;
    let numbers = |number| with_numbers(number, 4, 200.0, 20.0, 0);
    catalogue.put(&folder(1, [numbers(1), numbers(2)]), 10).await;
    catalogue.put(&folder(2, [numbers(1), numbers(3)]), 10).await;
    catalogue.put(&folder(3, [numbers(3), numbers(4), numbers(5)]), 10).await;
    for number in 10..30 {
        catalogue.put(&folder(number.into(), [numbers(number)]), 10).await;
    }
    let found = similar(&catalogue, hash(1)).await;
    assert_eq!(found.len(), 12);
    let mut sets: Vec<u64> = found.iter().map(|(set, _)| *set).collect();
    sets.sort_unstable();
    sets.dedup();
    assert_eq!(sets.len(), 12);
    assert!(!sets.contains(&1) && !sets.contains(&2), "{sets:?}");
    assert_eq!(similar(&catalogue, hash(1)).await, found, "the same each time");
}

#[tokio::test]
async fn the_share_of_long_notes_counts() {
    let catalogue = Catalogue::create().await;
    for (number, peak, lns) in [(1, 20.0, 800), (2, 20.0, 0), (3, 20.0, 780), (4, 21.0, 800)] {
        catalogue.put(&folder(number.into(), [with_numbers(number, 7, 180.0, peak, lns)]), 10).await;
    }
    let sets: Vec<u64> = similar(&catalogue, hash(1)).await.into_iter().map(|(set, _)| set).collect();
    assert_eq!(sets, [3, 4, 2]);
}

#[tokio::test]
async fn charts_without_bpm_or_density_are_compared() {
    const CHARTS: [(u32, f64, f64); 7] = [
        (1, 0.0, 1.0),
        (2, 0.0, 1.0),
        (3, 0.5, 1.0),
        (4, 1e9, 1.0),
        (5, 1e9, 1.0),
        (6, -1.0, 1.0),
        (7, 0.0, 0.0),
    ];
    let catalogue = Catalogue::create().await;
    for (number, bpm, peak) in CHARTS {
        catalogue.put(&folder(number.into(), [with_numbers(number, 4, bpm, peak, 0)]), 10).await;
    }
    for (of, expected) in [(1, vec![2]), (3, vec![]), (4, vec![5]), (6, vec![]), (7, vec![])] {
        let sets: Vec<u64> = similar(&catalogue, hash(of)).await.into_iter().map(|(set, _)| set).collect();
        assert_eq!(sets, expected, "{of}");
    }
}

/// If thousands of charts are within the ranges, only some of them are read.
#[tokio::test]
async fn similar_charts_are_found_by_the_index() {
    let catalogue = Catalogue::create().await;
    catalogue.database.psql(
        "INSERT INTO charts (hash, keys, bpm_min, bpm_max, bpm_main, length_ms, notes, lns, density_avg, density_peak,
                             rox_bytes, first_seen_ms)
         SELECT sha256(n::text::bytea), 4 + n % 4, 100, 300, 100 + abs(hashint4(n) % 300) / 10.0, 60000, 1000,
                abs(hashint4(n + 1) % 1000), 5, 10 + abs(hashint4(n + 2) % 20), 1, 0
         FROM generate_series(1, 40000) AS n;
         INSERT INTO chartsets (id, path, content_fingerprint, checked_at_ms, updated_at_ms, title, artist, creator, keys,
                                bpm_min, bpm_max, length_min_ms, length_max_ms, density_max, chart_count, tags,
                                romanised_names, title_sort, artist_sort, creator_search, search_words)
         SELECT lpad(to_hex(n), 16, '0'), '', sha256(''), 1, n, '', '', '', '{4}', 1, 1, 1, 1, 1, 1, '{}', '{}', '', '',
                '', ''
         FROM generate_series(1, 40000) AS n;
         INSERT INTO chartset_charts (chartset_id, chart_hash, title, artist, creator, difficulty, tags)
         SELECT lpad(to_hex(n), 16, '0'), sha256(n::text::bytea), '', '', '', '', '{}'
         FROM generate_series(1, 40000) AS n",
    );
    catalogue.database.psql("VACUUM (ANALYZE) charts, chartsets, chartset_charts");
    let target: NoteHash = catalogue.database.psql("SELECT encode(sha256('4'), 'hex')").parse().unwrap();
    let within_ranges =
        "SELECT count(*) FROM charts AS a, charts AS b WHERE b.hash = sha256('4') AND a.keys = b.keys
                         AND a.bpm_main BETWEEN b.bpm_main * 0.95 AND b.bpm_main * 1.05
                         AND a.density_peak BETWEEN b.density_peak * 0.9 AND b.density_peak * 1.25";
    let count: u32 = catalogue.database.psql(within_ranges).parse().unwrap();
    assert!(count > 1_000, "{count}");
    catalogue.database.psql("SELECT pg_stat_force_next_flush(), pg_stat_reset()");
    assert_eq!(catalogue.store.similar_charts(target).await.unwrap().len(), 12);
    // Connections report what they read when they end.
    catalogue.store.close().await;
    let read = "SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read) FROM pg_stat_user_tables
                WHERE relname IN ('charts', 'chartsets', 'chartset_charts')";
    let reported = async || Some(catalogue.database.psql(read).parse().unwrap()).filter(|rows| *rows > 0);
    let (rows, _): (u32, _) = within(Duration::from_secs(10), reported).await;
    assert!(rows <= 700, "{rows}");
}
