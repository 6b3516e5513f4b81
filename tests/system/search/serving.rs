//! The public API with Meilisearch nodes that fail and recover.

use std::time::Duration;

use chart_index_tests::{Client, PrivatePostgres, Response, Service, within};

use crate::support::Catalogue;

/// A replica detects a failed or recovered node within this time.
const DETECTION: Duration = Duration::from_secs(10);

fn serve(catalogue: &Catalogue) -> Service {
    Service::with_variables(catalogue.database.url(), &[("MEILISEARCH_URL", &catalogue.node_urls())])
}

async fn list(client: &Client, query: &str) -> Response {
    let response = client.get(&format!("/api/chartsets?{query}")).await;
    assert_eq!(response.status, 200, "{query}: {}", String::from_utf8_lossy(&response.body));
    response
}

async fn wait_for_engine(client: &Client, query: &str, engine: &str) {
    let is_engine = async || (list(client, query).await.header("x-search-engine") == engine).then_some(());
    within(DETECTION, is_engine).await;
}

/// While Meilisearch is unavailable, a list is the cached page, else a page of PostgreSQL; `X-Search-Engine`
/// names the engine, and lookups are not affected (docs/api.md, "Chartset list").
#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn postgresql_is_the_fallback_of_meilisearch() {
    let catalogue = Catalogue::synced(20).await;
    let service = serve(&catalogue);
    let client = service.client();
    wait_for_engine(&client, "sort=title", "meilisearch").await;
    let by_meilisearch = list(&client, "sort=title").await;

    for failure in ["killed", "frozen"] {
        let node = &catalogue.nodes[0];
        if failure == "killed" {
            node.kill();
        } else {
            node.freeze();
        }
        let cached = list(&client, "sort=title").await;
        assert_eq!(cached.header("x-search-engine"), "meilisearch", "{failure}: the cached page comes first");
        assert_eq!(cached.body, by_meilisearch.body);
        for order in ["asc", "desc"] {
            let query = format!("sort=title&order={order}&perPage=7&creator={failure}");
            assert_eq!(list(&client, &query).await.header("x-search-engine"), "postgres", "{failure}");
        }
        let lookup = format!("/api/charts/{}", "0".repeat(64));
        assert_eq!(client.get(&lookup).await.status, 200);
        assert_eq!(service.private_client().get("/readyz").await.status, 200, "{failure}");
        if failure == "killed" {
            node.restart();
        } else {
            node.thaw();
        }
        wait_for_engine(&client, &format!("q=back+{failure}"), "meilisearch").await;
    }
    let postgres_only = Service::start(catalogue.database.url());
    let by_postgres = list(&postgres_only.client(), "sort=title").await;
    assert_eq!(by_postgres.header("x-search-engine"), "postgres");
    assert_eq!(by_postgres.body, by_meilisearch.body, "both engines return the same bytes");
}

/// A database that is restored to an earlier point lacks numbers that the index has: commands ask for a
/// rebuild, and a running replica searches the node again as soon as that is done.
#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn restored_database_needs_a_rebuild() {
    let server = PrivatePostgres::start();
    let catalogue = Catalogue::on(&server);
    catalogue.write_sets(5, "");
    catalogue.ingest();
    let backup = server.stop_and_copy();
    server.restart();
    catalogue.write_sets(8, "lost");
    catalogue.ingest();
    catalogue.run(&["sync"]);
    let service = serve(&catalogue);
    let client = service.client();
    wait_for_engine(&client, "", "meilisearch").await;

    server.stop_and_restore(&backup);
    server.restart();
    let mut number = 0;
    let mut is_searched = async |engine: &str, total| {
        number += 1;
        let page = client.get(&format!("/api/chartsets?densityMin=0.{number:05}")).await;
        let is_engine = page.status == 200 && page.header("x-search-engine") == engine;
        (is_engine && page.json()["total"] == total).then_some(())
    };
    within(DETECTION, async || is_searched("postgres", 5).await).await;
    catalogue.write_sets(6, "other");
    catalogue.ingest();
    for command in [&["sync"][..], &["verify", "--search"], &["sync"]] {
        let run = catalogue.try_run(command);
        assert_eq!(run.code, Some(1), "{command:?}: {}", run.stdout);
        assert!(run.stderr.contains("needs a rebuild"), "{command:?}: {}", run.stderr);
    }
    catalogue.run(&["rebuild"]);
    // The library still has those that were lost.
    within(DETECTION, async || is_searched("meilisearch", 8).await).await;
    catalogue.run(&["sync"]);
    catalogue.assert_equal();
}
