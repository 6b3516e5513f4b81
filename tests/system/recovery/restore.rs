//! A dump restored into an empty server.

use std::time::Instant;

use chart_index_tests::{
    IndexerRun, PrivateMeilisearch, PrivatePostgres, Service, TestDatabase, TestRedis, generate_catalogue,
    indexer, indexer_command,
};

use crate::backup::Dump;
use crate::catalogue::Catalogue;
use crate::responses::{Entries, Responses};
use crate::wait_until_ready;

/// Chosen charts and chartsets, which make 1,000 requests.
const ENTRIES: usize = 260;

/// Minimum number of compared responses.
const RESPONSES: usize = 1_000;

#[tokio::test]
async fn restored_dump_gives_the_same_responses() {
    let catalogue = Catalogue::create().await;
    let source = catalogue.database.url();
    let entries = Entries::choose(|query| catalogue.database.psql(query), ENTRIES);
    let before = record(source, &[("REDIS_URL", TestRedis::create().url())], &entries).await;
    println!("{} responses by status: {:?}", before.count(), before.statuses());
    assert!(before.count() >= RESPONSES);
    for status in [200, 302, 304, 400, 404] {
        assert!(before.statuses().contains_key(&status), "{:?}", before.statuses());
    }

    let (dump, _) = Dump::of(source);
    let server = PrivatePostgres::start_without_durability();
    dump.restore(server.url(), 2);
    for command in ["migrate", "verify"] {
        indexer(server.url(), &[command]).succeeded();
    }
    let after = record(server.url(), &[("REDIS_URL", TestRedis::create().url())], &entries).await;
    before.assert_equal(&after);
}

/// Prints how long each step takes with 300,000 chartsets, and compares their responses.
#[tokio::test]
#[ignore = "takes 30 minutes, 20 GB of disk and release builds of the programs: make test-full"]
async fn long_restore_of_300_000_chartsets() {
    let (url, old) = generated();
    let psql = |query: &str| TestDatabase::psql_on(&url, query);
    remove_some(&url, psql);
    psql("VACUUM (ANALYZE)");
    let entries = Entries::choose(psql, ENTRIES);
    let before = record(&url, &[], &entries).await;

    let (dump, duration) = Dump::of(&url);
    println!("pg_dump: {:.1} minutes, {} MB", duration.as_secs_f64() / 60.0, dump.bytes() >> 20);
    drop(old);
    let new = PrivatePostgres::start();
    println!("pg_restore: {:.1} minutes", dump.restore(new.url(), 2).as_secs_f64() / 60.0);
    drop(dump);
    timed("migrate", || indexer(new.url(), &["migrate"]).succeeded());
    timed("VACUUM (ANALYZE)", || TestDatabase::psql_on(new.url(), "VACUUM (ANALYZE)"));
    let verified = timed("verify", || indexer(new.url(), &["verify"]).stdout);
    // The generated ROX files are random bytes, so every one of them is a finding.
    let others: Vec<_> = verified.lines().filter(|line| !line.contains(": invalid ROX file: ")).collect();
    assert!(matches!(*others, [summary] if summary.contains(" chartsets verified, ")), "{others:?}");
    before.assert_equal(&record(new.url(), &[], &entries).await);
    println!("{} responses are equal: {:?}", before.count(), before.statuses());

    if PrivateMeilisearch::program().is_none() {
        println!("SKIPPED: rebuild, since there is no meilisearch on the PATH");
        return;
    }
    let node = PrivateMeilisearch::start_with(&["--max-indexing-memory", "1GiB"]);
    for command in [&["rebuild"][..], &["verify", "--search"]] {
        timed(&command.join(" "), || with_node(new.url(), &node, command).succeeded());
    }
    let searched = record(new.url(), &[("MEILISEARCH_URL", &node.url())], &entries).await;
    let count = searched.count_with("x-search-engine", "meilisearch");
    println!("{count} lists from Meilisearch, {} responses in all", searched.count());
}

/// A generated catalogue of 300,000 chartsets: that of `CATALOGUE_URL`, if set, or in a server of its own.
fn generated() -> (String, Option<PrivatePostgres>) {
    if let Ok(url) = std::env::var("CATALOGUE_URL") {
        return (url, None);
    }
    let server = PrivatePostgres::start_without_durability();
    indexer(server.url(), &["migrate"]).succeeded();
    timed("generate", || generate_catalogue(server.url(), &[]).succeeded());
    (server.url().to_owned(), Some(server))
}

/// Removes a few charts and chartsets.
fn remove_some(database_url: &str, psql: impl Fn(&str) -> String) {
    for (kind, query) in [
        ("chart", "SELECT encode(hash, 'hex') FROM charts ORDER BY hash LIMIT 5"),
        ("chartset", "SELECT id FROM chartsets ORDER BY id LIMIT 5"),
    ] {
        for entry in psql(query).lines() {
            indexer(database_url, &["remove", kind, entry]).succeeded();
        }
    }
}

/// Runs `chart-indexer` with a node.
pub(crate) fn with_node(database_url: &str, node: &PrivateMeilisearch, arguments: &[&str]) -> IndexerRun {
    let mut command = indexer_command(database_url, arguments);
    IndexerRun::run(command.env("MEILISEARCH_URL", node.url()).env_remove("MEILISEARCH_API_KEY"))
}

/// The responses of a replica that is started with these variables.
pub(crate) async fn record(database_url: &str, variables: &[(&str, &str)], entries: &Entries) -> Responses {
    let replica = Service::with_variables(database_url, variables);
    wait_until_ready(&replica).await;
    Responses::record(&replica.client(), entries).await
}

fn timed<T>(step: &str, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = run();
    println!("{step}: {:.1} minutes", start.elapsed().as_secs_f64() / 60.0);
    result
}
