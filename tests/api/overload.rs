//! More misses than PostgreSQL answers: they must not use up what cached responses need.

use std::net::Ipv4Addr;
use std::time::Instant;

use chart_index_tests::PrivatePostgres;

use super::*;

/// The requests that the service accepts at once.
const IN_FLIGHT: &str = "128";
/// More misses than that, each from an address of its own.
const MISSES: u32 = 400;
/// How long a cached response may take, on a machine that is busy with all of this.
const PROMPT: Duration = Duration::from_secs(2);

/// "While PostgreSQL is unavailable, cached responses keep full throughput": one is given for every miss that comes in.
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
        let asked = Instant::now();
        assert_eq!(client.get(path).await.status, 200, "{path} after {number} misses");
        slowest = slowest.max(asked.elapsed());
    }
    assert!(slowest < PROMPT, "a cached response took {slowest:?}");
    for miss in misses {
        assert_eq!(miss.await.unwrap(), 503);
    }
    postgres.thaw();
    let never_asked = format!("/api/charts/{}", "2".repeat(64));
    let recovered = async || (client.get(&never_asked).await.status == 200).then_some(());
    within(Duration::from_secs(15), recovered).await;
}

/// Asks for what is not cached, and gives the status. One in four asks for the same hash as others, and waits for their
/// fill.
async fn miss(client: Client, number: u32) -> u16 {
    let hash = if number.is_multiple_of(4) { 0 } else { number };
    let path = format!("/api/charts/{}", blake3::hash(&hash.to_le_bytes()).to_hex());
    let address = Ipv4Addr::from_bits((10 << 24) + number).to_string();
    let answer = client.get_with(&path, &[("x-forwarded-for", &address)]).await;
    assert!(!answer.header("retry-after").is_empty(), "{}", answer.status);
    answer.status.as_u16()
}
