//! A streaming standby serves reads while it is current: paused, killed, frozen, restarted, promoted, and one
//! of two behind one name.

use std::time::Instant;

use chart_index_tests::{PrivatePostgres, Proxy};
use tokio::task::JoinSet;

use super::*;

/// Maximum time until a standby is used again, or replaces the primary.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Charts, each in a chartset of its own.
const CHARTS: u32 = 20;

/// A service over two servers.
struct Site {
    primary: PrivatePostgres,
    standby: PrivatePostgres,
    service: Service,
    hashes: Vec<String>,
    /// The number of the next unknown chart, of which no response is cached.
    unknown: u32,
}

impl Site {
    async fn start() -> Self {
        let primary = PrivatePostgres::start_logging();
        let standby = primary.start_standby();
        let url = standby.url().to_owned();
        Self::start_with(primary, standby, &url).await
    }

    /// A service that reads from what this URL leads to.
    async fn start_with(primary: PrivatePostgres, standby: PrivatePostgres, read_url: &str) -> Self {
        let library = Library::new();
        let write = |number| {
            let title = format!("Title {number}");
            let chart = ChartSpec { title, ..ChartSpec::numbered(number) };
            library.osu(&format!("alpha/{} set/a.osu", 1 + number), chart).note_hash()
        };
        let hashes = (0..CHARTS).map(write).collect();
        for arguments in [&["migrate"][..], &["ingest", &library.argument()]] {
            indexer(primary.url(), arguments).succeeded();
        }
        let variables = [("DATABASE_READ_URL", read_url), ("PUBLIC_URL", "https://charts.example")];
        let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
        let service = Service::start_with(primary.url(), &options);
        let site = Self { primary, standby, service, hashes, unknown: 0 };
        site.wait_for_use(true).await;
        site
    }

    async fn is_used(&self) -> bool {
        let in_use = self.service.private_client().metric("chart_index_postgresql_standby_in_use").await;
        in_use.expect("a gauge") > 0.0
    }

    async fn wait_for_use(&self, is_used: bool) {
        within(TIMEOUT, async || (self.is_used().await == is_used).then_some(())).await;
    }

    async fn lookup(&self, hash: &str) -> serde_json::Value {
        let response = self.service.client().get(&format!("/api/charts/{hash}")).await;
        assert_eq!(response.status, 200, "{hash}");
        response.json()["status"].clone()
    }

    /// Looks up a chart that is not cached.
    async fn look_up_unknown(&mut self) {
        self.unknown += 1;
        assert_eq!(self.lookup(&format!("{:064}", self.unknown)).await, "unknown");
    }

    /// Looks up charts that are not cached, one after the other. No lookup fails, or takes longer than a
    /// request may.
    async fn look_up_for(&mut self, duration: Duration) {
        let start = Instant::now();
        while start.elapsed() < duration {
            let asked = Instant::now();
            self.look_up_unknown().await;
            assert!(asked.elapsed() < CHANGE_TIMEOUT);
        }
    }

    /// Looks up charts that are not cached over many connections to the database.
    async fn look_up_at_once(&mut self) {
        let mut lookups = JoinSet::new();
        for _ in 0..12 {
            self.unknown += 1;
            let (client, path) = (self.service.client(), format!("/api/charts/{:064}", self.unknown));
            lookups.spawn(async move { client.get(&path).await.status });
        }
        assert!(lookups.join_all().await.iter().all(|status| *status == 200));
    }

    /// Removes a chart on the primary.
    fn remove(&self, hash: &str) {
        indexer(self.primary.url(), &["remove", "chart", hash]).succeeded();
    }

    /// The number of statements that both servers have run which read these tables, apart from polls.
    fn reads(&self) -> [usize; 2] {
        [&self.primary, &self.standby].map(|server| {
            let tables =
                ["FROM charts", "FROM chartsets", "FROM shown_chartsets", "FROM hash_filters", "is_lost"];
            tables.map(|table| server.statements(table)).iter().sum()
        })
    }
}

