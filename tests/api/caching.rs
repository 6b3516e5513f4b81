//! Finished answers in the memory of every replica and in Redis: what they cost, and how soon a change is in force.

use std::time::Instant;

use chart_index_tests::{PrivatePostgres, PrivateRedis, PrivateRedisCluster};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::*;

/// Replicas over one PostgreSQL, which counts statements, and one Redis.
struct Replicas {
    postgres: PrivatePostgres,
    services: Vec<Service>,
    chart: String,
}

/// Runs a command on a Redis and gives what it prints.
type Ask<'a> = &'a dyn Fn(&[&str]) -> String;

/// What the statement of a lookup has in it.
const LOOKUP: &str = "FROM charts AS chart\n";

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

/// Asks for all of these at once, some connections wide, and gives the statuses.
async fn ask_all(clients: &[Client], paths: Vec<String>) -> Vec<u16> {
    let next = std::sync::Arc::new(std::sync::Mutex::new(paths.into_iter().enumerate()));
    let askers = (0..64).map(|_| {
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
    for asker in askers.collect::<Vec<_>>() {
        statuses.extend(asker.await.unwrap());
    }
    statuses
}

fn clients(services: &[Service]) -> Vec<Client> {
    services.iter().map(Service::client).collect()
}

fn unknown(number: u64) -> String {
    format!("/api/charts/{}", blake3::hash(&number.to_le_bytes()).to_hex())
}

/// "1,000 concurrent requests for one cold hash on 3 replicas: at most 3 queries in PostgreSQL."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cold_hash_costs_one_query_for_each_replica_however_many_ask() {
    let redis = TestRedis::create();
    let replicas = Replicas::start(3, &[("REDIS_URL", redis.url())]);
    let before = replicas.postgres.statements(LOOKUP);
    let clients = clients(&replicas.services);
    let asked: Vec<_> = (0..1_000)
        .map(|number| {
            let (client, path) = (clients[number % 3].clone(), format!("/api/charts/{}", replicas.chart));
            tokio::spawn(async move { client.get(&path).await.json()["status"].clone() })
        })
        .collect();
    for answer in asked {
        assert_eq!(answer.await.unwrap(), "known");
    }
    let queries = replicas.postgres.statements(LOOKUP) - before;
    assert!((1..=3).contains(&queries), "{queries}");
}

/// "200,000 random unknown hashes: after the first pass under 1 % reach PostgreSQL again, and the hit rate of known ones
/// does not fall." A tenth of the hashes in a tenth of the memory, unless `UNKNOWN_HASHES` asks for more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_hashes_are_kept_and_push_no_known_ones_out() {
    let hashes: u64 = std::env::var("UNKNOWN_HASHES").map_or(20_000, |number| number.parse().unwrap());
    let cache_bytes = (hashes * (64 << 20) / 200_000).to_string();
    let redis = TestRedis::create();
    let variables = [("REDIS_URL", redis.url()), ("CACHE_BYTES", cache_bytes.as_str())];
    let replicas = Replicas::start(1, &variables);
    let clients = clients(&replicas.services);
    let known = || vec![format!("/api/charts/{}", replicas.chart); 100];
    ask_all(&clients, known()).await;
    let before = replicas.postgres.statements(LOOKUP);
    let asked = ask_all(&clients, (0..hashes).map(unknown).collect()).await;
    assert!(asked.iter().all(|status| *status == 200));
    let first = replicas.postgres.statements(LOOKUP) - before;
    assert!(first as u64 >= hashes, "each is looked up once: {first}");
    ask_all(&clients, (0..hashes).map(unknown).collect()).await;
    ask_all(&clients, known()).await;
    let again = replicas.postgres.statements(LOOKUP) - before - first;
    assert!((again as u64) < hashes / 100, "{again} of {hashes} reached PostgreSQL again");
}

/// "At most one Redis round trip per request, none for a refused one, exactly one (the limit) on a tier-1 hit."
#[tokio::test]
async fn a_request_asks_redis_once_and_a_refused_one_never() {
    let redis = PrivateRedis::start(&[]);
    let url = redis.url();
    let replicas = Replicas::start(2, &[("REDIS_URL", &url), ("RATE_LIMIT_LOOKUP", "50")]);
    let path = format!("/api/charts/{}", replicas.chart);
    let asked = || (redis.calls("evalsha"), redis.calls("get"));
    let get = async |replica: usize| replicas.services[replica].client().get(&path).await.status.as_u16();
    assert_eq!(get(0).await, 200);
    within(IN_FORCE, async || (redis.cli(&["DBSIZE"]) == "2").then_some(())).await;

    let (scripts, reads) = asked();
    for _ in 0..10 {
        assert_eq!(get(0).await, 200);
    }
    assert_eq!((asked().0 - scripts, asked().1 - reads), (10, 0), "one call for each, of the limit");

    let (scripts, reads) = asked();
    assert_eq!(get(1).await, 200);
    assert_eq!((asked().0 - scripts, asked().1 - reads), (1, 1), "the answer comes with the limit");

    while get(0).await == 200 {}
    let (scripts, reads) = asked();
    for _ in 0..10 {
        assert_eq!(get(0).await, 429);
    }
    assert_eq!(asked(), (scripts, reads), "refused from memory");
}

