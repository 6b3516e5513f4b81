//! The bounds of connections, over real sockets to the real program.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use super::*;

const REQUEST: &str = "GET /nowhere HTTP/1.1\r\nHost: test\r\n\r\n";

/// Connects and asks; whether there is an answer.
fn is_served(address: SocketAddr) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(REQUEST.as_bytes()).ok()?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).ok()?;
    (&answer == b"HTTP/1.1 404").then_some(stream)
}

/// Decisions, "Limits": "One peer (IPv6: /64) that is no trusted proxy has a bounded number of connections."
#[tokio::test]
async fn one_peer_has_a_bounded_number_of_connections() {
    let database = TestDatabase::create().await;
    let bound = [("MAX_CONNECTIONS_PER_PEER", "5")];
    let service = Service::start_with(
        database.url(),
        &ServiceOptions { variables: &bound, ..ServiceOptions::default() },
    );
    let held: Vec<_> = (0..20).filter_map(|_| is_served(service.address())).collect();
    assert_eq!(held.len(), 5);

    let trusted = [bound[0], ("TRUSTED_PROXIES", "127.0.0.1")];
    let service = Service::start_with(
        database.url(),
        &ServiceOptions { variables: &trusted, ..ServiceOptions::default() },
    );
    let held: Vec<_> = (0..20).filter_map(|_| is_served(service.address())).collect();
    assert_eq!(held.len(), 20, "a trusted proxy is not bounded");
}

/// The limit of open files: `current` and `maximum` at the start, as `prlimit` sets them.
fn limited_to(database: &TestDatabase, nofile: &str) -> Service {
    // Idle connections stay for as long as the test takes.
    let variables = [("TRUSTED_PROXIES", "127.0.0.1"), ("HEADER_READ_TIMEOUT_MS", "600000")];
    let launcher = ["prlimit", nofile];
    let options = ServiceOptions { variables: &variables, launcher: &launcher, ..ServiceOptions::default() };
    Service::start_with(database.url(), &options)
}

#[tokio::test]
async fn the_limit_of_open_files_is_raised_to_what_is_allowed() {
    let database = TestDatabase::create().await;
    let service = limited_to(&database, "--nofile=300:2000");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", service.process_id())).unwrap();
    let open_files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<_> = open_files.split_whitespace().filter(|word| word.parse::<u64>().is_ok()).collect();
    assert_eq!(numbers, ["2000", "2000"]);
}

/// More connections than there are files: the others wait, and the service goes on answering.
#[tokio::test]
async fn connections_leave_files_for_everything_else() {
    let database = TestDatabase::create().await;
    indexer(database.url(), &["migrate"]).succeeded();
    let service = limited_to(&database, "--nofile=400:400");
    let warning = service.log().into_iter().find(|line| line.contains("MAX_CONNECTIONS is above"));
    let warning: serde_json::Value = serde_json::from_str(&warning.expect("a warning")).unwrap();
    assert_eq!(warning["fields"]["max_connections"], 8192);
    assert_eq!(warning["fields"]["open_files"], 400);
    let possible = warning["fields"]["possible"].as_u64().unwrap();

    let mut idle: Vec<TcpStream> =
        (0..possible - 1).map(|_| is_served(service.address()).expect("an answer")).collect();
    let client = service.client();
    // The last connection: lists and readiness still have files for PostgreSQL.
    assert_eq!(client.get("/api/chartsets").await.status, 200);
    // Few enough for the backlog of any system.
    idle.extend((0..50).map(|_| TcpStream::connect(service.address()).unwrap()));
    for number in 1..20 {
        assert_eq!(client.get(&format!("/api/chartsets?page={number}")).await.status, 200);
        assert_eq!(service.private_client().get("/readyz").await.status, 200);
    }
    assert!(!service.log().iter().any(|line| line.contains("not accepted")), "no file was missing");
}

/// A client may shut down its side of the connection after its request.
#[tokio::test]
async fn a_half_closed_connection_is_answered() {
    let index = Index::over(Library::new()).await;
    let mut stream = TcpStream::connect(index.service.address()).unwrap();
    stream.write_all(b"GET /api/chartsets HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

/// RFC 9112, section 3.2.
#[tokio::test]
async fn a_request_without_host_is_a_problem() {
    let index = Index::over(Library::new()).await;
    for (head, status) in [
        ("GET /api/chartsets HTTP/1.1\r\n\r\n", "400"),
        ("GET /api/chartsets HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
        ("GET /api/chartsets HTTP/1.1\r\nHost: a b\r\n\r\n", "400"),
        ("GET /api/chartsets HTTP/1.0\r\n\r\n", "200"),
    ] {
        let mut stream = TcpStream::connect(index.service.address()).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(status), "{head:?}: {answer}");
        assert_eq!(
            answer.contains("content-type: application/problem+json\r\n"),
            status == "400",
            "{answer}"
        );
    }
}