#[tokio::test]
async fn every_endpoint_reads_from_the_standby() {
    let site = Site::start().await;
    let client = site.service.client();
    let before = site.reads();
    let list = client.get("/api/chartsets?perPage=1&after=start&q=title").await.json();
    let (hash, id, next) =
        (&site.hashes[0], list["items"][0]["id"].as_str().unwrap(), list["nextAfter"].as_str());
    let filter = client.get("/api/charts/filter").await;
    let filter = filter.header("location").to_owned();
    let paths = [
        (200, format!("/api/charts/{hash}?include=variants,rating,patterns")),
        (200, format!("/api/charts/{hash}")),
        (200, format!("/api/variants/{hash}")),
        (200, format!("/api/charts/{hash}/rox")),
        (200, format!("/api/charts/{hash}/preview")),
        (200, filter),
        (200, "/api/chartsets?creator=mapper&sort=title&page=2".to_owned()),
        (200, format!("/api/chartsets?perPage=1&q=title&after={}", next.unwrap())),
        (200, "/api/chartsets?ratingMin=0&match=chart&query=title".to_owned()),
        (200, format!("/api/chartsets/{id}")),
        (302, format!("/go/chartset/{id}")),
        (200, "/api/changes?limit=5".to_owned()),
        (200, "/".to_owned()),
        (200, format!("/chartsets/{id}")),
        (200, format!("/charts/{hash}")),
        (200, "/feed.atom".to_owned()),
        (303, "/random".to_owned()),
        (200, "/ratings".to_owned()),
        (200, "/sitemap.xml".to_owned()),
    ];
    for (status, path) in paths {
        let response = client.get(&path).await;
        assert_eq!(response.status, status, "{path}: {}", String::from_utf8_lossy(&response.body));
    }
    let batch = client.look_up("", &serde_json::json!({ "hashes": site.hashes })).await;
    assert_eq!(batch.status, 200);
    let after = site.reads();
    assert_eq!(after[0], before[0], "on the primary");
    assert!(after[1] >= before[1] + 16, "{before:?} {after:?}");
}

/// A removal is in force within five seconds although the standby does not replay it. A page of the feed from a
/// server that is ahead is no reason for a 410.
#[tokio::test]
async fn paused_standby_serves_nothing_that_was_removed() {
    let site = Site::start().await;
    let client = site.service.client();
    let (cached, uncached) = site.hashes.split_at(2);
    for hash in cached {
        assert_eq!(site.lookup(hash).await, "known");
    }
    let end = client.get("/api/changes?limit=1000").await.json()["next"].as_u64().unwrap();
    TestDatabase::psql_on(site.standby.url(), "SELECT pg_wal_replay_pause()");
    site.remove(&cached[0]);
    let removed = Instant::now();
    assert!(site.is_used().await, "it is less than two seconds behind");
    let further = client.get(&format!("/api/changes?after={}", end + 1)).await;
    assert_eq!((further.status.as_u16(), site.is_used().await), (200, true));
    for hash in uncached {
        site.remove(hash);
        // May be that of the standby, and is then cached.
        site.lookup(hash).await;
    }
    let last = Instant::now();
    within(CHANGE_TIMEOUT, async || (site.lookup(&cached[0]).await == "unknown").then_some(())).await;
    assert!(removed.elapsed() < CHANGE_TIMEOUT || last.elapsed() < CHANGE_TIMEOUT);
    for hash in uncached {
        let left = CHANGE_TIMEOUT.saturating_sub(last.elapsed());
        within(left, async || (site.lookup(hash).await == "unknown").then_some(())).await;
    }
    assert!(!site.is_used().await);
    assert_eq!(site.lookup(&cached[1]).await, "known");
    TestDatabase::psql_on(site.standby.url(), "SELECT pg_wal_replay_resume()");
    site.wait_for_use(true).await;
    for hash in uncached {
        assert_eq!(site.lookup(hash).await, "unknown");
    }
}

