//! A CDN in front of a replica: what it keeps, and what `chart-indexer follow` purges. Varnish is the CDN.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test panics if its set-up fails, and prints what it measured"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chart_index_system_tests::PrivateVarnish;
use chart_index_tests::{
    ChartSpec, Client, Library, PrivatePostgres, Proxy, Response, RunningIndexer, Service, TestDatabase,
    TestRedis, fixed_address, indexer, indexer_command, within,
};
use tokio::task::JoinSet;

/// Maximum time until a removal is in force at the edge (docs/operations/cdn.md).
const REMOVED_WITHIN: Duration = Duration::from_secs(5);
/// Maximum time until something happens that has no promised time.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The time after which all purges of a change are done.
const PURGED_AFTER: Duration = Duration::from_secs(8);
/// The number of clients of a load.
const CLIENTS: u64 = 8;

/// A replica with a catalogue, Varnish in front of it, and `chart-indexer follow`, which purges through a
/// proxy.
struct Site {
    _database: Option<TestDatabase>,
    database_url: String,
    _redis: TestRedis,
    service: Service,
    varnish: PrivateVarnish,
    edge: Client,
    /// Between `follow` and Varnish.
    purges: Proxy,
    follow: RunningIndexer,
    hashes: Vec<String>,
}

impl Site {
    /// A site with charts, each in a chartset of its own, that an earlier `follow` has purged.
    async fn start(charts: u32) -> Self {
        let database = TestDatabase::create().await;
        let url = database.url().to_owned();
        Self::start_on(Some(database), url, "", charts).await
    }

    /// The same over this database, and a standby if this URL is not empty.
    async fn start_on(
        database: Option<TestDatabase>,
        database_url: String,
        standby_url: &str,
        charts: u32,
    ) -> Self {
        let (redis, library) = (TestRedis::create(), Library::new());
        let write = |number| library.osu(&format!("alpha/{number} set/a.osu"), ChartSpec::numbered(number));
        let hashes = (1..=charts).map(|number| write(number).note_hash()).collect();
        for arguments in [&["migrate"][..], &["ingest", &library.argument()]] {
            indexer(&database_url, arguments).succeeded();
        }
        let variables = [
            ("REDIS_URL", redis.url()),
            ("DATABASE_READ_URL", standby_url),
            ("CDN_MAX_AGE_SECONDS", "2592000"),
            ("RATE_LIMIT_LOOKUP", "1000000"),
            ("RATE_LIMIT_ROX", "1000000"),
            ("RATE_LIMIT_LIST", "1000000"),
        ];
        let service = Service::with_variables(&database_url, &variables);
        let varnish = PrivateVarnish::start(fixed_address(), service.address(), "\"127.0.0.1\"").await;
        let purges = Proxy::start(&format!("http://@{}/purge", varnish.address())).await;
        TestDatabase::psql_on(&database_url, PURGE_POSITION);
        let follow = start_follow(&database_url, &purges);
        let edge = Client::new(varnish.address());
        Self {
            _database: database,
            database_url,
            _redis: redis,
            service,
            varnish,
            edge,
            purges,
            follow,
            hashes,
        }
    }

    fn remove(&self, number: usize) {
        indexer(&self.database_url, &["remove", "chart", &self.hashes[number]]).succeeded();
    }

    /// Whether the edge has the chart in none of its responses.
    async fn is_removed(&self, number: usize) -> bool {
        let hash = &self.hashes[number];
        let lookup = self.edge.get(&format!("/api/charts/{hash}")).await.json();
        let rox = self.edge.get(&format!("/api/charts/{hash}/rox")).await.status;
        let list = self.edge.get(&format!("/api/chartsets?set={}", number + 1)).await.json();
        lookup["status"] == "unknown" && rox == 404 && list["total"] == 0
    }

    async fn reads_standby(&self) -> bool {
        let metrics = self.service.private_client().get("/metrics").await.body;
        let metrics = String::from_utf8(metrics).expect("UTF-8");
        metrics.lines().any(|line| line == "chart_index_postgresql_standby_in_use 1")
    }

