//! A primary of a Redis Cluster frozen and killed, until its replica has taken over.

use std::time::Duration;

use chart_index_system_tests::OpenLoop;
use chart_index_tests::{
    ChartSpec, Client, Library, PrivateRedisCluster, Service, TestDatabase, indexer, within,
};

use super::report::Drill;

/// Until Redis and the service have noticed: the node timeout, an election, and a margin.
const FAILOVER: Duration = Duration::from_secs(30);

/// Requests per second.
const RATE: u32 = 150;

/// Six nodes, of which three are primaries. One is frozen, then another is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes half a minute: make test-system"]
async fn other_primaries_decide_until_the_failover() {
    let mut cluster = PrivateRedisCluster::start_with(1, &["--cluster-node-timeout", "5000"]);
    let (database, library) = (TestDatabase::migrated().await, Library::new());
    let chart = library.osu("alpha/1 one/a.osu", ChartSpec::default()).note_hash();
    indexer(database.url(), &["ingest", &library.argument()]).succeeded();
    let urls = cluster.urls();
    let variables = [
        ("REDIS_CLUSTER_URLS", urls.as_str()),
        ("TRUSTED_PROXIES", "127.0.0.0/8"),
        ("RATE_LIMIT_LOOKUP", "100000"),
    ];
    let service = Service::with_variables(database.url(), &variables);
    let metrics = service.private_client();
    wait_for_primaries(&metrics).await;

    let load = OpenLoop {
        rate: RATE,
        requests: u64::from(RATE) * 300,
        ..OpenLoop::new(service.address(), vec![format!("/api/charts/{chart}")])
    };
    let mut drill = Drill::start(load.start());
    drill.wait_for_requests(u64::from(RATE) * 2).await;
    for (node, event) in [(0, "frozen"), (1, "killed")] {
        drill.begin_phase(event);
        let before = decisions(&metrics).await;
        if event == "frozen" {
            cluster.nodes[node].freeze();
        } else {
            cluster.nodes[node].kill();
        }
        // The load makes the replica notice.
        within(FAILOVER, async || (!are_primaries_connected(&metrics).await).then_some(())).await;
        wait_for_primaries(&metrics).await;
        drill.record_recovery();
        let after = decisions(&metrics).await;
        let [redis, local] = [after.0 - before.0, after.1 - before.1];
        let share = redis / (redis + local);
        println!(
            "{event}: Redis decided {:.1} % of {} checks until the failover",
            share * 100.0,
            redis + local
        );
        assert!(share > 0.6, "{event}: {share}");
        drill.begin_phase("recovered");
        drill.wait_for_requests(u64::from(RATE) * 2).await;
        assert!(decisions(&metrics).await.1 <= after.1, "{event}: Redis decides again");
    }
    let report = drill.finish("Failovers of a Redis Cluster");
    assert_eq!(report.failed(""), 0, "no response needs Redis");
}

async fn wait_for_primaries(metrics: &Client) {
    within(FAILOVER, async || are_primaries_connected(metrics).await.then_some(())).await;
}

/// Whether all connections lead to every primary.
async fn are_primaries_connected(metrics: &Client) -> bool {
    let samples = samples(metrics, "chart_index_redis_connected").await;
    !samples.is_empty() && samples.iter().all(|(_, value)| *value > 0.0)
}

/// The decisions of Redis, and those of the replica alone.
async fn decisions(metrics: &Client) -> (f64, f64) {
    let samples = samples(metrics, "chart_index_ratelimit_decisions_total").await;
    let by = |decider: &str| {
        let label = format!("chart_index_decider=\"{decider}\"");
        samples.iter().filter(|(labels, _)| labels.contains(&label)).map(|(_, value)| value).sum()
    };
    (by("redis"), by("local"))
}

/// The samples of a metric, with their labels.
async fn samples(metrics: &Client, name: &str) -> Vec<(String, f64)> {
    let text = String::from_utf8(metrics.get("/metrics").await.body).expect("UTF-8");
    let lines = text.lines().filter(|line| line.starts_with(name));
    let sample = |line: &str| line.rsplit_once(' ').map(|(labels, value)| (labels.to_owned(), value.parse()));
    lines.filter_map(sample).filter_map(|(labels, value)| Some((labels, value.ok()?))).collect()
}
