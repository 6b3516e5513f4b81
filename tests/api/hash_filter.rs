//! `GET /api/charts/filter` (docs/api.md, "Hash filter").

use std::time::Instant;

use chart_index_tests::PrivatePostgres;
use hyper::Method;

use super::*;

const PATH: &str = "/api/charts/filter";

/// The address of the last filter.
async fn location(client: &Client) -> String {
    let response = client.get(PATH).await;
    assert_eq!(response.status, 302, "{}", String::from_utf8_lossy(&response.body));
    response.header("location").to_owned()
}

/// The sequence and the number of hashes in the header of a filter.
fn header(bytes: &[u8]) -> (u64, u64) {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    (number(8), number(16))
}

fn library(charts: u32) -> Library {
    let library = Library::new();
    for number in 0..charts {
        library.osu(&format!("alpha/{} set/a.osu", number + 1), ChartSpec::numbered(number));
    }
    library
}

#[tokio::test]
async fn last_filter_is_immutable_at_its_own_address() {
    let index = Index::new(library(3)).await;
    let redirect = index.get(PATH).await;
    assert_eq!((redirect.status.as_u16(), redirect.header("cache-control")), (302, "public, max-age=60"));
    let path = location(&index.client).await;
    let filter = index.get(&path).await;
    assert_eq!((filter.status.as_u16(), filter.header("content-type")), (200, "application/octet-stream"));
    assert_eq!(filter.header("cache-control"), "public, max-age=31536000, immutable");
    let tag = format!("\"{}\"", &blake3::hash(&filter.body).to_hex()[..32]);
    assert_eq!(filter.header("etag"), tag);
    assert_eq!((&filter.body[..8], filter.body.len()), (&b"CIHF\x01\0\0\0"[..], 44 + 24));
    let (sequence, hashes) = header(&filter.body);
    assert_eq!((format!("{PATH}/{sequence}"), hashes), (path.clone(), 3));
    let gzip = index.client.get_with(&path, &[("accept-encoding", "gzip")]).await;
    assert_eq!((gzip.header("content-encoding"), gzip.header("vary")), ("", ""));
    assert_eq!(gzip.body, filter.body);
    let conditional = index.client.get_with(&path, &[("if-none-match", &tag)]).await;
    assert_eq!((conditional.status.as_u16(), conditional.header("etag")), (304, &*tag));
    assert_eq!(conditional.header("cache-control"), "public, max-age=31536000, immutable");
    let head = index.client.request(Method::HEAD, &path, &[]).await;
    assert_eq!((head.status.as_u16(), head.header("content-length"), head.body.len()), (200, "68", 0));
}

#[tokio::test]
async fn other_sequences_and_an_index_without_filter_are_404() {
    let index = Index::new(library(1)).await;
    let path = location(&index.client).await;
    let others =
        ["x", "-1", "%2F", "0", "9007199254740993", "18446744073709551615", "1844674407370955161600"];
    let others = others.map(|sequence| format!("{PATH}/{sequence}"));
    for other in others.iter().chain([&path.replace("filter/", "filter/0"), &format!("{PATH}/")]) {
        let response = index.get(other).await;
        assert_eq!(
            (response.status.as_u16(), response.header("cache-control")),
            (404, "no-store"),
            "{other}"
        );
    }
    index.database.psql("DELETE FROM hash_filters");
    let service = Service::start(index.database.url());
    for path in [PATH, &*path] {
        let response = service.client().get(path).await;
        assert_eq!((response.status.as_u16(), response.header("cache-control")), (404, "no-store"), "{path}");
    }
    let output = index.indexer(&["filter"]);
    assert!(output.starts_with("hash filter of 1 chart built at sequence "), "{output}");
    assert_eq!(service.client().get(PATH).await.status, 302);
}

/// An ingest that adds charts builds a filter, and the last two stay. A removed chart may stay in the filter.
#[tokio::test]
async fn added_charts_are_in_the_next_filter() {
    let index = Index::new(library(2)).await;
    let counts =
        || index.database.psql("SELECT string_agg(hashes::text, ' ' ORDER BY sequence) FROM hash_filters");
    assert_eq!(counts(), "2");
    index.ingest();
    assert_eq!(counts(), "2", "nothing has changed");
    assert_eq!(index.indexer(&["filter"]), "no chart has changed since the last hash filter\n");
    let removed = ChartSpec::numbered(0).note_hash();
    index.indexer(&["remove", "chart", &removed]);
    assert_eq!(counts(), "2", "removed charts may stay");
    index.library.osu("alpha/3 set/a.osu", ChartSpec::numbered(3));
    index.ingest();
    assert_eq!(counts(), "2 2");
    index.indexer(&["restore", "chart", &removed]);
    assert_eq!(counts(), "2 3", "the first one is gone");
    let path = location(&index.client).await;
    let (sequence, hashes) = header(&index.get(&path).await.body);
    assert_eq!(hashes, 3);
    let last = index.database.psql("SELECT last_sequence FROM change_feed");
    assert_eq!(sequence.to_string(), last, "all changes have numbers before the filter is built");
}

/// `verify` finds a filter that lacks a chart, and one that is damaged.
#[tokio::test]
async fn verify_finds_damaged_filters() {
    let database = TestDatabase::migrated().await;
    indexer(database.url(), &["ingest", &library(200).argument()]).succeeded();
    assert!(indexer(database.url(), &["verify"]).succeeded().contains(", 0 findings"));
    for (change, expected) in [
        ("set_byte(bytes, 32, 0)", "damaged hash filter"),
        ("substr(bytes, 1, 44) || decode(repeat('00', length(bytes) - 44), 'hex')", "lacks "),
    ] {
        let bytes = database.psql("SELECT encode(bytes, 'hex') FROM hash_filters");
        database.psql(&format!("UPDATE hash_filters SET bytes = {change}"));
        let run = indexer(database.url(), &["verify"]);
        assert_eq!((run.code, run.stdout.contains(expected)), (Some(1), true), "{expected}: {}", run.stdout);
        database.psql(&format!("UPDATE hash_filters SET bytes = decode('{bytes}', 'hex')"));
    }
}

/// A request for a filter that is not in memory waits for PostgreSQL, and delays no other request.
#[tokio::test]
async fn filters_in_memory_do_not_wait_for_reads() {
    let postgres = PrivatePostgres::start();
    let database = TestDatabase::create_on(postgres.url());
    indexer(database.url(), &["migrate"]).succeeded();
    indexer(database.url(), &["ingest", &library(1).argument()]).succeeded();
    let service = Service::start(database.url());
    let client = service.client();
    let path = location(&client).await;
    let filter = client.get(&path).await.body;
    postgres.freeze();
    let other = service.client();
    let read = tokio::spawn(async move { other.get(&format!("{PATH}/987654321")).await });
    let mut longest = Duration::ZERO;
    while !read.is_finished() {
        let start = Instant::now();
        assert_eq!(client.get(&path).await.body, filter);
        longest = longest.max(start.elapsed());
    }
    assert_eq!(read.await.unwrap().status, 503);
    postgres.thaw();
    assert!(Duration::ZERO < longest && longest < Duration::from_secs(1), "{longest:?}");
}
