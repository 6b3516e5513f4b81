//! More requests than the service can handle must not displace others: misses while PostgreSQL hangs, and
//! request bodies that never arrive.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use chart_index_tests::PrivatePostgres;
use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;

/// The maximum number of requests in flight.
const IN_FLIGHT: &str = "128";
/// More misses than that, each from another address.
const MISSES: u32 = 400;
/// Maximum time of a cached response on a busy machine.
const PROMPT: Duration = Duration::from_secs(2);

/// While PostgreSQL hangs, cached responses are served at full throughput: one for every miss.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn misses_leave_room_for_cached_responses() {
    let (postgres, redis) = (PrivatePostgres::start(), TestRedis::create());
    let library = Library::new();
    let chart = library.osu("alpha/1 one/a.osu", ChartSpec::default()).note_hash();
    indexer(postgres.url(), &["migrate"]).succeeded();
    indexer(postgres.url(), &["ingest", &library.argument()]).succeeded();
    let variables = [
        ("TRUSTED_PROXIES", "127.0.0.0/8"),
        ("REDIS_URL", redis.url()),
        ("MAX_REQUESTS_IN_FLIGHT", IN_FLIGHT),
    ];
    let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
    let service = Service::start_with(postgres.url(), &options);
    let client = service.client();
    let paths =
        [format!("/api/charts/{chart}"), format!("/api/charts/{chart}/rox"), "/api/chartsets".to_owned()];
    for path in &paths {
        assert_cached(&service, path, 200).await;
    }
    postgres.freeze();
    let (mut misses, mut slowest) = (Vec::new(), Duration::ZERO);
    for (number, path) in (1..=MISSES).zip(paths.iter().cycle()) {
        misses.push(tokio::spawn(miss(client.clone(), number)));
        let start = Instant::now();
        assert_eq!(client.get(path).await.status, 200, "{path} after {number} misses");
        slowest = slowest.max(start.elapsed());
    }
    assert!(slowest < PROMPT, "a cached response took {slowest:?}");
    for miss in misses {
        assert_eq!(miss.await.unwrap(), 503);
    }
    postgres.thaw();
    let not_cached = format!("/api/charts/{}", "2".repeat(64));
    let recovered = async || (client.get(&not_cached).await.status == 200).then_some(());
    within(Duration::from_secs(15), recovered).await;
}

/// Requests a hash that is not cached and returns the status. Every fourth request is for the same hash and
/// joins its fill.
async fn miss(client: Client, number: u32) -> u16 {
    let hash = if number.is_multiple_of(4) { 0 } else { number };
    let path = format!("/api/charts/{}", blake3::hash(&hash.to_le_bytes()).to_hex());
    let address = Ipv4Addr::from_bits((10 << 24) + number).to_string();
    let response = client.get_with(&path, &[("x-forwarded-for", &address)]).await;
    assert!(!response.header("retry-after").is_empty(), "{}", response.status);
    response.status.as_u16()
}

const BATCH: &str = "/api/charts/lookup";
/// The limit of the group `bulk`.
const BATCH_LIMIT: usize = 24;
/// The address that sends slowly.
const SLOW: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Maximum time for anything in these tests on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A batch lookup whose body is sent apart from its head. `Expect` makes visible when the service reads the
/// body (RFC 9110, section 10.1.1).
struct Upload(TcpStream);

impl Upload {
    /// Sends the head of a request with a body of this many bytes, and returns the status line of the first
    /// response: 100 if the service waits for the body.
    async fn start(service: SocketAddr, bytes: usize) -> (Self, String) {
        let stream = TcpStream::connect(service).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut upload = Self(stream);
        let head = format!(
            "POST {BATCH} HTTP/1.1\r\nHost: test\r\nX-Forwarded-For: {SLOW}\r\n\
             Content-Type: application/json\r\nContent-Length: {bytes}\r\nExpect: 100-continue\r\n\r\n"
        );
        upload.send(&head).await;
        let status = upload.read_until("\r\n").await;
        if status.starts_with("HTTP/1.1 100 ") {
            upload.read_until("\r\n").await;
        }
        (upload, status)
    }

    async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    async fn read_until(&mut self, end: &str) -> String {
        let mut bytes = Vec::new();
        while !bytes.ends_with(end.as_bytes()) {
            bytes.push(timeout(TIMEOUT, self.0.read_u8()).await.expect("a response").unwrap());
        }
        String::from_utf8(bytes).unwrap()
    }

    /// The rest of what the service sends until it closes the connection.
    async fn read_to_end(mut self) -> String {
        let mut text = String::new();
        timeout(TIMEOUT, self.0.read_to_string(&mut text)).await.expect("the service closes").unwrap();
        text
    }
}

fn batch() -> String {
    format!("{{\"hashes\":[\"{}\"]}}", "0".repeat(64))
}

async fn look_up(client: &Client, address: Ipv4Addr) -> Response {
    let address = address.to_string();
    let headers = [("content-type", "application/json"), ("x-forwarded-for", address.as_str())];
    client.send(Method::POST, BATCH, &headers, batch()).await
}

/// docs/api.md, "Batch lookup": one address with 100 bodies that never arrive takes nothing from others, and
/// each of them counts against its rate limit.
#[tokio::test]
async fn unfinished_bodies_leave_room_for_other_clients() {
    const UPLOADS: usize = 100;
    const LOOKUPS: u32 = 200;
    let (database, redis) = (TestDatabase::migrated().await, TestRedis::create());
    let limit = BATCH_LIMIT.to_string();
    let variables =
        [("TRUSTED_PROXIES", "127.0.0.0/8"), ("REDIS_URL", redis.url()), ("RATE_LIMIT_BULK", &limit)];
    let service =
        Service::start_with(database.url(), &ServiceOptions { variables: &variables, ..Default::default() });
    let (mut waiting, mut refused) = (Vec::new(), Vec::new());
    for _ in 0..UPLOADS {
        let (mut upload, status) = Upload::start(service.address(), batch().len()).await;
        if status.starts_with("HTTP/1.1 100 ") {
            upload.send("{\"hashes\":[").await;
            waiting.push(upload);
        } else {
            refused.push(status);
        }
    }
    let (client, mut succeeded) = (service.client(), 0);
    for number in 0..LOOKUPS {
        let response = look_up(&client, Ipv4Addr::from_bits((10 << 24) + number)).await;
        succeeded += u32::from(response.status == 200);
    }
    assert!(succeeded * 100 >= LOOKUPS * 99, "{succeeded} of {LOOKUPS} lookups of other clients");
    assert_eq!((waiting.len(), refused.len()), (BATCH_LIMIT, UPLOADS - BATCH_LIMIT));
    assert!(refused.iter().all(|status| status.starts_with("HTTP/1.1 429 ")), "{refused:?}");
    let response = look_up(&client, SLOW).await;
    assert_eq!((response.status.as_u16(), response.header("ratelimit-policy")), (429, "\"bulk\";q=24;w=60"));
    // docs/api.md, "Errors": such a body has a second.
    let response = waiting.remove(0).read_to_end().await;
    assert!(response.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{response}");
    for expected in [
        "\r\nconnection: close\r\n",
        "\r\ncache-control: no-store\r\n",
        "\r\ncontent-type: application/problem+json\r\n",
        "\"type\":\"/problems/request-timeout\"",
    ] {
        assert!(response.contains(expected), "{expected}: {response}");
    }
}
