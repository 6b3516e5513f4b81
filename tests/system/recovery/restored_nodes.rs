//! A restored database and the Meilisearch node of the lost one.

use chart_index_tests::{PrivateMeilisearch, PrivatePostgres, Service, ServiceOptions, within};

use crate::backup::Dump;
use crate::catalogue::Catalogue;
use crate::responses::{Entries, Responses};
use crate::restore::with_node;
use crate::{TIMEOUT, wait_until_ready};

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn restored_database_rejects_the_node_of_the_lost_one() {
    let catalogue = Catalogue::create().await;
    let (url, node) =
        (catalogue.database.url(), PrivateMeilisearch::start_with(&["--max-indexing-memory", "256MiB"]));
    with_node(url, &node, &["sync"]).succeeded();
    let entries = Entries::choose(|query| catalogue.database.psql(query), 20);
    let before = record(url, &node, "meilisearch", &entries).await;
    let (dump, _) = Dump::of(url);
    let lost = catalogue
        .database
        .psql("SELECT id FROM chartsets WHERE removed_at_ms IS NULL ORDER BY id DESC LIMIT 1");
    catalogue.run(&["remove", "chartset", &lost]);
    with_node(url, &node, &["sync"]).succeeded();

    let server = PrivatePostgres::start_without_durability();
    dump.restore(server.url(), 1);
    for command in [&["migrate"][..], &["verify"]] {
        with_node(server.url(), &node, command).succeeded();
    }
    for command in [&["sync"][..], &["verify", "--search"], &["sync"]] {
        let run = with_node(server.url(), &node, command);
        assert_eq!(run.code, Some(1), "{command:?}: {}", run.stdout);
        assert!(run.stderr.contains("is not in the change feed"), "{command:?}: {}", run.stderr);
    }
    let unused = record(server.url(), &node, "postgres", &entries).await;
    assert_eq!(unused.count_with("x-search-engine", "meilisearch"), 0, "the node holds a lost removal");

    for command in [&["rebuild"][..], &["sync"], &["verify", "--search"]] {
        with_node(server.url(), &node, command).succeeded();
    }
    before.assert_equal(&record(server.url(), &node, "meilisearch", &entries).await);
}

/// The responses of a replica with a node, once it has lists answered by this engine.
async fn record(database_url: &str, node: &PrivateMeilisearch, engine: &str, entries: &Entries) -> Responses {
    let url = node.url();
    let variables = &[("MEILISEARCH_URL", &*url)][..];
    let replica =
        Service::start_with(database_url, &ServiceOptions { variables, ..ServiceOptions::default() });
    wait_until_ready(&replica).await;
    let client = replica.client();
    let is_used = async || {
        let list = client.get("/api/chartsets?perPage=1").await;
        (list.header("x-search-engine") == engine).then_some(())
    };
    within(TIMEOUT, is_used).await;
    let responses = Responses::record(&client, entries).await;
    assert!(responses.count_with("x-search-engine", engine) > 100);
    responses
}
