//! Cached responses in memory and in Redis: reads of PostgreSQL and Redis, and the time until a change takes
//! effect.

use std::path::PathBuf;
use std::time::Instant;

use chart_index_tests::{PrivatePostgres, PrivateRedis, PrivateRedisCluster};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

use super::*;

fn library() -> (Library, String) {
    let library = Library::new();
    let chart = library.osu("alpha/1 one/a.osu", ChartSpec::default()).note_hash();
    (library, chart)
}

fn start_replica(database_url: &str, variables: &[(&str, &str)]) -> Service {
    Service::start_with(database_url, &ServiceOptions { variables, ..ServiceOptions::default() })
}

/// A rollback without a transaction would be one, and cost a statement.
#[tokio::test]
async fn reads_leave_no_warnings_in_the_log_of_postgresql() {
    let (postgres, (library, chart)) = (PrivatePostgres::start_logging(), library());
    indexer(postgres.url(), &["migrate"]).succeeded();
    indexer(postgres.url(), &["ingest", &library.argument()]).succeeded();
    let service = start_replica(postgres.url(), &[]);
    let polls = async |count: usize| {
        let end = postgres.statements("server_state AS server") + count;
        let polled = async || (postgres.statements("server_state AS server") >= end).then_some(());
        within(Duration::from_secs(30), polled).await;
    };
    polls(1).await;
    let before = postgres.warnings();
    let client = service.client();
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

/// A request takes one Redis round trip, a hit in memory one call (the limit), and a refused request none.
#[tokio::test]
async fn request_takes_one_redis_round_trip_and_a_refused_one_none() {
    let redis = PrivateRedis::start(&[]);
    let (database, (library, chart)) = (TestDatabase::migrated().await, library());
    indexer(database.url(), &["ingest", &library.argument()]).succeeded();
    let url = redis.url();
    let variables = [("REDIS_URL", url.as_str()), ("RATE_LIMIT_LOOKUP", "50")];
    let replicas = [(); 2].map(|()| start_replica(database.url(), &variables));
    let path = format!("/api/charts/{chart}");
    let calls = || (redis.calls("evalsha"), redis.calls("get"));
    let get = async |replica: usize| replicas[replica].client().get(&path).await.status.as_u16();
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

/// A Redis with TLS and a password, and the file of its authority.
struct SecuredRedis {
    server: PrivateRedis,
    authority: PathBuf,
    _files: TempDir,
}

impl SecuredRedis {
    fn start() -> Self {
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
        let [certificate, key] = [&certificate, &key].map(|path| path.to_str().unwrap());
        let files_of_server = ["--tls-cert-file", certificate, "--tls-key-file", key];
        let security = ["--tls-auth-clients", "no", "--requirepass", "secret"];
        let server = PrivateRedis::start(&[files_of_server, security].concat());
        Self { server, authority: authority_file, _files: files }
    }

    fn url(&self) -> String {
        format!("rediss://:secret@localhost:{}", self.server.port)
    }

    /// Whether it was sent a command.
    fn has_run(&self, command: &str) -> bool {
        let with_tls = ["--tls", "--insecure", "-a", "secret", "--no-auth-warning"];
        let statistics = self.server.cli(&[&with_tls[..], &["INFO", "commandstats"]].concat());
        statistics.contains(&format!("cmdstat_{command}:"))
    }
}

/// Changes take effect within 5 seconds, also without Redis and while it is down. All connections to Redis use
/// TLS and a password: those of requests, of ROX files and of batches.
#[tokio::test]
async fn changes_reach_all_replicas() {
    let (database, (library, chart)) = (TestDatabase::migrated().await, library());
    let (mut secured, cluster) = (SecuredRedis::start(), PrivateRedisCluster::start());
    let (url, urls) = (secured.url(), cluster.urls());
    let over_tls = [("REDIS_URL", &*url), ("SSL_CERT_FILE", secured.authority.to_str().unwrap())];
    let over_cluster = [("REDIS_CLUSTER_URLS", &*urls)];
    let settings: [&[(&str, &str)]; 5] = [&over_tls, &over_tls, &over_cluster, &over_cluster, &[]];
    let services = settings.map(|variables| start_replica(database.url(), variables));
    let clients = services.each_ref().map(Service::client);
    let lookup = format!("/api/charts/{chart}");
    let paths = [lookup.clone(), format!("{lookup}/rox"), "/api/chartsets".to_owned()];
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
    wait_until_visible(false).await;
    indexer(database.url(), &["ingest", &library.argument()]).succeeded();
    wait_until_visible(true).await;
    let id = database.psql("SELECT id FROM chartsets");
    for (kind, name) in [("chart", &chart), ("chartset", &id)] {
        indexer(database.url(), &["remove", kind, name]).succeeded();
        wait_until_visible(false).await;
        indexer(database.url(), &["restore", kind, name]).succeeded();
        wait_until_visible(true).await;
    }
    for command in ["evalsha", "get", "set"] {
        assert!(secured.has_run(command), "{command}");
    }
    assert!(cluster.nodes.iter().any(|node| node.calls("evalsha") > 0), "the replicas count in the cluster");
    secured.server.kill();
    // A command may be killed between its commit and the assignment of sequences.
    database.psql("UPDATE charts SET removed_at_ms = 1");
    let committed = Instant::now();
    for client in &clients {
        let is_unknown = async || (client.get(&lookup).await.json()["status"] == "unknown").then_some(());
        within(CHANGE_TIMEOUT, is_unknown).await;
    }
    assert!(committed.elapsed() < CHANGE_TIMEOUT, "{:?}", committed.elapsed());
}
