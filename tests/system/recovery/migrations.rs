//! Replicas serve while the schema is migrated: those of the old version throughout, those of the new one
//! afterwards.

use std::iter;
use std::path::Path;
use std::process::Child;

use chart_index_system_tests::{Load, OpenLoop, PrivateHaproxy};
use chart_index_tests::{
    IndexerRun, ReplicaAddresses, Service, ServiceOptions, TestDatabase, TestRedis, indexer, within,
};

use crate::catalogue::{Catalogue, chart};
use crate::versions::Versions;
use crate::{TIMEOUT, is_ready, wait_until_ready};

/// Requests per second.
const RATE: u32 = 60;
/// Sets of each kind.
const SETS: u32 = 8;
/// Paths of each kind that are not cached: more than a test requests.
const UNCACHED: u32 = 3_000;

/// Blocks the additive migrations, as an ingest does.
const BLOCK_CHARTS: &str = "LOCK TABLE charts IN ROW EXCLUSIVE MODE";
/// Blocks every migration.
const BLOCK_MIGRATIONS: &str = "LOCK TABLE _sqlx_migrations IN SHARE MODE";

/// Additive migrations, as a later version may have. The first fills a table for a while. Each excludes readers
/// from one table only, for 0.2 s: one that held several could deadlock with lists, which read several.
const ADDITIVE_MIGRATIONS: [&str; 5] = [
    "CREATE TABLE added AS SELECT hash, pg_sleep(0.05)::text FROM charts;
     ALTER TABLE charts ADD COLUMN added text;
     SELECT pg_sleep(0.2)",
    "ALTER TABLE chartsets ADD COLUMN added text NOT NULL DEFAULT '';
     SELECT pg_sleep(0.2)",
    "ALTER TABLE shown_chartsets ADD COLUMN added bigint;
     SELECT pg_sleep(0.2)",
    "ALTER TABLE pending_changes ADD COLUMN added uuid NOT NULL DEFAULT gen_random_uuid();
     SELECT pg_sleep(0.2)",
    "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
     SELECT max(version) + 1, 'added', true, '\\x00', 0 FROM _sqlx_migrations",
];

#[tokio::test]
async fn additive_migrations_fail_no_request() {
    let catalogue = Catalogue::with_sets(SETS).await;
    let database = &catalogue.database;
    let redis = TestRedis::create();
    let addresses = [ReplicaAddresses::choose(), ReplicaAddresses::choose()];
    let mut replicas = addresses.map(|at| start_replica(database.url(), &redis, at, None));
    for replica in &replicas {
        wait_until_ready(replica).await;
    }
    let proxy = PrivateHaproxy::start(&addresses, "inter 500ms fall 1 rise 1");
    let load = start_load(&proxy);

    let writer = LongTransaction::start(database, BLOCK_CHARTS).await;
    let blocked = migrate_additively(database);
    assert!(blocked.as_ref().is_err_and(|error| error.contains("lock timeout")), "{blocked:?}");
    writer.end(database);
    migrate_additively(database).expect("the migrations succeed");
    assert_eq!(
        database.psql("SELECT count(*) FROM charts WHERE added IS NULL"),
        database.psql("SELECT count(*) FROM added")
    );
    let migrated_at = load.started();
    within(TIMEOUT, async || (load.started() > migrated_at + u64::from(RATE)).then_some(())).await;
    assert!(!proxy.log().contains("is DOWN"), "{}", proxy.log());

    // A replica of this version, which the schema is newer than, becomes ready.
    replicas[0].terminate();
    assert_eq!(replicas[0].wait(), Some(0));
    replicas[0] = start_replica(database.url(), &redis, addresses[0], None);
    wait_until_ready(&replicas[0]).await;
    indexer(database.url(), &["migrate"]).succeeded();
    finish(load, &proxy);
}

#[tokio::test]
async fn replica_is_ready_once_its_schema_is_there() {
    let catalogue = Catalogue::written(SETS).await;
    let database = &catalogue.database;
    let replica = Service::start(database.url());
    for _ in 0..3 {
        assert_eq!(replica.private_client().get("/readyz").await.status, 503);
        assert_eq!(replica.private_client().get("/livez").await.status, 200);
    }
    indexer(database.url(), &["migrate"]).succeeded();
    wait_until_ready(&replica).await;
    catalogue.ingest();
    let known = format!("/api/charts/{}", chart(1).note_hash());
    assert_eq!(replica.client().get(&known).await.json()["status"], "known");
}

#[tokio::test]
async fn replica_stays_ready_without_its_schema_version() {
    let catalogue = Catalogue::with_sets(SETS).await;
    let database = &catalogue.database;
    let old = Service::start(database.url());
    wait_until_ready(&old).await;
    // As if the newest migration were missing, but the schema is that of this version.
    database.psql("UPDATE _sqlx_migrations SET success = false");
    let new = Service::start(database.url());
    let known = format!("/api/charts/{}", chart(1).note_hash());
    for _ in 0..3 {
        assert!(!is_ready(&new).await);
        assert!(is_ready(&old).await, "it has seen its schema");
        assert_eq!(old.client().get(&known).await.json()["status"], "known");
    }
    database.psql("UPDATE _sqlx_migrations SET success = true");
    wait_until_ready(&new).await;
    assert!(is_ready(&old).await);
    assert_eq!(new.client().get(&known).await.json()["status"], "known");
}

