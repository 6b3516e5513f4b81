//! An upgrade to another format of the search index, under load.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use chart_index_system_tests::PrivateHaproxy;
use chart_index_tests::{
    Client, IndexerRun, Library, PrivateMeilisearch, ReplicaAddresses, RunningIndexer, Service,
    ServiceOptions, TestRedis, indexer, within,
};
use tokio::task::JoinSet;

use crate::TIMEOUT;
use crate::catalogue::{Catalogue, chart};
use crate::versions::{Programs, Versions};

/// Sets of each kind.
const SETS: u32 = 2_000;
/// Clients that request lists, each one after the other.
const CLIENTS: usize = 4;
/// The most lists that a client requests: more than a test needs.
const MAX_LISTS: u32 = 200_000;
/// Minutes for 6,000 sets on two nodes, with a debug build.
const BUILD_TIMEOUT: Duration = Duration::from_mins(5);

/// Both versions follow an index of their own until all replicas are replaced.
#[tokio::test]
#[ignore = "builds another version, 15 minutes the first time, and needs a Meilisearch server: make test-full"]
async fn long_upgrade_to_another_index_format_leaves_lists_to_meilisearch() {
    let Versions { old, new } = Versions::this_and_a_later_one();
    let catalogue = Catalogue::with_sets(SETS).await;
    let redis = TestRedis::create();
    let arguments = ["--max-indexing-memory", "256MiB"];
    let nodes: [_; 2] = std::array::from_fn(|_| PrivateMeilisearch::start_with(&arguments));
    let nodes = nodes.each_ref().map(PrivateMeilisearch::url).join(",");
    let site = Site { url: catalogue.database.url(), redis: &redis, nodes: &nodes };

    let mut old_follow = RunningIndexer::start(&mut site.indexer(&old, &["follow"]));
    wait_until_ready(&old_follow).await;
    let addresses = [ReplicaAddresses::choose(), ReplicaAddresses::choose()];
    let mut replicas = addresses.map(|addresses| site.start_replica(old.server().as_deref(), addresses));
    let proxy = PrivateHaproxy::start(&addresses, "inter 500ms fall 1 rise 1");
    for (number, replica) in replicas.iter().enumerate() {
        within(TIMEOUT, async || (proxy.status(number) == "UP").then_some(())).await;
        let client = replica.client();
        let uses_meilisearch = async || {
            let list = client.get("/api/chartsets?perPage=1").await;
            (list.header("x-search-engine") == "meilisearch").then_some(())
        };
        within(TIMEOUT, uses_meilisearch).await;
    }

    let load = Lists::start(&Client::new(proxy.address()));
    let writer = Writer::start(site.url);
    IndexerRun::run(&mut site.indexer(&new, &["migrate"])).succeeded();
    let mut new_follow = RunningIndexer::start(&mut site.indexer(&new, &["follow"]));
    assert_eq!(new_follow.client().get("/readyz").await.status, 503, "it builds its index");
    wait_until_ready(&new_follow).await;
    for (number, replica) in replicas.iter_mut().enumerate() {
        replica.terminate();
        assert_eq!(replica.wait(), Some(0));
        *replica = site.start_replica(new.server().as_deref(), addresses[number]);
        within(TIMEOUT, async || (proxy.status(number) == "UP").then_some(())).await;
    }
    let ingests = writer.stop();
    let engines = load.stop().await;
    println!("{ingests} ingests; lists by engine: {engines:?}");
    assert!(ingests > 5 && proxy.log().contains("is UP"), "{}", proxy.log());
    let lists: u32 = engines.values().sum();
    assert!(lists > 1_000, "{engines:?}");
    assert!(engines.get("meilisearch").is_some_and(|count| count * 100 >= lists * 99), "{engines:?}");

    // The old index stays while its `follow` runs, even if it does not respond, and while nothing changes.
    new_follow.terminate();
    new_follow.wait();
    let deletes = |expected: usize| {
        let output = IndexerRun::run(&mut site.indexer(&new, &["sync"])).succeeded();
        assert_eq!(output.matches("deleted the index of format").count(), expected, "{output}");
    };
    deletes(0);
    old_follow.signal("STOP");
    catalogue.library.osu("alpha/9000 set/a.osu", chart(9_000));
    catalogue.ingest();
    catalogue.database.psql("UPDATE catalogue_changes SET changed_at_ms = changed_at_ms - 3600000");
    deletes(0);
    old_follow.signal("KILL");
    old_follow.wait();
    deletes(2);
    deletes(0);
    IndexerRun::run(&mut site.indexer(&new, &["verify", "--search"])).succeeded();
}

