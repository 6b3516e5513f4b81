//! The cost of a full list page: its bytes on the wire, and its time beside that of the list of the API.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test panics if its set-up fails, and prints what it measured"
)]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use chart_index_tests::{Client, Random, Service, TestDatabase, TestRedis, generate_catalogue};

/// What a browser sends.
const ACCEPT: (&str, &str) = ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

/// The bytes of a page with 30 chartsets and their 141 charts, as gzip.
const LIST_BYTES: usize = 30_000;

/// How much longer a list page may take than the list of the API, both from the cache.
const EXTRA_TIME: Duration = Duration::from_millis(2);

/// The pairs of requests whose times are compared.
const PAIRS: usize = 101;

/// A service with two pages of generated chartsets.
struct Site {
    _database: TestDatabase,
    _redis: TestRedis,
    _service: Service,
    client: Client,
}

impl Site {
    async fn new() -> Self {
        let (database, redis) = (TestDatabase::migrated().await, TestRedis::create());
        generate_catalogue(database.url(), &["--chartsets", "60", "--charts", "305"]).succeeded();
        set_curves(&database);
        set_ratings(&database);
        let variables = [("REDIS_URL", redis.url())];
        let service = Service::with_variables(database.url(), &variables);
        let client = service.client();
        Self { _database: database, _redis: redis, _service: service, client }
    }
}

/// Gives every chart a density curve around its average density.
fn set_curves(database: &TestDatabase) {
    let charts = database.psql(
        "SELECT encode(hash, 'hex') || '|' || round(255 * sqrt(least(density_avg / 60, 1))) FROM charts ORDER BY hash",
    );
    let mut random = Random::new(1);
    let mut statement = "UPDATE charts SET density_curve = decode(curve, 'hex') FROM (VALUES ".to_owned();
    for (index, line) in charts.lines().enumerate() {
        let (hash, average) = line.split_once('|').unwrap();
        let curve = curve(average.parse().unwrap(), &mut random);
        let separator = if index == 0 { "" } else { ", " };
        write!(statement, "{separator}('{hash}', '{curve}')").unwrap();
    }
    database.psql(&(statement + ") AS given (of, curve) WHERE hash = decode(of, 'hex')"));
}

/// Gives every chart a rating from 0.50 to 6.99, and two patterns.
fn set_ratings(database: &TestDatabase) {
    database.psql(
        "UPDATE charts SET rating = 50 + (get_byte(hash, 0) * 256 + get_byte(hash, 1)) % 650,
             patterns = set_byte(set_byte(decode(repeat('00', 15), 'hex'),
                 get_byte(hash, 2) % 9, 8 + get_byte(hash, 3) % 50), get_byte(hash, 4) % 9, 8 + get_byte(hash, 5) % 90),
             analysis_version = 1",
    );
}

/// A density curve as hexadecimal digits: parts of a song with a density each, single breaks, and some noise.
/// The steps from one value to the next have as much entropy as those of real charts: 1.8 bits in sixteenths of
/// the height.
fn curve(average: u32, random: &mut Random) -> String {
    let mut values = Vec::new();
    while values.len() < 48 {
        let is_break = random.below(100) < 6;
        let parts = if is_break { 1 + random.below(2) } else { 3 + random.below(8) };
        let level = average * if is_break { 40 } else { 70 + random.below(51) } / 100;
        values.extend((0..parts).map(|_| (level + random.below(21)).saturating_sub(10).min(255)));
    }
    let mut digits = String::new();
    for value in &values[..48] {
        write!(digits, "{value:02x}").unwrap();
    }
    digits
}

#[tokio::test]
async fn full_list_is_within_its_bytes_and_time() {
    let site = Site::new().await;
    assert_bytes(&site).await;
    assert_time(&site).await;
}

async fn assert_bytes(site: &Site) {
    let page = site.client.get_with("/", &[ACCEPT, ("accept-encoding", "gzip")]).await;
    let html = site.client.get_with("/", &[ACCEPT]).await;
    assert_eq!((page.status.as_u16(), html.status.as_u16()), (200, 200));
    let html = String::from_utf8(html.body).unwrap();
    let (sets, charts) =
        (html.matches("<h2><a href=\"/chartsets/").count(), html.matches("href=\"/charts/").count());
    assert_eq!(sets, 30);
    assert!((135..=145).contains(&charts), "{charts} charts");
    assert_eq!(html.matches("class=\"level").count(), charts);
    // The others are in the spectrum of a large set.
    let lines = html.matches("<b class=\"level\">").count();
    assert_eq!(html.matches("<svg class=\"strip\"").count(), lines);
    assert!((115..charts).contains(&lines), "{lines} lines");
    let bytes = page.body.len();
    println!("{sets} sets, {charts} charts: {bytes} bytes");
    assert!(bytes <= LIST_BYTES, "{bytes} bytes");
}

/// From the cache it takes as long as the list of the API.
async fn assert_time(site: &Site) {
    let time = async |path: &str| {
        let start = Instant::now();
        let response = site.client.get_with(path, &[("accept-encoding", "gzip")]).await;
        assert_eq!(response.status, 200, "{path}");
        start.elapsed()
    };
    let (mut pages, mut lists) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        pages.push(time("/").await);
        lists.push(time("/api/chartsets").await);
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[PAIRS / 2]
    };
    let (page, list) = (median(&mut pages), median(&mut lists));
    println!("page {page:?}, list of the API {list:?}");
    assert!(page <= list + EXTRA_TIME, "{page:?}, {list:?}");
}
