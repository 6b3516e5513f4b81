//! Purges of a CDN by `chart-indexer follow` (docs/operations/cdn.md), with an API that takes its time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chart_index_tests::http_server::{response, serve};
use chart_index_tests::{PrivatePostgres, RunningIndexer, within};

use super::*;

/// A timeout that no passing test reaches.
const TIMEOUT: Duration = Duration::from_mins(2);
/// The time that the API takes for a request.
const LATENCY: Duration = Duration::from_millis(150);
/// Within this time a removal is purged so that the CDN cannot have it again.
const REMOVED_WITHIN: Duration = Duration::from_secs(5);
/// The time after which no replica has the state before a change.
const CURRENT_AFTER: Duration = Duration::from_secs(3);

/// The API of a CDN, which records the tags of purges.
struct PurgeApi {
    base: String,
    purges: Arc<Mutex<Vec<Purge>>>,
    is_refusing: Arc<AtomicBool>,
}

/// A request that was received at this time.
#[derive(Debug, Clone)]
struct Purge {
    at: Instant,
    tag: String,
}

impl PurgeApi {
    #[expect(clippy::disallowed_methods, reason = "each connection has its own thread")]
    fn start() -> Self {
        let (purges, is_refusing) = (Arc::<Mutex<Vec<Purge>>>::default(), Arc::<AtomicBool>::default());
        let (recorded, refuses) = (Arc::clone(&purges), Arc::clone(&is_refusing));
        let base = serve(move |request| {
            let (at, tag) = (Instant::now(), request.path().trim_start_matches('/').to_owned());
            std::thread::sleep(LATENCY);
            if refuses.load(Ordering::Relaxed) {
                return response("503 Service Unavailable", "");
            }
            recorded.lock().unwrap().push(Purge { at, tag });
            response("200 OK", "")
        });
        Self { base, purges, is_refusing }
    }

    fn purges(&self) -> Vec<Purge> {
        self.purges.lock().unwrap().clone()
    }

    /// Forgets and returns the tags so far.
    fn take_tags(&self) -> Vec<String> {
        std::mem::take(&mut *self.purges.lock().unwrap()).into_iter().map(|purge| purge.tag).collect()
    }

    /// Starts `follow` with purges whose tag is in the URL.
    fn follow(&self, database_url: &str) -> RunningIndexer {
        let mut command = indexer_command(database_url, &["follow"]);
        command.env("PURGE_URL", format!("{}/{{tag}}", self.base)).env("PURGE_FORM", "url");
        RunningIndexer::start(command.env_remove("MEILISEARCH_URL"))
    }
}

/// Waits until all purges are done.
async fn wait_for_purges(database_url: &str) {
    let is_done = "SELECT count(*) FROM cdn_purges, change_feed WHERE sequence = last_sequence \
                   AND cdn_purges.origin = change_feed_origin()";
    within(TIMEOUT, async || (TestDatabase::psql_on(database_url, is_done) == "1").then_some(())).await;
}

/// While 50,000 changes are made within five seconds. In this form a request purges one tag, in others several.
#[tokio::test]
async fn removal_is_purged_during_an_ingest() {
    let (database, library, api) = (Database::new().await, Library::new(), PurgeApi::start());
    let hash = library.osu("alpha/1 set/a.osu", ChartSpec::numbered(1)).note_hash();
    database.ingest(&library);
    let _follow = api.follow(database.0.url());
    wait_for_purges(database.0.url()).await;
    let _ = api.take_tags();
    let mut changes = database.0.start_psql(
        "DO $$ BEGIN
             FOR batch IN 0..19 LOOP
                 INSERT INTO pending_changes (entity)
                     SELECT decode(lpad(to_hex(batch * 2500 + number), 64, '0'), 'hex')
                     FROM generate_series(1, 2500) AS number;
                 COMMIT;
                 PERFORM pg_sleep(0.25);
             END LOOP;
         END $$",
    );
    within(TIMEOUT, async || (api.purges().len() >= 4).then_some(())).await;
    let started = Instant::now();
    database.run(&["remove", "chart", &hash]);
    let removed = Instant::now();
    assert!(changes.try_wait().unwrap().is_none(), "changes are made meanwhile");
    // The first purge, and the first that no replica follows with the state before.
    for from in [started, removed + CURRENT_AFTER] {
        let is_purged =
            || api.purges().iter().any(|purge| purge.at >= from && (purge.tag == hash || purge.tag == "all"));
        within(TIMEOUT, async || is_purged().then_some(())).await;
        assert!(removed.elapsed() < REMOVED_WITHIN, "{:?}", removed.elapsed());
    }
    assert!(changes.wait().unwrap().success());
    wait_for_purges(database.0.url()).await;
}

/// At the first position of a database the CDN may be full, and a restart may have lost changes.
#[tokio::test]
async fn first_position_and_restarts_of_postgresql_purge_everything_once() {
    let (postgres, library, api) = (PrivatePostgres::start(), Library::new(), PurgeApi::start());
    let hash = library.osu("alpha/1 set/a.osu", ChartSpec::numbered(1)).note_hash();
    indexer(postgres.url(), &["migrate"]).succeeded();
    indexer(postgres.url(), &["ingest", &library.argument()]).succeeded();
    let mut follow = api.follow(postgres.url());
    wait_for_purges(postgres.url()).await;
    assert_eq!(api.take_tags(), ["all"; 3]);
    postgres.stop();
    postgres.restart();
    wait_for_purges(postgres.url()).await;
    assert_eq!(api.take_tags(), ["all"; 3]);
    // Neither the present server nor a start of `follow` purges everything again.
    follow.terminate();
    follow.wait();
    let _follow = api.follow(postgres.url());
    indexer(postgres.url(), &["remove", "chart", &hash]).succeeded();
    within(TIMEOUT, async || (!api.purges().is_empty()).then_some(())).await;
    wait_for_purges(postgres.url()).await;
    let tags = api.take_tags();
    let count = |tag: &str| tags.iter().filter(|other| *other == tag).count();
    assert_eq!([count("shared"), count(&hash), count("all"), tags.len()], [3, 3, 0, 9], "{tags:?}");
}

#[tokio::test]
async fn lag_grows_while_purges_fail() {
    let (database, api) = (Database::new().await, PurgeApi::start());
    api.is_refusing.store(true, Ordering::Relaxed);
    let follow = api.follow(database.0.url());
    let lag = async || follow.metric("chart_index_purge_lag_seconds").await;
    within(TIMEOUT, async || (lag().await > Some(5.0)).then_some(())).await;
    assert_eq!(database.0.psql("SELECT count(*) FROM cdn_purges"), "0");
    api.is_refusing.store(false, Ordering::Relaxed);
    wait_for_purges(database.0.url()).await;
    within(TIMEOUT, async || (lag().await == Some(0.0)).then_some(())).await;
    // Also while the feed cannot be read.
    database.0.psql("ALTER TABLE catalogue_changes RENAME TO hidden");
    within(TIMEOUT, async || (lag().await > Some(1.0)).then_some(())).await;
}
