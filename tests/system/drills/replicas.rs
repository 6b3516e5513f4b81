//! Replicas that are replaced and killed one by one.

use std::time::Duration;

use super::report::Drill;
use super::site::{self, REPLICAS, Site};

/// The short form is `make up` with another image.
#[test]
#[ignore = "takes 12 minutes: make test-full"]
fn long_rollout_fails_no_request() {
    site::run(async |site| rollout(&site, 300, 200_000).await);
}

#[test]
#[ignore = "takes 14 minutes: make test-full"]
fn long_kills_of_replicas_fail_few_requests() {
    site::run(async |site| {
        kills(&site).await;
        disconnect(&site).await;
    });
}

/// Replaces each replica in turn until this many requests were sent.
async fn rollout(site: &Site, rate: u32, requests: u64) {
    let mut drill = Drill::start(site.load(rate).start());
    drill.wait_for_requests(u64::from(rate) * 3).await;
    while drill.started() < requests {
        for replica in REPLICAS {
            drill.begin_phase(format!("{replica} replaced"));
            assert_eq!(site.project.stop(replica), 0, "{}", site.project.log(replica));
            site.project.start(replica).await;
            site.wait_for_all_replicas().await;
            drill.record_recovery();
        }
    }
    let report = drill.finish("Rollout");
    assert_eq!(report.failed(""), 0, "each replica drains before it exits");
}

/// The time for which a killed replica is down.
const DOWN: Duration = Duration::from_secs(4);

/// Kills each replica in turn, and restarts it, twelve times. Then its process is killed, which the engine
/// restarts.
async fn kills(site: &Site) {
    let mut drill = Drill::start(site.load(300).start());
    drill.wait_for_requests(900).await;
    for _ in 0..12 {
        for replica in REPLICAS {
            drill.begin_phase(format!("{replica} killed"));
            site.project.kill(replica);
            tokio::time::sleep(DOWN).await;
            drill.begin_phase(format!("{replica} restarted"));
            site.project.start(replica).await;
            site.wait_for_all_replicas().await;
            drill.record_recovery();
            drill.begin_phase(format!("{replica} crashed"));
            site.project.crash(replica).await;
            site.project.wait_until_healthy(replica).await;
            site.wait_for_all_replicas().await;
            drill.record_recovery();
        }
    }
    let report = drill.finish("Kills");
    // HAProxy repeats a request without a response. A response that has begun cannot be repeated, and the
    // replica that is left may reject lists that it has not cached while the processors are busy.
    let (failed, requests) = (report.failed(""), report.requests());
    assert!(failed * 200 <= requests, "at least 99.5 % succeed: {failed} of {requests} failed");
    // A request that meets the address of a killed replica waits for `timeout connect`, until the checks find
    // that it is gone.
    let p99 = report.latency("killed", 990);
    assert!(p99 < Duration::from_millis(750), "HAProxy repeats it soon: {p99:?}");
}

/// Removes a replica from the network whose clients it trusts, which happens for a moment when the engine
/// restarts it: on another network it would count the requests of all clients as those of HAProxy.
async fn disconnect(site: &Site) {
    site.project.disconnect("replica-1", "edge");
    site.wait_for_replicas(REPLICAS.len() - 1).await;
    site.project.reconnect("replica-1", "edge", &["replica-1", "replica-1.edge"]);
    site.wait_for_all_replicas().await;
}
