//! Limits of connections.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::*;

const REQUEST: &str = "GET /nowhere HTTP/1.1\r\nHost: test\r\n\r\n";

/// Connects and sends a request; the connection if there is a response.
fn connect(address: SocketAddr) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(REQUEST.as_bytes()).ok()?;
    let mut response = [0; 12];
    stream.read_exact(&mut response).ok()?;
    (&response == b"HTTP/1.1 404").then_some(stream)
}

/// docs/api.md, "Rate limits": a peer that is not a trusted proxy has a limited number of connections.
#[tokio::test]
async fn connections_of_a_peer_are_limited() {
    let database = TestDatabase::create().await;
    let limit = [("MAX_CONNECTIONS_PER_PEER", "5")];
    let service = Service::start_with(
        database.url(),
        &ServiceOptions { variables: &limit, ..ServiceOptions::default() },
    );
    let held: Vec<_> = (0..20).filter_map(|_| connect(service.address())).collect();
    assert_eq!(held.len(), 5);

    let trusted = [limit[0], ("TRUSTED_PROXIES", "127.0.0.1")];
    let service = Service::start_with(
        database.url(),
        &ServiceOptions { variables: &trusted, ..ServiceOptions::default() },
    );
    let held: Vec<_> = (0..20).filter_map(|_| connect(service.address())).collect();
    assert_eq!(held.len(), 20, "a trusted proxy is not limited");
}

/// Starts a service with an open file limit, `--nofile=<soft>:<hard>` of `prlimit`.
fn start_with_file_limit(database: &TestDatabase, nofile: &str) -> Service {
    // Idle connections stay open during the test.
    let variables = [("TRUSTED_PROXIES", "127.0.0.1"), ("HEADER_READ_TIMEOUT_MS", "600000")];
    let launcher = ["prlimit", nofile];
    let options = ServiceOptions { variables: &variables, launcher: &launcher, ..ServiceOptions::default() };
    Service::start_with(database.url(), &options)
}

#[tokio::test]
async fn open_file_limit_is_raised_to_the_hard_limit() {
    let database = TestDatabase::create().await;
    let service = start_with_file_limit(&database, "--nofile=300:2000");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", service.process_id())).unwrap();
    let open_files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<_> = open_files.split_whitespace().filter(|word| word.parse::<u64>().is_ok()).collect();
    assert_eq!(numbers, ["2000", "2000"]);
}

/// With more connections than files some wait, and the service still responds.
#[tokio::test]
async fn connections_leave_files_for_everything_else() {
    let database = TestDatabase::migrated().await;
    let service = start_with_file_limit(&database, "--nofile=400:400");
    let warning = service.log().into_iter().find(|line| line.contains("MAX_CONNECTIONS exceeds"));
    let warning: serde_json::Value = serde_json::from_str(&warning.expect("a warning")).unwrap();
    assert_eq!(warning["fields"]["max_connections"], 8192);
    assert_eq!(warning["fields"]["open_files"], 400);
    let possible = warning["fields"]["possible"].as_u64().unwrap();

    let mut idle: Vec<TcpStream> =
        (0..possible - 1).map(|_| connect(service.address()).expect("a response")).collect();
    let client = service.client();
    // The last connection. Lists and readiness checks still have files for PostgreSQL.
    assert_eq!(client.get("/api/chartsets").await.status, 200);
    // Fits into the backlog of any system.
    idle.extend((0..50).map(|_| TcpStream::connect(service.address()).unwrap()));
    for number in 1..20 {
        assert_eq!(client.get(&format!("/api/chartsets?page={number}")).await.status, 200);
        assert_eq!(service.private_client().get("/readyz").await.status, 200);
    }
    assert!(!service.log().iter().any(|line| line.contains("failed to accept")), "no lack of files");
}
