//! Charts that play like another one.

use std::collections::BTreeSet;
use std::time::Duration;

use chart_index_domain::{ChartAnalysis, ChartDraft, KeyCount, NoteHash, Pattern, Patterns, Rating, Variant};
use chart_index_tests::within;

use crate::support::{Catalogue, chart, folder, hash, id};

/// A chart with this rating in hundredths, none if it is 0, and this share of streams in percent.
fn with_rating(number: u32, keys: u8, rating: u16, stream_share: u8) -> ChartDraft {
    let mut draft = chart(number);
    draft.numbers.keys = KeyCount::try_from(keys).unwrap();
    let mut patterns = Patterns::default();
    patterns.row_shares[Pattern::Stream as usize] = stream_share;
    let rating = Rating::from_hundredths(rating).filter(|rating| rating.hundredths() > 0);
    draft.analysis = Some(ChartAnalysis { rating, patterns });
    draft
}

fn with_long_notes(number: u32, rating: u16, ln_note_share: u8) -> ChartDraft {
    let mut draft = with_rating(number, 7, rating, 50);
    let analysis = draft.analysis.as_mut().unwrap();
    analysis.patterns.ln_note_share = ln_note_share;
    draft
}

async fn similar(catalogue: &Catalogue, hash: NoteHash) -> Vec<(u64, NoteHash)> {
    let found = catalogue.store.similar_charts(hash).await.unwrap();
    let number = |id: [u8; 8]| u64::from_be_bytes(id);
    found.iter().map(|similar| (number(*similar.chartset_id.as_bytes()), similar.chart.hash)).collect()
}

async fn similar_sets(catalogue: &Catalogue, number: u32) -> Vec<u64> {
    similar(catalogue, hash(number.into())).await.into_iter().map(|(set, _)| set).collect()
}

#[tokio::test]
async fn similar_charts_have_a_similar_rating_and_patterns() {
    let catalogue = Catalogue::create().await;
    for (number, keys, rating, stream_share) in [
        (1, 4, 300, 50),
        (2, 4, 300, 62),
        (3, 4, 315, 50),
        (4, 4, 300, 50),
        (5, 4, 330, 60),
        (6, 4, 202, 50),
        // Too far.
        (12, 4, 300, 91),
        (13, 4, 200, 50),
        (14, 4, 448, 50),
        (15, 4, 400, 85),
        (16, 5, 300, 50),
        (17, 7, 300, 50),
        (18, 4, 0, 50),
    ] {
        catalogue.put(&folder(number.into(), [with_rating(number, keys, rating, stream_share)]), 10).await;
    }
    assert_eq!(similar_sets(&catalogue, 1).await, [4, 3, 2, 5, 6], "nearest first");
    catalogue.remove(hash(4), 20).await;
    catalogue.remove(id(3), 20).await;
    assert_eq!(similar_sets(&catalogue, 1).await, [2, 5, 6], "without removed ones");
    assert!(similar_sets(&catalogue, 4).await.is_empty(), "of a removed chart");
    assert!(similar_sets(&catalogue, 18).await.is_empty(), "of a chart without a rating");
    assert!(similar_sets(&catalogue, 99).await.is_empty(), "of an unknown chart");
    catalogue.database.psql("UPDATE charts SET analysis_version = 2 WHERE rating = 330");
    assert_eq!(similar_sets(&catalogue, 1).await, [2, 6], "without those of another version");
}

#[tokio::test]
async fn variants_of_the_chart_are_left_out() {
    let catalogue = Catalogue::create().await;
    for (number, variant) in [(1, Some(1)), (2, Some(1)), (3, Some(2)), (4, None)] {
        let variant = variant.map(|variant| Variant::from_bytes([variant; 32]));
        let chart = ChartDraft { variant, ..with_rating(number, 4, 300, 50) };
        catalogue.put(&folder(number.into(), [chart]), 10).await;
    }
    let similar =
        async |number| -> BTreeSet<u64> { similar_sets(&catalogue, number).await.into_iter().collect() };
    assert_eq!(similar(1).await, BTreeSet::from([3, 4]));
    assert_eq!(similar(4).await, BTreeSet::from([1, 2, 3]));
}

#[tokio::test]
async fn each_chartset_is_listed_once_without_the_own_ones() {
    let catalogue = Catalogue::create().await;
    let similar_to_all = |number| with_rating(number, 4, 300, 50);
    catalogue.put(&folder(1, [similar_to_all(1), similar_to_all(2)]), 10).await;
    catalogue.put(&folder(2, [similar_to_all(1), similar_to_all(3)]), 10).await;
    catalogue.put(&folder(3, [similar_to_all(3), similar_to_all(4), similar_to_all(5)]), 10).await;
    for number in 10..30 {
        catalogue.put(&folder(number.into(), [similar_to_all(number)]), 10).await;
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
    for (number, rating, ln_share) in [(1, 400, 80), (2, 400, 50), (3, 400, 78), (4, 420, 80)] {
        catalogue.put(&folder(number.into(), [with_long_notes(number, rating, ln_share)]), 10).await;
    }
    assert_eq!(similar_sets(&catalogue, 1).await, [3, 4, 2]);
}

/// If thousands of charts are similar, only some of them are read.
#[tokio::test]
async fn similar_charts_are_found_by_the_index() {
    let catalogue = Catalogue::create().await;
    catalogue.database.psql(
        "INSERT INTO charts (hash, keys, bpm_min, bpm_max, bpm_main, length_ms, notes, lns, density_avg, density_peak,
                             rox_bytes, first_seen_ms, rating, patterns, analysis_version)
         SELECT sha256(n::text::bytea), 4 + n % 4, 100, 300, 200, 60000, 1000, 0, 5, 10, 1, 0,
                300 + abs(hashint4(n)) % 60, set_byte(repeat('\\000', 15)::bytea, 9, abs(hashint4(n + 1)) % 20), 1
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
    catalogue.database.psql("SELECT pg_stat_force_next_flush(), pg_stat_reset()");
    assert_eq!(catalogue.store.similar_charts(target).await.unwrap().len(), 12);
    // Connections report what they read when they end.
    catalogue.store.close().await;
    let read = "SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read) FROM pg_stat_user_tables
                WHERE relname IN ('charts', 'chartsets', 'chartset_charts')";
    let reported = async || Some(catalogue.database.psql(read).parse().unwrap()).filter(|rows| *rows > 0);
    let (rows, _): (u32, _) = within(Duration::from_secs(10), reported).await;
    // The chart, 250 neighbours in each direction, and for each of the 60 nearest and of the 12 results one row
    // of each table: some plans find the row of its chartset's chart without reading it.
    assert!(rows <= 1 + 2 * 250 + 3 * 60 + 3 * 12, "{rows}");
}
