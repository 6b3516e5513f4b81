//! Cached responses in memory and in Redis: reads of PostgreSQL and Redis, and the time until a change takes
//! effect.

use std::time::Instant;

use chart_index_tests::{PrivatePostgres, PrivateRedis, PrivateRedisCluster};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::*;

/// Replicas with one PostgreSQL, which logs statements.
struct Replicas {
    postgres: PrivatePostgres,
    services: Vec<Service>,
    chart: String,
}

/// A text that only the statement of a lookup contains.
const LOOKUP: &str = "FROM charts AS chart CROSS JOIN LATERAL";

fn library() -> (Library, String) {
    let library = Library::new();
    let chart = library.osu("alpha/1 one/a.osu", ChartSpec::default()).note_hash();
    (library, chart)
}

impl Replicas {
    fn start(count: usize, variables: &[(&str, &str)]) -> Self {
        let postgres = PrivatePostgres::start_logging();
        let (library, chart) = library();
        indexer(postgres.url(), &["migrate"]).succeeded();
        indexer(postgres.url(), &["ingest", &library.argument()]).succeeded();
        let options = ServiceOptions { variables, ..ServiceOptions::default() };
        let services = (0..count).map(|_| Service::start_with(postgres.url(), &options)).collect();
        Self { postgres, services, chart }
    }
}

/// Requests all paths over 64 connections and returns the statuses.
async fn get_all(clients: &[Client], paths: Vec<String>) -> Vec<u16> {
    let next = std::sync::Arc::new(std::sync::Mutex::new(paths.into_iter().enumerate()));
    let workers = (0..64).map(|_| {
        let (next, clients) = (std::sync::Arc::clone(&next), clients.to_vec());
        tokio::spawn(async move {
            let mut statuses = Vec::new();
            loop {
                let Some((number, path)) = next.lock().unwrap().next() else { return statuses };
                statuses.push(clients[number % clients.len()].get(&path).await.status.as_u16());
            }
        })
    });
    let mut statuses = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        statuses.extend(worker.await.unwrap());
    }
    statuses
}

/// Also a service that is the only one of its replica. `bulk` has no cache.
#[tokio::test]
async fn every_service_with_a_cache_follows_the_catalogue() {
    let database = TestDatabase::migrated().await;
    let services = ["lookup", "browse", "pages"].map(|service| {
        let variables = &[("SERVICES", service)];
        Service::start_with(database.url(), &ServiceOptions { variables, ..ServiceOptions::default() })
    });
    indexer(database.url(), &["ingest", &library().0.argument()]).succeeded();
    for service in services {
        let knows_changes = async || {
            let metrics = String::from_utf8(service.private_client().get("/metrics").await.body).unwrap();
            metrics.contains("\nchart_index_cache_recent_changes 2\n").then_some(())
        };
        within(CHANGE_TIMEOUT, knows_changes).await;
    }
}

/// A rollback without a transaction would be one, and cost a statement.
#[tokio::test]
async fn reads_leave_no_warnings_in_the_log_of_postgresql() {
    let replicas = Replicas::start(1, &[]);
    let Replicas { postgres, services, chart } = &replicas;
    let polls = async |count: usize| {
        let end = postgres.statements("server_state AS server") + count;
        let polled = async || (postgres.statements("server_state AS server") >= end).then_some(());
        within(Duration::from_secs(30), polled).await;
    };
    polls(1).await;
    let before = postgres.warnings();
    let client = services[0].client();
    let list = client.get("/api/chartsets").await.json();
    let id = list["items"][0]["id"].as_str().unwrap();
    for path in [
        format!("/api/charts/{chart}"),
        format!("/api/charts/{chart}/rox"),
        format!("/api/chartsets/{id}"),
        "/api/changes?after=0".to_owned(),
        "/".to_owned(),
    ] {
        assert_eq!(client.get(&path).await.status, 200, "{path}");
    }
    polls(3).await;
    assert_eq!(postgres.warnings(), before);
}

fn clients(services: &[Service]) -> Vec<Client> {
    services.iter().map(Service::client).collect()
}

fn unknown(number: u64) -> String {
    format!("/api/charts/{}", blake3::hash(&number.to_le_bytes()).to_hex())
}