#[tokio::test]
#[ignore = "builds another version, 15 minutes the first time: make test-full"]
async fn long_old_version_serves_during_the_migration() {
    let Versions { old, new } = Versions::build();
    let catalogue = Catalogue::written(SETS).await;
    let (database, redis) = (&catalogue.database, TestRedis::create());
    let library = catalogue.library.argument();
    for arguments in [&["migrate"][..], &["ingest", &library]] {
        IndexerRun::run(&mut old.indexer(database.url(), arguments)).succeeded();
    }
    let addresses: [_; 4] = std::array::from_fn(|_| ReplicaAddresses::choose());
    let programs = [old.server(), old.server(), new.server(), new.server()];
    let replicas: Vec<_> = iter::zip(addresses, &programs)
        .map(|(addresses, program)| start_replica(database.url(), &redis, addresses, program.as_deref()))
        .collect();
    let proxy = PrivateHaproxy::start(&addresses, "inter 500ms fall 1 rise 1");
    for number in 0..4 {
        let expected = if number < 2 { "UP" } else { "DOWN" };
        within(TIMEOUT, async || (proxy.status(number) == expected).then_some(())).await;
    }
    let load = start_load(&proxy);

    let writer = LongTransaction::start(database, BLOCK_MIGRATIONS).await;
    let migrate = || IndexerRun::run(&mut new.indexer(database.url(), &["migrate"]));
    let blocked = migrate();
    assert_eq!(blocked.code, Some(1), "{}", blocked.stdout);
    assert!(blocked.stderr.contains("lock timeout"), "{}", blocked.stderr);
    assert!(!is_ready(&replicas[2]).await && !is_ready(&replicas[3]).await);
    writer.end(database);
    migrate().succeeded();
    for number in 0..4 {
        within(TIMEOUT, async || (proxy.status(number) == "UP").then_some(())).await;
    }
    // The old indexer still works, and all replicas serve what it stores.
    let added = catalogue.library.osu("alpha/9000 set/a.osu", chart(9_000)).note_hash();
    IndexerRun::run(&mut old.indexer(database.url(), &["ingest", &library])).succeeded();
    for replica in &replicas {
        let path = format!("/api/charts/{added}");
        let is_known = async || (replica.client().get(&path).await.json()["status"] == "known").then_some(());
        within(TIMEOUT, is_known).await;
    }
    let migrated_at = load.started();
    within(TIMEOUT, async || (load.started() > migrated_at + 5 * u64::from(RATE)).then_some(())).await;
    let log = proxy.log();
    assert!(!log.contains("replicas/0 is DOWN") && !log.contains("replicas/1 is DOWN"), "{log}");
    finish(load, &proxy);
}

/// Runs [`ADDITIVE_MIGRATIONS`], each in a transaction. The standard error if one of them fails.
fn migrate_additively(database: &TestDatabase) -> Result<(), String> {
    let lock_timeout = iter::once("SET lock_timeout = '1s'");
    database.try_psql(&lock_timeout.chain(ADDITIVE_MIGRATIONS).collect::<Vec<_>>())
}

fn start_replica(
    database_url: &str,
    redis: &TestRedis,
    addresses: ReplicaAddresses,
    program: Option<&Path>,
) -> Service {
    let variables =
        [("REDIS_URL", redis.url()), ("DRAIN_DELAY_MS", "2000"), ("TRUSTED_PROXIES", "127.0.0.1")];
    let options = ServiceOptions {
        variables: &variables,
        addresses: Some(addresses),
        program,
        ..ServiceOptions::default()
    };
    Service::start_with(database_url, &options)
}

/// Starts requests for cached and for uncached responses, at most ten minutes of them.
fn start_load(proxy: &PrivateHaproxy) -> Load {
    let paths = (0..UNCACHED).flat_map(|number| {
        let hash = chart(number % SETS).note_hash();
        [
            format!("/api/charts/{number:064x}"),
            format!("/api/charts/{hash}"),
            format!("/api/chartsets?lengthMax={}.{:03}", 30 + number / 1_000, number % 1_000),
            format!("/api/charts/{hash}/rox"),
        ]
    });
    let load = OpenLoop {
        rate: RATE,
        requests: u64::from(RATE) * 600,
        ..OpenLoop::new(proxy.address(), paths.collect())
    };
    load.start()
}

/// Ends the load. Every request has succeeded.
fn finish(load: Load, proxy: &PrivateHaproxy) {
    let outcome = load.stop();
    println!("{outcome}");
    assert!(outcome.requests() > u64::from(5 * RATE), "{outcome}");
    assert_eq!(outcome.count_of(200), outcome.requests(), "{outcome}{}", proxy.log());
}

/// A transaction that holds a lock and stays open, as an ingest of a large chartset does.
struct LongTransaction(Child);

impl LongTransaction {
    async fn start(database: &TestDatabase, lock: &str) -> Self {
        let child = database.start_psql(&format!("BEGIN; {lock}; SELECT pg_sleep(600)"));
        let holds = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
        within(TIMEOUT, async || (database.psql(holds) == "1").then_some(())).await;
        Self(child)
    }

    fn end(mut self, database: &TestDatabase) {
        database.psql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event = 'PgSleep'",
        );
        self.0.wait().expect("psql ends");
    }
}
