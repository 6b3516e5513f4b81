//! Replicas behind HAProxy under open-loop load: rollouts without a failed request. `make test-full` runs the
//! long form.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test panics if its set-up fails, and prints what it measured"
)]

use std::time::Duration;

use chart_index_system_tests::{OpenLoop, PrivateHaproxy};
use chart_index_tests::{
    ChartSpec, Library, ReplicaAddresses, Service, ServiceOptions, TestDatabase, TestRedis, indexer,
    paths_of_all_kinds, within,
};

/// Maximum time until HAProxy notices a change, and until a replica starts or exits, beyond the configured
/// times.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The charts of a site, each in a chartset of its own.
const CHARTS: u32 = 40;

/// A rollout: replicas are terminated in turn and restarted, under load.
struct Rollout {
    /// Minimum number of SIGTERMs.
    terminations: u32,
    /// Minimum number of requests.
    requests: u64,
    /// Requests per second.
    rate: u32,
    /// The health checks of HAProxy.
    checks: &'static str,
    /// The time within which these checks find an unready replica.
    detection: Duration,
    /// `DRAIN_DELAY_MS`.
    drain_delay: &'static str,
}

/// Checks that find an unready replica within 3 s. Each replica is restarted once.
const FREQUENT_CHECKS: Rollout = Rollout {
    terminations: 2,
    requests: 600,
    rate: 60,
    checks: "inter 500ms fall 2 rise 1",
    detection: Duration::from_secs(3),
    drain_delay: "3500",
};

/// A single check every 10 s.
const LATE_CHECKS: Rollout = Rollout {
    terminations: 50,
    requests: 200_000,
    rate: 200,
    checks: "inter 10s fall 1 rise 1",
    detection: Duration::from_secs(12),
    drain_delay: "13000",
};

#[tokio::test]
async fn rollout_fails_no_request() {
    FREQUENT_CHECKS.run().await;
}

#[tokio::test]
#[ignore = "takes 20 minutes: make test-full"]
async fn long_rollout_with_late_checks_fails_no_request() {
    LATE_CHECKS.run().await;
}

impl Rollout {
    async fn run(self) {
        let database = TestDatabase::create().await;
        let mut site = Site::start(database.url(), &self).await;
        // At most an hour of load, which ends with the rollout.
        let requests = u64::from(self.rate) * 3_600;
        let load =
            OpenLoop { rate: self.rate, requests, ..OpenLoop::new(site.proxy.address(), site.paths()) };
        let load = load.start();
        let mut terminations = 0;
        while terminations < self.terminations || load.started() < self.requests {
            site.restart(usize::from(terminations % 2 == 1), self.detection).await;
            terminations += 1;
        }
        let outcome = load.stop();
        println!("{terminations} SIGTERMs, {outcome}");
        assert!(outcome.requests() >= self.requests, "{outcome}");
        assert_eq!(outcome.count_of(200), outcome.requests(), "{outcome}{}", site.proxy.log());
    }
}

/// Two replicas behind HAProxy, with a catalogue.
struct Site {
    database_url: String,
    redis: TestRedis,
    hashes: Vec<String>,
    chartsets: Vec<String>,
    drain_delay: &'static str,
    addresses: [ReplicaAddresses; 2],
    replicas: [Service; 2],
    proxy: PrivateHaproxy,
}

impl Site {
    async fn start(database_url: &str, rollout: &Rollout) -> Self {
        let (redis, library) = (TestRedis::create(), Library::new());
        let write = |number| library.osu(&format!("alpha/{number} set/a.osu"), ChartSpec::numbered(number));
        let hashes = (1..=CHARTS).map(|number| write(number).note_hash()).collect();
        for arguments in [&["migrate"][..], &["ingest", &library.argument()]] {
            indexer(database_url, arguments).succeeded();
        }
        let addresses = [ReplicaAddresses::choose(), ReplicaAddresses::choose()];
        let replicas =
            addresses.map(|addresses| start_replica(database_url, &redis, rollout.drain_delay, addresses));
        let list = replicas[0].client().get("/api/chartsets?perPage=60").await.json();
        let items = list["items"].as_array().expect("a list");
        let chartsets = items.iter().map(|item| item["id"].as_str().expect("an id").to_owned()).collect();
        for replica in &replicas {
            let ready = async || (replica.private_client().get("/readyz").await.status == 200).then_some(());
            within(TIMEOUT, ready).await;
        }
        let proxy = PrivateHaproxy::start(&addresses, rollout.checks);
        let (database_url, drain_delay) = (database_url.to_owned(), rollout.drain_delay);
        Self { database_url, redis, hashes, chartsets, drain_delay, addresses, replicas, proxy }
    }

    fn paths(&self) -> Vec<String> {
        paths_of_all_kinds(&self.hashes, &self.chartsets)
    }

    /// Terminates a replica, which HAProxy has to notice before it exits, and restarts it on its ports. Returns
    /// once HAProxy sends requests to it again.
    async fn restart(&mut self, number: usize, detection: Duration) {
        self.replicas[number].terminate();
        self.wait_for_status(number, "DOWN", detection + TIMEOUT).await;
        assert_eq!(self.replicas[number].wait(), Some(0));
        self.replicas[number] =
            start_replica(&self.database_url, &self.redis, self.drain_delay, self.addresses[number]);
        self.wait_for_status(number, "UP", detection + TIMEOUT).await;
    }

    async fn wait_for_status(&self, number: usize, status: &str, timeout: Duration) {
        within(timeout, async || (self.proxy.status(number) == status).then_some(())).await;
    }
}

fn start_replica(
    database_url: &str,
    redis: &TestRedis,
    drain_delay: &str,
    addresses: ReplicaAddresses,
) -> Service {
    let variables =
        [("REDIS_URL", redis.url()), ("DRAIN_DELAY_MS", drain_delay), ("TRUSTED_PROXIES", "127.0.0.1")];
    let options =
        ServiceOptions { variables: &variables, addresses: Some(addresses), ..ServiceOptions::default() };
    Service::start_with(database_url, &options)
}
