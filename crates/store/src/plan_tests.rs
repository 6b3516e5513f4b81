//! Checks the query plans of lookups, of many charts and of one that many chartsets share, of the charts of a
//! creator, and of the check whether chartsets are unchanged.

use std::cmp::Reverse;

use chart_index_tests::TestDatabase;

use crate::reads::chart_occurrences::LOOK_UP_CHARTSETS;
use crate::reads::creators::CHARTS_OF_CREATOR;
use crate::reads::lookups::{LOOK_UP_CHART, LOOK_UP_CHARTS};
use crate::writes::incremental_ingest::RECORD_UNCHANGED;
use crate::{Store, StoreConfig};

const PLAN_MODES: [&str; 2] = ["force_custom_plan", "force_generic_plan"];

/// With fewer PostgreSQL sorts the occurrences of a chart instead of reading them in order.
const CHARTS: u32 = 20_000;

/// Inserts charts, each in a chartset of its own, whose creator is an expression of their number. Their hashes
/// are those of their numbers. The rows that lists read are not needed here.
fn fill(database: &TestDatabase, charts: u32, creator: &str) {
    for statement in [
        "INSERT INTO charts (hash, keys, bpm_min, bpm_max, bpm_main, length_ms, notes, lns, density_avg, density_peak,
                             rox_bytes, first_seen_ms)
         SELECT sha256(n::text::bytea), 4, 120, 120, 120, 1000, 1, 0, 1, 1, 1, n",
        "INSERT INTO chartsets
         (id, path, content_fingerprint, checked_at_ms, updated_at_ms, title, artist, creator, keys, bpm_min, bpm_max,
          length_min_ms, length_max_ms, density_max, chart_count, tags, romanised_names, title_sort, artist_sort,
          creator_search, search_words)
         SELECT lpad(to_hex(n), 16, '0'), 'alpha/' || n, decode(repeat('00', 32), 'hex'), 1, 1, 'Title', 'Artist',
                'Creator', '{4}', 120, 120, 1000, 1000, 1, 1, '{}', '{}', 'title', 'artist', 'creator', ''",
        &format!(
            "INSERT INTO chartset_charts (chartset_id, chart_hash, title, artist, creator, difficulty, tags)
             SELECT lpad(to_hex(n), 16, '0'), sha256(n::text::bytea), 'Title', 'Artist', {creator}, 'Hard', '{{}}'"
        ),
    ] {
        let without_triggers = "SET session_replication_role = replica";
        let _ = database
            .psql(&format!("{without_triggers}; {statement} FROM generate_series(1, {charts}) AS n"));
    }
    let _ = database.psql("ANALYZE charts, chartsets, chartset_charts");
}

/// Half of them unknown.
const HASHES: &str = "(SELECT array_agg(sha256((36 * n)::text::bytea)) FROM generate_series(1, 1000) AS n)";

/// Tables are not read as a whole, whatever PostgreSQL knows of the hashes when it makes the plan.
#[tokio::test]
async fn lookup_of_many_charts_reads_indexes() {
    let database = TestDatabase::migrated().await;
    fill(&database, CHARTS, "'Creator'");
    let hashes = database.psql(&format!("SELECT quote_literal({HASHES}::text)"));
    for (statement, mode) in [LOOK_UP_CHARTS, LOOK_UP_CHARTSETS]
        .into_iter()
        .flat_map(|statement| PLAN_MODES.map(|mode| (statement, mode)))
    {
        let plan = database.psql(&format!(
            "SET plan_cache_mode = {mode}; PREPARE lookup AS {statement}; EXPLAIN (ANALYZE) EXECUTE lookup ({hashes})"
        ));
        for index in ["charts_pkey", "chartset_charts_by_chart", "chartsets_pkey"] {
            assert!(plan.contains(&format!("Index Scan using {index}")), "{mode}: {plan}");
        }
        assert!(!plan.contains("Seq Scan"), "{mode}: {plan}");
        assert!(plan.contains("rows=555 "), "{mode}: {plan}");
    }
}

/// Makes all chartsets share a chart.
const SHARE: [&str; 2] = [
    "INSERT INTO chartset_charts (chartset_id, chart_hash, title, artist, creator, difficulty, tags)
     SELECT lpad(to_hex(n), 16, '0'), sha256('1'), 'Title', 'Artist', 'Creator', 'Hard', '{}'
     FROM generate_series(2, 20000) AS n",
    "ANALYZE chartset_charts",
];