/// A new hash filter is shown within five seconds although the standby does not replay it.
#[tokio::test]
async fn paused_standby_hides_no_hash_filter() {
    let site = Site::start().await;
    let location = async || {
        let response = site.service.client().get("/api/charts/filter").await;
        assert_eq!(response.status, 302);
        response.header("location").to_owned()
    };
    TestDatabase::psql_on(site.standby.url(), "SELECT pg_wal_replay_pause()");
    site.remove(&site.hashes[0]);
    indexer(site.primary.url(), &["filter"]).succeeded();
    let built = Instant::now();
    // May be that of the standby.
    location().await;
    let last = TestDatabase::psql_on(site.primary.url(), "SELECT max(sequence) FROM hash_filters");
    let last = format!("/api/charts/filter/{last}");
    let left = CHANGE_TIMEOUT.saturating_sub(built.elapsed());
    within(left, async || (location().await == last).then_some(())).await;
}

/// While one of them is unavailable the other one serves everything: the standby also when it was promoted. A
/// primary that returns is used again, and the promoted standby is not.
#[tokio::test]
async fn standby_and_primary_replace_each_other() {
    let mut site = Site::start().await;
    site.look_up_unknown().await;
    site.standby.kill();
    // Two polls of it.
    site.look_up_for(Duration::from_secs(1)).await;
    assert!(!site.is_used().await);
    site.standby.restart();
    site.wait_for_use(true).await;
    site.look_up_unknown().await;
    site.standby.freeze();
    site.look_up_for(Duration::from_secs(3)).await;
    site.standby.thaw();
    site.wait_for_use(true).await;
    site.primary.freeze();
    site.look_up_for(Duration::from_secs(6)).await;
    site.primary.thaw();
    site.wait_for_use(true).await;
    site.primary.kill();
    // The standby is current for two seconds of them.
    site.look_up_for(Duration::from_secs(3)).await;
    TestDatabase::psql_on(site.standby.url(), "SELECT pg_promote()");
    site.look_up_for(Duration::from_secs(2)).await;
    site.primary.restart();
    let removed = site.hashes[0].clone();
    site.remove(&removed);
    // The circuit breaker closes half a second after the primary responds.
    let is_removed = async || {
        let response = site.service.client().get(&format!("/api/charts/{removed}")).await;
        (response.status == 200 && response.json()["status"] == "unknown").then_some(())
    };
    within(TIMEOUT, is_removed).await;
    assert!(!site.is_used().await);
    site.look_up_for(Duration::from_secs(1)).await;
    assert!(!site.is_used().await, "its changes are not those of the primary");
}

/// Connections to one name reach two standbys in turn. Whichever lags or fails, changes are in force in time,
/// and the other one is read.
#[tokio::test]
async fn standbys_behind_one_name_replace_each_other() {
    let primary = PrivatePostgres::start_logging();
    let [standby, other] = [primary.start_standby(), primary.start_standby()];
    let name = Proxy::start_alternating(&[standby.url(), other.url()]).await;
    let mut site = Site::start_with(primary, standby, name.url()).await;
    for number in [0, 1] {
        let paused = if number == 0 { site.standby.url() } else { other.url() }.to_owned();
        TestDatabase::psql_on(&paused, "SELECT pg_wal_replay_pause()");
        let (cached, uncached) = (site.hashes[2 * number].clone(), site.hashes[2 * number + 1].clone());
        assert_eq!(site.lookup(&cached).await, "known");
        for hash in [&cached, &uncached] {
            site.remove(hash);
        }
        let removed = Instant::now();
        for hash in [&cached, &uncached] {
            let left = CHANGE_TIMEOUT.saturating_sub(removed.elapsed());
            within(left, async || (site.lookup(hash).await == "unknown").then_some(())).await;
        }
        // A standby may be read for two seconds after it was last current.
        tokio::time::sleep(Duration::from_secs(2)).await;
        site.wait_for_use(true).await;
        site.look_up_at_once().await;
        assert!(site.is_used().await, "the other one is current");
        TestDatabase::psql_on(&paused, "SELECT pg_wal_replay_resume()");
        for hash in [&cached, &uncached] {
            assert_eq!(site.lookup(hash).await, "unknown");
        }
    }
    for number in [0, 1] {
        let killed = if number == 0 { &site.standby } else { &other };
        killed.kill();
        site.look_up_at_once().await;
        site.look_up_for(Duration::from_secs(2)).await;
        site.wait_for_use(true).await;
        let killed = if number == 0 { &site.standby } else { &other };
        killed.restart();
    }
}