/// 1,000 concurrent requests for one hash on 3 replicas cause at most 3 queries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_misses_of_a_hash_cause_one_query_per_replica() {
    let redis = TestRedis::create();
    let replicas = Replicas::start(3, &[("REDIS_URL", redis.url())]);
    let before = replicas.postgres.statements(LOOKUP);
    let clients = clients(&replicas.services);
    let requests: Vec<_> = (0..1_000)
        .map(|number| {
            let (client, path) = (clients[number % 3].clone(), format!("/api/charts/{}", replicas.chart));
            tokio::spawn(async move { client.get(&path).await.json()["status"].clone() })
        })
        .collect();
    for response in requests {
        assert_eq!(response.await.unwrap(), "known");
    }
    let queries = replicas.postgres.statements(LOOKUP) - before;
    assert!((1..=3).contains(&queries), "{queries}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_hashes_are_cached_without_evicting_known_ones() {
    assert_unknown_hashes_are_cached(5_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: make test-full"]
async fn long_unknown_hashes_are_cached_without_evicting_known_ones() {
    assert_unknown_hashes_are_cached(200_000).await;
}

/// Of random unknown hashes less than 1 % reach PostgreSQL a second time, and known ones stay cached, with
/// 64 MiB of memory for each 200,000.
async fn assert_unknown_hashes_are_cached(hashes: u64) {
    let cache_bytes = (hashes * (64 << 20) / 200_000).to_string();
    let redis = TestRedis::create();
    let variables = [("REDIS_URL", redis.url()), ("CACHE_BYTES", cache_bytes.as_str())];
    let replicas = Replicas::start(1, &variables);
    let clients = clients(&replicas.services);
    let known = || vec![format!("/api/charts/{}", replicas.chart); 100];
    get_all(&clients, known()).await;
    let before = replicas.postgres.statements(LOOKUP);
    let statuses = get_all(&clients, (0..hashes).map(unknown).collect()).await;
    assert!(statuses.iter().all(|status| *status == 200));
    let first = replicas.postgres.statements(LOOKUP) - before;
    assert!(first as u64 >= hashes, "each is read once: {first}");
    get_all(&clients, (0..hashes).map(unknown).collect()).await;
    get_all(&clients, known()).await;
    let again = replicas.postgres.statements(LOOKUP) - before - first;
    assert!((again as u64) < hashes / 100, "{again} of {hashes} reached PostgreSQL again");
}

/// A request takes one Redis round trip, a hit in memory one call (the limit), and a refused request none.
#[tokio::test]
async fn request_takes_one_redis_round_trip_and_a_refused_one_none() {
    let redis = PrivateRedis::start(&[]);
    let url = redis.url();
    let replicas = Replicas::start(2, &[("REDIS_URL", &url), ("RATE_LIMIT_LOOKUP", "50")]);
    let path = format!("/api/charts/{}", replicas.chart);
    let calls = || (redis.calls("evalsha"), redis.calls("get"));
    let get = async |replica: usize| replicas.services[replica].client().get(&path).await.status.as_u16();
    assert_eq!(get(0).await, 200);
    within(CHANGE_TIMEOUT, async || (redis.cli(&["DBSIZE"]) == "2").then_some(())).await;

    let (scripts, reads) = calls();
    for _ in 0..10 {
        assert_eq!(get(0).await, 200);
    }
    assert_eq!((calls().0 - scripts, calls().1 - reads), (10, 0), "one call each, for the limit");

    let (scripts, reads) = calls();
    assert_eq!(get(1).await, 200);
    assert_eq!((calls().0 - scripts, calls().1 - reads), (1, 1), "the response comes with the limit");

    while get(0).await == 200 {}
    let (scripts, reads) = calls();
    for _ in 0..10 {
        assert_eq!(get(0).await, 429);
    }
    assert_eq!(calls(), (scripts, reads), "refused from memory");
}

/// Asserts that removals and restores take effect on every replica within 5 seconds. They would without Redis
/// as well; the caller asserts that it is used.
async fn assert_changes_reach_all_replicas(variables: &[(&str, &str)]) {
    let replicas = Replicas::start(3, variables);
    let url = replicas.postgres.url();
    let clients = clients(&replicas.services);
    let lookup = format!("/api/charts/{}", replicas.chart);
    let paths = [lookup.clone(), format!("{lookup}/rox"), "/api/chartsets".to_owned()];
    let run = |arguments: &[&str]| indexer(url, arguments).succeeded();
    // Whether the lookup, the ROX file and the list have the chart.
    let visible = async |client: &Client| {
        let mut responses = Vec::new();
        for path in &paths {
            responses.push(client.get(path).await);
        }
        let listed = responses[2].json()["total"].as_u64().unwrap();
        (responses[0].json()["status"] == "known", responses[1].status == 200, listed == 1)
    };
    let wait_until_visible = async |expected: bool| {
        let start = Instant::now();
        for client in &clients {
            within(CHANGE_TIMEOUT, async || {
                (visible(client).await == (expected, expected, expected)).then_some(())
            })
            .await;
        }
        assert!(start.elapsed() < CHANGE_TIMEOUT, "{:?}", start.elapsed());
    };
    wait_until_visible(true).await;
    run(&["remove", "chart", &replicas.chart]);
    wait_until_visible(false).await;
    run(&["restore", "chart", &replicas.chart]);
    wait_until_visible(true).await;
    let id = clients[0].get("/api/chartsets").await.json()["items"][0]["id"].as_str().unwrap().to_owned();
    run(&["remove", "chartset", &id]);
    wait_until_visible(false).await;
    run(&["restore", "chartset", &id]);
    wait_until_visible(true).await;
}

#[tokio::test]
async fn changes_reach_all_replicas_over_redis() {
    let redis = PrivateRedis::start(&[]);
    assert_changes_reach_all_replicas(&[("REDIS_URL", &redis.url())]).await;
    assert!(redis.calls("evalsha") > 0);
}

#[tokio::test]
async fn changes_reach_all_replicas_over_a_cluster() {
    let cluster = PrivateRedisCluster::start();
    assert_changes_reach_all_replicas(&[("REDIS_CLUSTER_URLS", &cluster.urls())]).await;
    let counted = cluster.nodes.iter().filter(|node| node.calls("evalsha") > 0).count();
    assert!(counted > 0, "the replicas count in the cluster");
}

/// All connections use TLS and a password: those of requests, of ROX files and of batches.
#[tokio::test]
async fn changes_reach_all_replicas_over_tls() {
    let files = tempfile::tempdir().unwrap();
    let [authority_file, certificate, key] =
        ["authority.pem", "certificate.pem", "key.pem"].map(|name| files.path().join(name));
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let server_key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(["localhost".to_owned()]).unwrap();
    std::fs::write(&authority_file, authority.pem()).unwrap();
    std::fs::write(&certificate, server.signed_by(&server_key, &authority).unwrap().pem()).unwrap();
    std::fs::write(&key, server_key.serialize_pem()).unwrap();
    let [authority, certificate, key] =
        [&authority_file, &certificate, &key].map(|path| path.to_str().unwrap());
    let redis = PrivateRedis::start(&[
        "--tls-cert-file",
        certificate,
        "--tls-key-file",
        key,
        "--tls-auth-clients",
        "no",
        "--requirepass",
        "secret",
    ]);
    let url = format!("rediss://:secret@localhost:{}", redis.port);
    let with_tls = ["--tls", "--insecure", "-a", "secret", "--no-auth-warning"];
    assert_changes_reach_all_replicas(&[("REDIS_URL", &url), ("SSL_CERT_FILE", authority)]).await;
    let statistics = redis.cli(&[&with_tls[..], &["INFO", "commandstats"]].concat());
    for command in ["evalsha", "get", "set"] {
        assert!(statistics.contains(&format!("cmdstat_{command}:")), "{statistics}");
    }
}

#[tokio::test]
async fn changes_reach_all_replicas_without_redis() {
    assert_changes_reach_all_replicas(&[]).await;
}

/// A hash that is cached as unknown becomes known.
#[tokio::test]
async fn ingested_charts_become_known() {
    let index = Index::new(Library::new()).await;
    let spec = ChartSpec::default();
    let path = format!("/api/charts/{}", spec.note_hash());
    assert_eq!(index.get(&path).await.json()["status"], "unknown");
    assert_eq!(index.get(&format!("{path}/rox")).await.status, 404);
    index.library.osu("alpha/1 one/a.osu", spec);
    index.ingest();
    let known = async || (index.get(&path).await.json()["status"] == "known").then_some(());
    within(CHANGE_TIMEOUT, known).await;
    index.wait_for_status(&format!("{path}/rox"), 200).await;
}

/// A command may be killed between its commit and the assignment of sequences.
#[tokio::test]
async fn changes_without_a_sequence_take_effect() {
    let redis = TestRedis::create();
    let replicas = Replicas::start(2, &[("REDIS_URL", redis.url())]);
    let path = format!("/api/charts/{}", replicas.chart);
    let clients = clients(&replicas.services);
    for client in clients.iter().cycle().take(4) {
        assert_eq!(client.get(&path).await.json()["status"], "known");
    }
    let _ = TestDatabase::psql_on(replicas.postgres.url(), "UPDATE charts SET removed_at_ms = 1");
    let committed = Instant::now();
    for client in &clients {
        let is_unknown = async || (client.get(&path).await.json()["status"] == "unknown").then_some(());
        within(CHANGE_TIMEOUT, is_unknown).await;
    }
    assert!(committed.elapsed() < CHANGE_TIMEOUT, "{:?}", committed.elapsed());
}
