//! Meilisearch killed, and emptied.

use std::sync::atomic::{AtomicU64, Ordering};

use chart_index_tests::within;

use super::report::Drill;
use super::site::{self, REPLICAS, Site, TIMEOUT};

const SEARCH: [&str; 3] = ["meilisearch", "meilisearch-keys", "sync"];

#[test]
#[ignore = "takes minutes, and needs a Meilisearch server: make test-full"]
fn long_outages_of_meilisearch_fail_no_request() {
    site::run_with(&SEARCH, async |site| outages(&site, 200, 12_000).await);
}

/// Kills the node, then replaces it by an empty one. Each outage lasts for this many requests.
async fn outages(site: &Site, rate: u32, requests: u64) {
    wait_for_engine(site, "meilisearch").await;
    let mut drill = Drill::start(site.load(rate).start());
    drill.wait_for_requests(requests).await;

    drill.begin_phase("killed");
    site.project.kill("meilisearch");
    wait_for_engine(site, "postgres").await;
    drill.wait_for_requests(requests).await;
    drill.begin_phase("restarted");
    site.project.start("meilisearch").await;
    wait_for_engine(site, "meilisearch").await;
    drill.record_recovery();

    drill.begin_phase("emptied");
    site.project.delete("meilisearch");
    site.project.start("meilisearch").await;
    site.project.start("meilisearch-keys").await;
    wait_for_engine(site, "meilisearch").await;
    drill.record_recovery();
    drill.wait_for_requests(requests).await;
    let report = drill.finish("Outages of Meilisearch");
    assert_eq!(report.failed(""), 0, "PostgreSQL answers lists meanwhile");
    let verified = site.project.run_once("sync", &["verify", "--search"]);
    assert!(verified.contains(" compared, 0 differences"), "{verified}");
}

/// Waits until both replicas answer lists that are not cached with this engine.
async fn wait_for_engine(site: &Site, engine: &str) {
    // A page that a former call has read may be cached.
    static QUERIES: AtomicU64 = AtomicU64::new(0);
    for replica in REPLICAS {
        within(TIMEOUT, async || {
            let number = QUERIES.fetch_add(1, Ordering::Relaxed);
            (site.engine_of(replica, &format!("q={engine}+{number}")).await == engine).then_some(())
        })
        .await;
    }
}
