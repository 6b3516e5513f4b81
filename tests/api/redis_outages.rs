//! Redis goes away, comes back, forgets and lies, under requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use chart_index_tests::{PrivatePostgres, PrivateRedis, PrivateRedisCluster};

use super::*;

/// The limit of the group that is counted here.
const LIMIT: usize = 20;
/// How long a request may take on a busy machine: the time-outs of Redis (50 ms) are a small part of it.
const PROMPT: Duration = Duration::from_secs(2);

/// Two replicas under load, and what the load saw.
struct Loaded {
    services: Vec<Service>,
    _database: TestDatabase,
    known: String,
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
    load: Vec<tokio::task::JoinHandle<()>>,
}

impl Loaded {
    async fn over(variable: (&str, &str)) -> Self {
        let database = TestDatabase::create().await;
        let library = Library::new();
        let known = library.osu("alpha/1 one/a.osu", ChartSpec::default()).note_hash();
        indexer(database.url(), &["migrate"]).succeeded();
        indexer(database.url(), &["ingest", &library.argument()]).succeeded();
        let limit = LIMIT.to_string();
        let variables = [variable, ("RATE_LIMIT_DETAIL", limit.as_str()), ("TRUSTED_PROXIES", "127.0.0.0/8")];
        let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
        let services: Vec<_> = (0..2).map(|_| Service::start_with(database.url(), &options)).collect();
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let load = services.iter().flat_map(|service| {
            (0..4).map(|number| {
                let (client, stop, asked) = (service.client(), Arc::clone(&stop), Arc::clone(&asked));
                tokio::spawn(ask_until(stop, asked, client, known.clone(), number))
            })
        });
        let load = load.collect();
        Self { services, _database: database, known, stop, asked, load }
    }

    /// Lets the load go on for a while.
    async fn go_on(&self) {
        let from = self.asked.load(Ordering::Relaxed);
        within(Duration::from_mins(1), async || {
            (self.asked.load(Ordering::Relaxed) >= from + 300).then_some(())
        })
        .await;
    }

    /// How many requests of one address pass the limit of the details, over both replicas.
    async fn admitted(&self, address: &str) -> usize {
        let path = format!("/api/chartsets/{}", "0".repeat(16));
        let mut admitted = 0;
        for service in &self.services {
            for _ in 0..2 * LIMIT {
                let answer = service.client().get_with(&path, &[("x-forwarded-for", address)]).await;
                assert!(matches!(answer.status.as_u16(), 404 | 429), "{}", answer.status);
                admitted += usize::from(answer.status == 404);
            }
        }
        admitted
    }

    /// Recovery by itself: replicas share one limit again.
    async fn shares_limits_again(&self) {
        let mut number = 0;
        let one_limit = async || {
            number += 1;
            let address = format!("10.{}.{}.{number}", std::process::id() % 256, self.known.len());
            (self.admitted(&address).await == LIMIT).then_some(())
        };
        within(Duration::from_secs(30), one_limit).await;
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.load {
            task.await.unwrap();
        }
    }
}

/// Asks for known and unknown charts and for lists. Nothing fails, and nothing takes long.
async fn ask_until(stop: Arc<AtomicBool>, asked: Arc<AtomicU64>, client: Client, known: String, seed: u64) {
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
        let began = Instant::now();
        let answer = client.get(&path).await;
        assert_eq!(answer.status, expected, "{path}");
        assert!(began.elapsed() < PROMPT, "{path} took {:?}", began.elapsed());
        if number.is_multiple_of(5) {
            assert_eq!(answer.json()["status"], "known");
        }
        asked.fetch_add(1, Ordering::Relaxed);
    }
}