    /// Requests the charts until the edge has the lookups of all of them.
    async fn fill(&self) {
        for hash in &self.hashes {
            assert_eq!(self.edge.get(&format!("/api/charts/{hash}")).await.status, 200);
            assert_eq!(self.edge.get(&format!("/api/charts/{hash}/rox")).await.status, 200);
        }
    }
}

/// Without a position `follow` would purge everything for six seconds.
const PURGE_POSITION: &str = "INSERT INTO cdn_purges (sequence, origin) \
                              SELECT last_sequence, change_feed_origin() FROM change_feed";

fn start_follow(database_url: &str, purges: &Proxy) -> RunningIndexer {
    let mut follow = indexer_command(database_url, &["follow"]);
    RunningIndexer::start(follow.env("PURGE_URL", purges.url().replace('@', "")))
}

/// Whether everything is purged that the present server has numbered.
fn purges_are_done(database_url: &str) -> bool {
    let is_done = "SELECT count(*) FROM cdn_purges, change_feed WHERE sequence = last_sequence \
                   AND cdn_purges.origin = change_feed_origin()";
    TestDatabase::psql_on(database_url, is_done) == "1"
}

/// Whether the edge had the response: `X-Varnish` then has the id of the earlier request as well.
fn is_hit(response: &Response) -> bool {
    response.header("x-varnish").contains(' ')
}

#[tokio::test]
async fn edge_keeps_what_is_current_and_hides_its_headers() {
    let site = Site::start(3).await;
    let paths = ["", "/rox", "/preview"].map(|suffix| format!("/api/charts/{}{suffix}", site.hashes[0]));
    for path in &paths {
        let responses = [site.edge.get(path).await, site.edge.get(path).await];
        assert_eq!(responses.each_ref().map(is_hit), [false, true], "{path}");
        for response in &responses {
            for name in ["surrogate-key", "cache-tag", "cdn-cache-control", "xkey"] {
                assert!(!response.headers.contains_key(name), "{path}: {name}");
            }
        }
    }
    // Only the tags of what has changed are purged: those of the second chart and of its chartset.
    site.fill().await;
    indexer(&site.database_url, &["remove", "chart", &site.hashes[1]]).succeeded();
    within(REMOVED_WITHIN, async || site.is_removed(1).await.then_some(())).await;
    within(TIMEOUT, async || purges_are_done(&site.database_url).then_some(())).await;
    for number in [0, 2] {
        for suffix in ["", "/rox"] {
            let path = format!("/api/charts/{}{suffix}", site.hashes[number]);
            assert!(is_hit(&site.edge.get(&path).await), "{path}");
        }
    }
    // What says that there is no such chart is purged as well.
    let [lookup, rox, preview] =
        ["", "/rox", "/preview"].map(|suffix| format!("/api/charts/{}{suffix}", site.hashes[1]));
    for path in [&lookup, &rox, &preview] {
        let responses = [site.edge.get(path).await, site.edge.get(path).await];
        assert!(is_hit(&responses[1]), "{path}");
    }
    indexer(&site.database_url, &["restore", "chart", &site.hashes[1]]).succeeded();
    let is_restored = async || {
        let is_known = site.edge.get(&lookup).await.json()["status"] == "known";
        let statuses = [site.edge.get(&rox).await.status, site.edge.get(&preview).await.status];
        (is_known && statuses == [200, 200]).then_some(())
    };
    within(PURGED_AFTER, is_restored).await;
}

#[tokio::test]
async fn purges_that_fail_are_repeated() {
    let mut site = Site::start(4).await;
    site.fill().await;
    site.purges.cut().await;
    for number in [0, 1] {
        site.remove(number);
    }
    // All purges have failed.
    tokio::time::sleep(PURGED_AFTER).await;
    let hash = &site.hashes[0];
    assert!(is_hit(&site.edge.get(&format!("/api/charts/{hash}/rox")).await), "nothing has purged it");
    site.purges.listen().await;
    for number in [0, 1] {
        within(TIMEOUT, async || site.is_removed(number).await.then_some(())).await;
    }
    // A `follow` that was killed continues.
    site.purges.cut().await;
    site.remove(2);
    site.follow.signal("KILL");
    site.follow.wait();
    site.purges.listen().await;
    site.follow = start_follow(&site.database_url, &site.purges);
    within(TIMEOUT, async || site.is_removed(2).await.then_some(())).await;
}

