//! The metrics and the readiness of `follow`.
#![expect(clippy::float_cmp, reason = "counts have exact representations")]

use std::time::Duration;

use chart_index_tests::{RunningIndexer, within};

use crate::support::Catalogue;

/// A timeout that no passing test reaches.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Waits until a metric has a value.
async fn wait_for(follower: &RunningIndexer, metric: &str, is_expected: impl Fn(f64) -> bool) {
    within(TIMEOUT, async || follower.metric(metric).await.is_some_and(&is_expected).then_some(())).await;
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn follow_reports_passes_documents_and_lag() {
    let catalogue = Catalogue::synced(10).await;
    let url = catalogue.node_urls();
    let node = format!("chart_index_search_node=\"{}\"", url.trim_start_matches("http://"));
    let mut follower = RunningIndexer::start(&mut catalogue.command(&["follow"]));
    let last_success = format!("chart_index_sync_last_success_seconds{{{node}}}");
    wait_for(&follower, &last_success, |time| time > 0.0).await;
    let passes = |outcome| {
        format!("chart_index_sync_pass_duration_seconds_count{{chart_index_outcome=\"{outcome}\",{node}}}")
    };
    assert!(follower.metric(&passes("success")).await >= Some(1.0));
    assert_eq!(follower.metric(&passes("error")).await, Some(0.0));
    let documents =
        |action| format!("chart_index_sync_documents_total{{{node},chart_index_sync_action=\"{action}\"}}");
    catalogue.write_sets(12, "changed");
    catalogue.ingest();
    catalogue.run(&["remove", "chartset", &catalogue.ids()[0]]);
    // A chartset that is removed before its pass is only deleted.
    wait_for(&follower, &documents("delete"), |count| count == 1.0).await;
    wait_for(&follower, &documents("put"), |count| count >= 11.0).await;
    wait_for(&follower, "chart_index_sync_pending_changes", |count| count == 0.0).await;
    assert_eq!(follower.metric("chart_index_sync_lag_seconds").await, Some(0.0));

    catalogue.nodes[0].kill();
    for number in 20..23 {
        catalogue.write_set(number, "new");
    }
    catalogue.ingest();
    wait_for(&follower, "chart_index_sync_pending_changes", |count| count == 3.0).await;
    wait_for(&follower, "chart_index_sync_lag_seconds", |age| age > 1.0).await;
    wait_for(&follower, &passes("error"), |count| count >= 1.0).await;
    let failed_at = follower.metric(&last_success).await;
    catalogue.nodes[0].restart();
    wait_for(&follower, "chart_index_sync_pending_changes", |count| count == 0.0).await;
    assert!(follower.metric(&last_success).await > failed_at);

    follower.terminate();
    assert_eq!(follower.wait(), Some(130));
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn follow_is_ready_once_every_node_has_an_index() {
    let catalogue = Catalogue::synced(3).await;
    catalogue.nodes[0].kill();
    let start = || RunningIndexer::start(&mut catalogue.command(&["follow"]));
    let status = async |follower: &RunningIndexer| follower.client().get("/readyz").await.status.as_u16();
    let becomes_ready = async |follower: &RunningIndexer| {
        within(TIMEOUT, async || (status(follower).await == 200).then_some(())).await;
    };
    let first = start();
    assert_eq!(status(&first).await, 503, "the node was not reached");
    catalogue.nodes[0].restart();
    becomes_ready(&first).await;
    // An orchestrator ends the first one when the second one is ready, which waits for its locks until then.
    let second = start();
    becomes_ready(&second).await;
    assert_eq!(status(&first).await, 200);
}