/// Replaces the value of every key by something else.
fn corrupt(redis: &PrivateRedis, how: &[&str]) {
    for key in redis.cli(&["--scan"]).lines() {
        redis.cli(&["DEL", key]);
        let (command, values) = how.split_first().unwrap();
        redis.cli(&[&[command, key], values].concat());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_whatever_becomes_of_redis() {
    let mut redis = PrivateRedis::start(&["--maxmemory-policy", "noeviction"]);
    let loaded = Loaded::over(("REDIS_URL", &redis.url())).await;
    loaded.go_on().await;
    loaded.shares_limits_again().await;

    redis.cli(&["FLUSHALL"]);
    loaded.go_on().await;
    redis.cli(&["SCRIPT", "FLUSH"]);
    loaded.go_on().await;
    for how in [&["SET", "garbage"][..], &["SET", ""], &["LPUSH", "1", "2"], &["HSET", "a", "b"]] {
        corrupt(&redis, how);
        loaded.go_on().await;
    }
    loaded.shares_limits_again().await;

    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    loaded.go_on().await;
    // Neither more than each replica's limit nor a refusal below it.
    let both = 2 * LIMIT;
    assert_eq!(loaded.admitted("10.9.9.1").await, both, "full: each replica on its own");
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    loaded.shares_limits_again().await;

    redis.freeze();
    loaded.go_on().await;
    assert_eq!(loaded.admitted("10.9.9.2").await, both, "frozen: each replica on its own");
    redis.thaw();
    loaded.shares_limits_again().await;

    redis.kill();
    loaded.go_on().await;
    assert_eq!(loaded.admitted("10.9.9.3").await, both, "killed: each replica on its own");
    redis.restart();
    loaded.go_on().await;
    loaded.shares_limits_again().await;
    loaded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_when_a_node_of_a_cluster_does() {
    let mut cluster = PrivateRedisCluster::start();
    let loaded = Loaded::over(("REDIS_CLUSTER_URLS", &cluster.urls())).await;
    loaded.go_on().await;
    loaded.shares_limits_again().await;
    cluster.nodes[1].freeze();
    loaded.go_on().await;
    let admitted = loaded.admitted("10.9.9.4").await;
    assert!((LIMIT..=3 * LIMIT).contains(&admitted), "{admitted} were admitted");
    cluster.nodes[1].thaw();
    loaded.shares_limits_again().await;
    cluster.nodes[2].kill();
    loaded.go_on().await;
    cluster.nodes[2].restart();
    loaded.shares_limits_again().await;
    loaded.end().await;
}

/// What is cached stays fresh by the generation of the catalogue, which is read anyway: PostgreSQL is not asked for each
/// response. And a removal is in force as soon as ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgresql_is_not_asked_for_each_response_without_redis() {
    const LOOKUP: &str = "FROM charts AS chart\n";
    const CHARTS: u32 = 20;
    let (postgres, mut redis) = (PrivatePostgres::start_logging(), PrivateRedis::start(&[]));
    let library = Library::new();
    for number in 1..=CHARTS {
        library.osu(&format!("alpha/{number} set/a.osu"), ChartSpec::numbered(number));
    }
    let path = |number| format!("/api/charts/{}", ChartSpec::numbered(number).note_hash());
    indexer(postgres.url(), &["migrate"]).succeeded();
    indexer(postgres.url(), &["ingest", &library.argument()]).succeeded();
    let url = redis.url();
    let variables = [("REDIS_URL", url.as_str())];
    let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
    let service = Service::start_with(postgres.url(), &options);
    let client = service.client();
    let ask_all = async || {
        for number in 1..=CHARTS {
            assert_eq!(client.get(&path(number)).await.json()["status"], "known", "{number}");
        }
    };
    // Twice: see `assert_cached`.
    ask_all().await;
    ask_all().await;
    let asked = postgres.statements(LOOKUP);
    assert!((CHARTS as usize..2 * CHARTS as usize).contains(&asked), "{asked}");
    let goes_on = async |time| {
        let since = Instant::now();
        while since.elapsed() < time {
            ask_all().await;
        }
        assert_eq!(postgres.statements(LOOKUP), asked);
    };
    redis.kill();
    // Longer than anything is served without a check.
    goes_on(Duration::from_secs(4)).await;
    redis.restart();
    let listens = async || redis.cli(&["PUBSUB", "NUMSUB", "ci:1:invalidate"]).ends_with("\n1").then_some(());
    within(IN_FORCE, listens).await;
    goes_on(Duration::from_secs(1)).await;
    redis.kill();
    let hash = ChartSpec::numbered(1).note_hash();
    indexer(postgres.url(), &["remove", "chart", &hash]).succeeded();
    within(IN_FORCE, async || (client.get(&path(1)).await.json()["status"] == "unknown").then_some(())).await;
}