#[tokio::test]
async fn errors_of_varnish_are_problem_details() {
    let varnish = PrivateVarnish::start(fixed_address(), fixed_address(), "\"127.0.0.1\"").await;
    let response = Client::new(varnish.address()).get("/api/charts/0").await;
    assert_eq!((response.status.as_u16(), response.header("retry-after")), (503, "1"));
    assert_eq!(response.header("access-control-expose-headers"), "Retry-After");
    let problem = response.json();
    assert_eq!((&problem["type"], &problem["status"]), (&"/problems/unavailable".into(), &503.into()));
    for field in ["title", "detail"] {
        assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {problem}");
    }
}

/// A replica may read a standby for two seconds that does not replay a removal.
#[tokio::test]
async fn removals_are_in_force_at_the_edge_beside_a_paused_standby() {
    const REMOVALS: u32 = 4;
    let primary = PrivatePostgres::start();
    let standby = primary.start_standby();
    let site = Site::start_on(None, primary.url().to_owned(), standby.url(), REMOVALS).await;
    site.fill().await;
    for number in 0..REMOVALS as usize {
        within(TIMEOUT, async || site.reads_standby().await.then_some(())).await;
        TestDatabase::psql_on(standby.url(), "SELECT pg_wal_replay_pause()");
        site.remove(number);
        within(REMOVED_WITHIN, async || site.is_removed(number).await.then_some(())).await;
        TestDatabase::psql_on(standby.url(), "SELECT pg_wal_replay_resume()");
    }
}

#[tokio::test]
async fn removals_are_in_force_at_the_edge_under_load() {
    removals_under_load(60, 5, 20_000).await;
}

#[tokio::test]
#[ignore = "takes 22 minutes: make test-full"]
async fn long_removals_are_in_force_at_the_edge_under_load() {
    removals_under_load(100_000, 200, 1_000_000).await;
}

/// Removes charts, one after the other, while clients request charts as they are popular: the one with rank n
/// with a probability proportional to 1/n. At least 99 % of their requests are hits.
async fn removals_under_load(charts: u32, removals: usize, requests: u64) {
    let site = Site::start(charts).await;
    site.fill().await;
    let ended = Arc::new(AtomicBool::new(false));
    let hashes = Arc::new(site.hashes.clone());
    let mut clients = JoinSet::new();
    for seed in 0..CLIENTS {
        let (ended, hashes, client) =
            (Arc::clone(&ended), Arc::clone(&hashes), Client::new(site.varnish.address()));
        clients.spawn(async move {
            let mut random = fastrand::Rng::with_seed(seed);
            let count = f64::from(charts);
            let (mut sent, mut hits) = (0, 0);
            while sent < requests / CLIENTS || !ended.load(Ordering::Relaxed) {
                let rank = (count.powf(random.f64()) - 1.0).floor();
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
                let hash = &hashes[(rank as usize).min(hashes.len() - 1)];
                let response = client.get(&format!("/api/charts/{hash}")).await;
                assert_eq!(response.status, 200);
                sent += 1;
                hits += u64::from(is_hit(&response));
            }
            [sent, hits]
        });
    }
    let mut longest = Duration::ZERO;
    for number in 0..removals {
        assert!(!site.is_removed(number).await, "{number}");
        site.remove(number);
        let removed = Instant::now();
        within(REMOVED_WITHIN, async || site.is_removed(number).await.then_some(())).await;
        longest = longest.max(removed.elapsed());
        // Also after a replica could have responded with the earlier state.
        assert!(site.is_removed(number).await);
    }
    ended.store(true, Ordering::Relaxed);
    let counts = clients.join_all().await;
    let [sent, hits] = [0, 1].map(|index| counts.iter().map(|count| count[index]).sum::<u64>());
    println!("{sent} requests, {hits} hits, {removals} removals within {longest:.1?}");
    assert!(hits * 100 >= sent * 99, "at least 99 % are hits: {hits} of {sent}");
    for number in 0..removals {
        assert!(site.is_removed(number).await, "{number}");
    }
}
