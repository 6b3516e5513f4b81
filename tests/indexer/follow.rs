//! `chart-indexer follow` without search nodes.

use std::time::Duration;

use chart_index_tests::{RunningIndexer, within};

use super::*;

/// A timeout that no passing test reaches.
const TIMEOUT: Duration = Duration::from_mins(1);

#[tokio::test]
async fn follow_without_nodes_builds_the_filter() {
    let database = Database::new().await;
    let library = Library::new();
    for number in 1..=3 {
        library.osu(&format!("alpha/{number} set/a.osu"), ChartSpec::numbered(number));
    }
    database.ingest(&library);
    // Changes that no command made.
    let one = "WHERE hash = (SELECT hash FROM charts ORDER BY hash LIMIT 1)";
    database.0.psql(&format!("DELETE FROM hash_filters; UPDATE charts SET removed_at_ms = 1 {one}"));
    let mut command = indexer_command(database.0.url(), &["follow"]);
    // It has no connection to Redis.
    command.env("REDIS_URL", "invalid").env_remove("MEILISEARCH_URL");
    let mut follow = RunningIndexer::start(&mut command);
    within(TIMEOUT, async || (database.0.psql("SELECT hashes FROM hash_filters") == "2").then_some(())).await;

    assert_eq!(follow.samples("chart_index_sync").await, Vec::<String>::new(), "there are no nodes");
    within(TIMEOUT, async || (follow.client().get("/readyz").await.status == 200).then_some(())).await;
    follow.terminate();
    assert_eq!(follow.wait(), Some(130));
}

#[tokio::test]
async fn follow_without_a_search_node_is_unready() {
    let database = Database::new().await;
    let search = ["--meilisearch-url", "http://127.0.0.1:1", "--meilisearch-api-key", "key"];
    let arguments = [&["follow"], &search[..]].concat();
    let mut follow = RunningIndexer::start(&mut indexer_command(database.0.url(), &arguments));
    assert_eq!(follow.client().get("/livez").await.status, 200);
    assert_eq!(follow.client().get("/readyz").await.status, 503);
    follow.terminate();
    assert_eq!(follow.wait(), Some(130));
}

#[tokio::test]
async fn ingest_and_follow_compute_percentiles() {
    let database = Database::new().await;
    let library = Library::new();
    for number in 1..=100 {
        let notes = (0..number).map(|index| (10 * index, 0, None)).collect();
        library.osu(&format!("alpha/{number} set/a.osu"), ChartSpec { notes, ..ChartSpec::default() });
    }
    database.ingest(&library);
    let of_densities = "SELECT count(*) FROM chart_percentiles WHERE measure = 'density_peak' AND keys = 4 AND computed_at_ms > 0";
    let are_computed = || database.0.psql(of_densities) == "1";
    assert!(are_computed());
    // Nothing changes, so they stay for a day.
    let computed_at = || database.0.psql("SELECT DISTINCT computed_at_ms FROM chart_percentiles");
    let first = computed_at();
    database.ingest(&library);
    assert_eq!(computed_at(), first);
    database.0.psql("UPDATE chart_percentiles SET computed_at_ms = 0");
    let mut command = indexer_command(database.0.url(), &["follow"]);
    let mut follow = RunningIndexer::start(command.env_remove("MEILISEARCH_URL"));
    within(TIMEOUT, async || are_computed().then_some(())).await;
    follow.terminate();
    assert_eq!(follow.wait(), Some(130));
}