async fn wait_until_ready(follow: &RunningIndexer) {
    let is_ready = async || (follow.client().get("/readyz").await.status == 200).then_some(());
    within(BUILD_TIMEOUT, is_ready).await;
}

/// What the programs of both versions have in common.
struct Site<'a> {
    url: &'a str,
    redis: &'a TestRedis,
    nodes: &'a str,
}

impl Site<'_> {
    fn indexer(&self, version: &Programs, arguments: &[&str]) -> Command {
        let mut command = version.indexer(self.url, arguments);
        command.env("MEILISEARCH_URL", self.nodes).env_remove("MEILISEARCH_API_KEY");
        command
    }

    fn start_replica(&self, program: Option<&Path>, addresses: ReplicaAddresses) -> Service {
        let variables = [
            ("REDIS_URL", self.redis.url()),
            ("MEILISEARCH_URL", self.nodes),
            ("DRAIN_DELAY_MS", "2000"),
            ("TRUSTED_PROXIES", "127.0.0.1"),
        ];
        let options = ServiceOptions {
            variables: &variables,
            addresses: Some(addresses),
            program,
            ..ServiceOptions::default()
        };
        Service::start_with(self.url, &options)
    }
}

/// Clients that request lists, none of which is cached.
struct Lists {
    stop: Arc<AtomicBool>,
    clients: JoinSet<BTreeMap<String, u32>>,
}

impl Lists {
    fn start(client: &Client) -> Self {
        let (stop, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            let (client, stop, next) = (client.clone(), Arc::clone(&stop), Arc::clone(&next));
            clients.spawn(async move {
                let mut engines = BTreeMap::new();
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    assert!(number < MAX_LISTS, "the load is bounded");
                    let (seconds, thousandths) = (30 + number / 1_000, number % 1_000);
                    let path = format!("/api/chartsets?lengthMax={seconds}.{thousandths:03}");
                    let list = client.get(&path).await;
                    assert_eq!(list.status, 200, "{path}");
                    *engines.entry(list.header("x-search-engine").to_owned()).or_default() += 1;
                }
                engines
            });
        }
        Self { stop, clients }
    }

    /// The number of lists by engine.
    async fn stop(self) -> BTreeMap<String, u32> {
        self.stop.store(true, Ordering::Relaxed);
        let mut engines: BTreeMap<String, u32> = BTreeMap::new();
        for client in self.clients.join_all().await {
            for (engine, count) in client {
                *engines.entry(engine).or_default() += count;
            }
        }
        engines
    }
}

/// Adds a chartset about once a second.
struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u32>,
}

impl Writer {
    fn start(database_url: &str) -> Self {
        let (stop, url) = (Arc::new(AtomicBool::new(false)), database_url.to_owned());
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let (library, mut count) = (Library::new(), 0);
            while !stopped.load(Ordering::Relaxed) {
                count += 1;
                library.osu(&format!("alpha/{} added/a.osu", 10_000 + count), chart(100_000 + count));
                indexer(&url, &["ingest", &library.argument()]).succeeded();
                thread::park_timeout(Duration::from_secs(1));
            }
            count
        });
        Self { stop, thread }
    }

    /// The number of ingests.
    fn stop(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().expect("every ingest succeeds")
    }
}