/// "Removal and update reach every replica's memory within 5 seconds and Redis at once." Without Redis they would as well,
/// so `ask` tells whether Redis is in use: by all three replicas, which listen and count there.
async fn changes_are_in_force_everywhere(variables: &[(&str, &str)], ask: Option<Ask<'_>>) {
    let replicas = Replicas::start(3, variables);
    let url = replicas.postgres.url();
    let clients = clients(&replicas.services);
    let lookup = format!("/api/charts/{}", replicas.chart);
    let paths = [lookup.clone(), format!("{lookup}/rox"), "/api/chartsets".to_owned()];
    let run = |arguments: &[&str]| {
        let mut command = indexer_command(url, arguments);
        IndexerRun::run(command.envs(variables.iter().copied())).succeeded()
    };
    // What a client sees of a chart that is there, and of one that is not.
    let sees = async |client: &Client| {
        let mut seen = Vec::new();
        for path in &paths {
            seen.push(client.get(path).await);
        }
        let listed = seen[2].json()["total"].as_u64().unwrap();
        (seen[0].json()["status"] == "known", seen[1].status == 200, listed == 1)
    };
    let everywhere = async |there: bool| {
        let since = Instant::now();
        for client in &clients {
            within(IN_FORCE, async || (sees(client).await == (there, there, there)).then_some(())).await;
        }
        assert!(since.elapsed() < IN_FORCE, "{:?}", since.elapsed());
    };
    everywhere(true).await;
    if let Some(ask) = ask {
        let listen = async || ask(&["PUBSUB", "NUMSUB", "ci:1:invalidate"]).ends_with("\n3").then_some(());
        within(IN_FORCE, listen).await;
        assert!(ask(&["INFO", "commandstats"]).contains("cmdstat_evalsha"));
    }
    run(&["remove", "chart", &replicas.chart]);
    everywhere(false).await;
    run(&["restore", "chart", &replicas.chart]);
    everywhere(true).await;
    let id = clients[0].get("/api/chartsets").await.json()["items"][0]["id"].as_str().unwrap().to_owned();
    run(&["remove", "chartset", &id]);
    everywhere(false).await;
    run(&["restore", "chartset", &id]);
    everywhere(true).await;
}

#[tokio::test]
async fn changes_are_in_force_on_every_replica_within_seconds() {
    let redis = PrivateRedis::start(&[]);
    let ask = |command: &[&str]| redis.cli(command);
    changes_are_in_force_everywhere(&[("REDIS_URL", &redis.url())], Some(&ask)).await;
}

#[tokio::test]
async fn changes_are_in_force_over_a_cluster() {
    let cluster = PrivateRedisCluster::start();
    changes_are_in_force_everywhere(&[("REDIS_CLUSTER_URLS", &cluster.urls())], None).await;
    let counted = cluster.nodes.iter().filter(|node| node.calls("evalsha") > 0).count();
    assert!(counted > 0, "the replicas counted in the cluster");
}

#[tokio::test]
async fn changes_are_in_force_over_a_redis_with_a_password() {
    let redis = PrivateRedis::start(&["--requirepass", "secret"]);
    let url = format!("redis://:secret@127.0.0.1:{}", redis.port);
    let ask = |command: &[&str]| redis.cli(&[&["-a", "secret", "--no-auth-warning"], command].concat());
    changes_are_in_force_everywhere(&[("REDIS_URL", &url)], Some(&ask)).await;
}

/// Every connection of both programs: the limits, ROX files, what is heard and what is announced.
#[tokio::test]
async fn changes_are_in_force_over_tls() {
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
    let ask = |command: &[&str]| redis.cli(&[&with_tls[..], command].concat());
    changes_are_in_force_everywhere(&[("REDIS_URL", &url), ("SSL_CERT_FILE", authority)], Some(&ask)).await;
}

/// Without a Redis nobody is told, and nothing is believed for longer than a change may take.
#[tokio::test]
async fn changes_are_in_force_without_redis() {
    changes_are_in_force_everywhere(&[], None).await;
}

/// What an ingest changes is announced as well: a hash that was unknown a moment ago is known.
#[tokio::test]
async fn what_is_ingested_is_known_at_once() {
    let index = Index::over(Library::new()).await;
    let spec = ChartSpec::default();
    let path = format!("/api/charts/{}", spec.note_hash());
    assert_eq!(index.get(&path).await.json()["status"], "unknown");
    assert_eq!(index.get(&format!("{path}/rox")).await.status, 404);
    index.library.osu("alpha/1 one/a.osu", spec);
    index.ingest();
    let known = async || (index.get(&path).await.json()["status"] == "known").then_some(());
    within(IN_FORCE, known).await;
    index.answers(&format!("{path}/rox"), 200).await;
}

/// A change that Redis could not be told of is an error that says what to do, and the change is made.
#[tokio::test]
async fn a_removal_that_cannot_be_announced_says_so() {
    let database = TestDatabase::create().await;
    let (library, chart) = library();
    indexer(database.url(), &["migrate"]).succeeded();
    indexer(database.url(), &["ingest", &library.argument()]).succeeded();
    let remove = |redis_url: &str| {
        let mut command = indexer_command(database.url(), &["remove", "chart", &chart]);
        IndexerRun::run(command.env("REDIS_URL", redis_url))
    };
    // Nothing listens on port 1.
    let run = remove("redis://127.0.0.1:1");
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("the cache in Redis could not be invalidated"), "{}", run.stderr);
    let redis = TestRedis::create();
    assert!(remove(redis.url()).succeeded().contains("was already removed"));
}
