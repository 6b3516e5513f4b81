//! A dump restored into an empty server.

use chart_index_tests::{
    IndexerRun, PrivateMeilisearch, PrivatePostgres, Service, TestRedis, indexer, indexer_command,
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

    let dump = Dump::of(source);
    let server = PrivatePostgres::start_without_durability();
    dump.restore(server.url(), 2);
    for command in ["migrate", "verify"] {
        indexer(server.url(), &[command]).succeeded();
    }
    let after = record(server.url(), &[("REDIS_URL", TestRedis::create().url())], &entries).await;
    before.assert_equal(&after);
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