/// The statement reads 32 of 20,000 occurrences, whether or not the statistics know of the chart.
#[tokio::test]
async fn lookup_of_a_shared_chart_is_bounded() {
    let database = TestDatabase::migrated().await;
    fill(&database, CHARTS, "'Creator'");
    for statement in SHARE {
        let _ = database.psql(statement);
    }
    for (statement, argument) in [
        (LOOK_UP_CHART, "sha256('1')"),
        (LOOK_UP_CHARTS, "ARRAY[sha256('1'), sha256('2')]"),
        (LOOK_UP_CHARTSETS, "ARRAY[sha256('1'), sha256('2')]"),
    ] {
        for mode in PLAN_MODES {
            let plan = database.psql(&format!(
                "SET plan_cache_mode = {mode}; PREPARE lookup AS {statement};
                 EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE lookup ({argument})"
            ));
            let read = |line: &str| {
                let (_, rest) = line.split_once("rows=")?;
                rest.split_once(' ')?.0.parse::<f64>().ok()
            };
            let most = plan.lines().filter_map(read).fold(0.0, f64::max);
            assert!(most <= 34.0, "{mode}: {most} rows in {plan}");
            assert!(plan.contains("Index Scan using chartset_charts_by_chart"), "{mode}: {plan}");
        }
    }
}

/// Of creators with 1, 62 and 20,000 charts.
#[tokio::test]
async fn charts_of_a_creator_are_read_by_index() {
    let database = TestDatabase::migrated().await;
    let store = Store::new(&StoreConfig::new(database.url().parse().unwrap()));
    let creator = "CASE WHEN n = 1 THEN 'one' WHEN n % 5 = 0 THEN 'many' ELSE 'some ' || n % 1600 END";
    fill(&database, 100_000, creator);
    for (name, charts) in [("one", 1), ("some 1", 62), ("many", 1_000), ("none", 0), ("One", 0)] {
        let found = store.charts_of_creator(name, 1_000).await.unwrap();
        assert_eq!(found.len(), charts, "{name}");
        assert!(found.is_sorted_by_key(|chart| Reverse(chart.first_seen_ms)), "{name}");
        for mode in PLAN_MODES {
            let plan = database.psql(&format!(
                "SET plan_cache_mode = {mode}; PREPARE statement AS {CHARTS_OF_CREATOR};
                 EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) EXECUTE statement ('{name}', 1000)"
            ));
            assert!(!plan.contains("Seq Scan on charts"), "{name}, {mode}: {plan}");
            // PostgreSQL reads the table up to the limit if it has more than one such row on a page.
            let is_common = name == "many" && mode == "force_custom_plan";
            assert!(plan.contains("chartset_charts_by_creator") || is_common, "{name}, {mode}: {plan}");
            for index in ["charts_pkey", "chartsets_pkey"] {
                assert!(charts == 0 || plan.contains(index), "{name}, {mode}: {plan}");
            }
        }
    }
}

/// As many as an ingest checks at once, none of which has moved.
#[tokio::test]
async fn unchanged_chartsets_are_looked_up_by_id() {
    let database = TestDatabase::migrated().await;
    fill(&database, CHARTS, "'Creator'");
    let values = ["lpad(to_hex(n), 16, '0')", "decode(repeat('00', 32), 'hex')", "'alpha/' || n"];
    let arrays = values.map(|value| {
        let array = format!("quote_literal(array_agg({value})::text)");
        database.psql(&format!("SELECT {array} FROM generate_series(1, 256) AS n"))
    });
    for mode in PLAN_MODES {
        let plan = database.psql(&format!(
            "SET plan_cache_mode = {mode}; PREPARE record AS {RECORD_UNCHANGED};
             EXPLAIN (ANALYZE) EXECUTE record ({}, 2)",
            arrays.join(", ")
        ));
        let mut scans = plan.lines().filter(|line| line.contains("Seq Scan on chartsets"));
        assert!(scans.all(|scan| scan.contains("never executed")), "{mode}: {plan}");
        let results = plan.lines().next().unwrap_or_default();
        assert!(results.contains("rows=256 loops=1"), "{mode}: {plan}");
    }
}
