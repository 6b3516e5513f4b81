//! A database that went back to an earlier state, while Redis and replicas have cached responses of the lost
//! one.

use chart_index_tests::{PrivatePostgres, Service, TestDatabase, TestRedis, indexer, within};

use crate::backup::Dump;
use crate::catalogue::{Catalogue, chart};
use crate::responses::{Entries, Responses};
use crate::restore::record;
use crate::{TIMEOUT, wait_until_ready};

/// Sets of each kind.
const SETS: u32 = 6;

/// Changes of a catalogue: one set has another title, one is new, and a chart is removed.
struct Changes {
    changed: u32,
    new: u32,
    removed: u32,
}

const LOST: Changes = Changes { changed: 0, new: 100, removed: 2 };
/// The same number of changes as were lost, but different ones.
const AFTERWARDS: Changes = Changes { changed: 4, new: 200, removed: 3 };

impl Changes {
    /// Writes the changed folders and applies the changes to a database.
    fn apply(&self, catalogue: &Catalogue, database_url: &str) {
        let run = |arguments: &[&str]| drop(indexer(database_url, arguments).succeeded());
        for number in [self.changed, self.new] {
            let folder = format!("alpha/{} set", 1_000 + number);
            let mut changed = chart(number);
            changed.title = format!("changed {number}");
            catalogue.library.osu(&format!("{folder}/a.osu"), changed);
            // Other folders were not read, so that their responses have the same checkedAtMs.
            run(&["ingest", catalogue.library.root().join(folder).to_str().expect("a readable path")]);
        }
        run(&["remove", "chart", &chart(self.removed).note_hash()]);
    }
}

/// All charts and chartsets of the catalogue and of the changes.
fn entries(database_url: &str) -> Entries {
    let mut entries = Entries::choose(|query| TestDatabase::psql_on(database_url, query), usize::MAX >> 1);
    entries.hashes.extend([LOST.new, AFTERWARDS.new].map(|number| chart(number).note_hash()));
    entries
}

#[tokio::test]
async fn stale_redis_serves_nothing_that_is_lost() {
    let catalogue = Catalogue::with_sets(SETS).await;
    let dump = Dump::of(catalogue.database.url());
    LOST.apply(&catalogue, catalogue.database.url());
    let redis = TestRedis::create();
    let entries = entries(catalogue.database.url());
    let with_redis = &[("REDIS_URL", redis.url())][..];
    let lost = record(catalogue.database.url(), with_redis, &entries).await;

    let server = PrivatePostgres::start_without_durability();
    dump.restore(server.url(), 1);
    let expected = record(server.url(), &[], &entries).await;
    assert!(expected != lost);
    expected.assert_equal(&record(server.url(), with_redis, &entries).await);

    AFTERWARDS.apply(&catalogue, server.url());
    let expected = record(server.url(), &[], &entries).await;
    expected.assert_equal(&record(server.url(), with_redis, &entries).await);
}

#[tokio::test]
async fn running_replica_discards_what_a_restored_dump_lacks() {
    let catalogue = Catalogue::with_sets(SETS).await;
    let url = catalogue.database.url();
    let dump = Dump::of(url);
    LOST.apply(&catalogue, url);
    let replica = CachingReplica::start(url).await;

    catalogue.database.recreate();
    dump.restore(url, 1);
    replica.assert_equals_new_replica(url).await;
}

/// A restore to a point in time, and a failover to a standby that lacked the last transactions, keep the
/// identifier of the cluster and begin a timeline.
#[tokio::test]
async fn running_replica_discards_what_an_earlier_point_in_time_lacks() {
    let catalogue = Catalogue::with_sets(SETS).await;
    let server = PrivatePostgres::start();
    let dump = Dump::of(catalogue.database.url());
    dump.restore(server.url(), 1);
    let backup = server.stop_and_copy();
    server.restart();
    LOST.apply(&catalogue, server.url());
    let replica = CachingReplica::start(server.url()).await;

    server.stop_and_restore(&backup);
    server.restart_on_new_timeline();
    replica.assert_equals_new_replica(server.url()).await;
}

/// A replica with responses in memory and in Redis.
struct CachingReplica {
    replica: Service,
    entries: Entries,
    lost: Responses,
}

impl CachingReplica {
    async fn start(database_url: &str) -> Self {
        let redis = TestRedis::create();
        let variables = &[("REDIS_URL", redis.url())][..];
        let replica = Service::with_variables(database_url, variables);
        wait_until_ready(&replica).await;
        let entries = entries(database_url);
        let lost = Responses::record(&replica.client(), &entries).await;
        Self { replica, entries, lost }
    }

    /// Waits until the replica gives the responses of one that is started now.
    async fn assert_equals_new_replica(&self, database_url: &str) {
        let expected = record(database_url, &[], &self.entries).await;
        assert!(expected != self.lost);
        let client = self.replica.client();
        let is_equal = async || (Responses::read(&client, &self.entries).await == expected).then_some(());
        within(TIMEOUT, is_equal).await;
    }
}
