//! Outages, data loss and corrupt data of Redis under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use chart_index_tests::{PrivateRedis, PrivateRedisCluster};

use super::*;

/// The rate limit of the group `detail`.
const LIMIT: usize = 20;
/// Maximum time of a request on a busy machine, which includes Redis timeouts of 50 ms.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Two replicas under load. The load asserts every response.
struct LoadTest {
    services: Vec<Service>,
    _database: TestDatabase,
    known: String,
    stop: Arc<AtomicBool>,
    requests: Arc<AtomicU64>,
    load: Vec<tokio::task::JoinHandle<()>>,
}

impl LoadTest {
    async fn start(variable: (&str, &str)) -> Self {
        let database = TestDatabase::migrated().await;
        let library = Library::new();
        let known = library.osu("alpha/1 one/a.osu", ChartSpec::default()).note_hash();
        indexer(database.url(), &["ingest", &library.argument()]).succeeded();
        let limit = LIMIT.to_string();
        let variables = [variable, ("RATE_LIMIT_DETAIL", limit.as_str()), ("TRUSTED_PROXIES", "127.0.0.0/8")];
        let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
        let services: Vec<_> = (0..2).map(|_| Service::start_with(database.url(), &options)).collect();
        let (stop, requests) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let load = services.iter().flat_map(|service| {
            (0..4).map(|number| {
                let (client, stop, requests) = (service.client(), Arc::clone(&stop), Arc::clone(&requests));
                tokio::spawn(request_until(stop, requests, client, known.clone(), number))
            })
        });
        let load = load.collect();
        Self { services, _database: database, known, stop, requests, load }
    }

    /// Waits for 300 further requests.
    async fn run_load(&self) {
        let from = self.requests.load(Ordering::Relaxed);
        within(Duration::from_mins(1), async || {
            (self.requests.load(Ordering::Relaxed) >= from + 300).then_some(())
        })
        .await;
    }

    /// The number of detail requests of one address that both replicas admit.
    async fn admitted(&self, address: &str) -> usize {
        let path = format!("/api/chartsets/{}", "0".repeat(16));
        let mut admitted = 0;
        for service in &self.services {
            for _ in 0..2 * LIMIT {
                let response = service.client().get_with(&path, &[("x-forwarded-for", address)]).await;
                assert!(matches!(response.status.as_u16(), 404 | 429), "{}", response.status);
                admitted += usize::from(response.status == 404);
            }
        }
        admitted
    }

    /// Waits until the replicas share one limit again.
    async fn wait_for_shared_limit(&self) {
        let mut number = 0;
        let one_limit = async || {
            number += 1;
            let address = format!("10.{}.{}.{number}", std::process::id() % 256, self.known.len());
            (self.admitted(&address).await == LIMIT).then_some(())
        };
        within(Duration::from_secs(30), one_limit).await;
    }

    async fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.load {
            task.await.unwrap();
        }
    }
}

/// Requests known and unknown charts and lists. Asserts that none fails or takes long.
async fn request_until(
    stop: Arc<AtomicBool>,
    requests: Arc<AtomicU64>,
    client: Client,
    known: String,
    seed: u64,
) {
    let mut number = seed << 32;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let unknown = blake3::hash(&(number % 64).to_le_bytes()).to_hex();
        let (path, expected) = match number % 5 {
            0 => (format!("/api/charts/{known}"), 200),
            1 => (format!("/api/charts/{known}/rox"), 200),
            2 => (format!("/api/charts/{unknown}"), 200),
            3 => (format!("/api/charts/{unknown}/rox"), 404),
            _ => (format!("/api/chartsets?page={}", number % 7), 200),
        };
        let start = Instant::now();
        let response = client.get(&path).await;
        assert_eq!(response.status, expected, "{path}");
        assert!(start.elapsed() < REQUEST_TIMEOUT, "{path} took {:?}", start.elapsed());
        if number.is_multiple_of(5) {
            assert_eq!(response.json()["status"], "known");
        }
        requests.fetch_add(1, Ordering::Relaxed);
    }
}

/// Replaces the value of every key with a command.
fn corrupt(redis: &PrivateRedis, replacement: &[&str]) {
    for key in redis.cli(&["--scan"]).lines() {
        redis.cli(&["DEL", key]);
        let (command, values) = replacement.split_first().unwrap();
        redis.cli(&[&[command, key], values].concat());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_during_redis_outages() {
    let mut redis = PrivateRedis::start(&["--maxmemory-policy", "noeviction"]);
    let test = LoadTest::start(("REDIS_URL", &redis.url())).await;
    test.run_load().await;
    test.wait_for_shared_limit().await;

    redis.cli(&["FLUSHALL"]);
    test.run_load().await;
    redis.cli(&["SCRIPT", "FLUSH"]);
    test.run_load().await;
    for replacement in [&["SET", "garbage"][..], &["SET", ""], &["LPUSH", "1", "2"], &["HSET", "a", "b"]] {
        corrupt(&redis, replacement);
        test.run_load().await;
    }
    test.wait_for_shared_limit().await;

    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    test.run_load().await;
    // The limit of each replica, exactly.
    let both = 2 * LIMIT;
    assert_eq!(test.admitted("10.9.9.1").await, both, "full: each replica on its own");
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    test.wait_for_shared_limit().await;

    redis.freeze();
    test.run_load().await;
    assert_eq!(test.admitted("10.9.9.2").await, both, "frozen: each replica on its own");
    redis.thaw();
    test.wait_for_shared_limit().await;

    redis.kill();
    test.run_load().await;
    assert_eq!(test.admitted("10.9.9.3").await, both, "killed: each replica on its own");
    redis.restart();
    test.run_load().await;
    test.wait_for_shared_limit().await;
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_when_a_cluster_node_does() {
    let mut cluster = PrivateRedisCluster::start();
    let test = LoadTest::start(("REDIS_CLUSTER_URLS", &cluster.urls())).await;
    test.run_load().await;
    test.wait_for_shared_limit().await;
    cluster.nodes[1].freeze();
    test.run_load().await;
    let admitted = test.admitted("10.9.9.4").await;
    assert!((LIMIT..=3 * LIMIT).contains(&admitted), "{admitted} were admitted");
    cluster.nodes[1].thaw();
    test.wait_for_shared_limit().await;
    cluster.nodes[2].kill();
    test.run_load().await;
    cluster.nodes[2].restart();
    test.wait_for_shared_limit().await;
    test.finish().await;
}
