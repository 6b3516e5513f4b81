//! More misses than PostgreSQL can handle: they must not displace cached responses.

use std::net::Ipv4Addr;
use std::time::Instant;

use chart_index_tests::PrivatePostgres;

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
