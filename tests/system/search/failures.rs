//! Conditions that have to be reported as failures.

use std::time::Duration;

use chart_index_tests::{PrivateMeilisearch, PrivatePostgres, within};
use reqwest::Method;

use crate::support::{Catalogue, INDEX, run, start_node};

/// A timeout that no passing test reaches.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Sends a request to a node and waits until all of its tasks are finished.
async fn request(node: &PrivateMeilisearch, method: Method, path: &str, body: &str) {
    let http = chart_index_tests::http_client_builder().build().unwrap();
    let request = http.request(method, format!("{}{path}", node.url()));
    let response =
        request.header("content-type", "application/json").body(body.to_owned()).send().await.unwrap();
    assert!(response.status().is_success(), "{path}: {}", response.text().await.unwrap());
    let unfinished = format!("{}/tasks?statuses=enqueued,processing", node.url());
    loop {
        let tasks = http.get(&unfinished).send().await.unwrap().bytes().await.unwrap();
        let tasks: serde_json::Value = serde_json::from_slice(&tasks).unwrap();
        if tasks["total"] == 0 {
            return;
        }
    }
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn verify_lists_what_differs() {
    let catalogue = Catalogue::synced(30).await;
    let node = &catalogue.nodes[0];
    let settings = r#"{"searchCutoffMs":7,"rankingRules":["words"],"distinctAttribute":"titleKey"}"#;
    request(node, Method::PATCH, &format!("/indexes/{INDEX}/settings"), settings).await;
    request(node, Method::PATCH, "/experimental-features", r#"{"legacySearch":false}"#).await;
    let verify = catalogue.try_run(&["verify", "--search"]);
    assert_eq!(verify.code, Some(1), "{}", verify.stdout);
    for finding in [
        "setting searchCutoffMs: differs from the value",
        "setting rankingRules: differs from the value",
        "setting distinctAttribute: differs from the value",
        "experimental feature legacySearch: off",
        "30 chartsets compared, 4 differences",
    ] {
        assert!(verify.stdout.contains(finding), "{finding}\n{}", verify.stdout);
    }
    catalogue.run(&["rebuild"]);
    catalogue.assert_equal();

    let ids = catalogue.ids();
    let path = format!("/indexes/{INDEX}/documents/{}", ids[0]);
    request(node, Method::DELETE, &path, "").await;
    // These changes bypass the change feed, which the programs never do.
    let _ = catalogue.database.psql(&format!("UPDATE chartsets SET title = 'x' WHERE id = '{}'", ids[1]));
    let _ = catalogue.database.psql(&format!(
        "SET session_replication_role = replica; UPDATE chartsets SET removed_at_ms = 1 WHERE id = '{}'",
        ids[2]
    ));
    let verify = catalogue.try_run(&["verify", "--search"]);
    assert_eq!(verify.code, Some(1));
    for finding in [
        format!("chartset {}: missing from the index", ids[0]),
        format!("chartset {}: content differs from PostgreSQL", ids[1]),
        format!("chartset {}: in the index but not shown", ids[2]),
        "29 chartsets compared, 3 differences".into(),
    ] {
        assert!(verify.stdout.contains(&finding), "{finding}\n{}", verify.stdout);
    }
    let _ = catalogue.database.psql("UPDATE chartsets SET title = 'x'");
    let verify = catalogue.try_run(&["verify", "--search"]).stdout;
    assert_eq!(verify.matches("content differs from PostgreSQL").count(), 18, "the first 20 of 30: {verify}");
    assert!(verify.contains("and 10 more"), "{verify}");
    catalogue.run(&["rebuild"]);
    catalogue.assert_equal();
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn failed_task_is_an_error() {
    let catalogue = Catalogue::synced(5).await;
    let node = &catalogue.nodes[0];
    request(node, Method::DELETE, &format!("/indexes/{INDEX}"), "").await;
    // An index with another primary key rejects the documents.
    request(node, Method::POST, "/indexes", &format!(r#"{{"uid":"{INDEX}","primaryKey":"name"}}"#)).await;
    catalogue.write_sets(5, "changed");
    catalogue.ingest();
    let sync = catalogue.try_run(&["sync"]);
    assert_eq!(sync.code, Some(1), "{}", sync.stdout);
    assert!(sync.stderr.contains(&node.url()), "{}", sync.stderr);
    assert_eq!(catalogue.try_run(&["sync"]).code, Some(1), "the position is unchanged");
    catalogue.run(&["rebuild"]);
    catalogue.run(&["sync"]);
    catalogue.assert_equal();
}

/// PostgreSQL loses a change while a pass applies it: the index has it already, at a position before it.
#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn change_that_is_lost_during_its_pass_requires_a_rebuild() {
    let server = PrivatePostgres::start();
    let catalogue = Catalogue::on(&server);
    let node = &catalogue.nodes[0];
    catalogue.write_sets(5, "");
    catalogue.ingest();
    catalogue.run(&["sync"]);
    let backup = server.stop_and_copy();
    server.restart();
    let mut follower = catalogue.start(&["follow"]);
    catalogue.write_sets(5, "lost");
    let mut ingest = catalogue.start(&["ingest", &catalogue.library.argument()]);
    let http = chart_index_tests::http_client_builder().build().unwrap();
    let writes =
        format!("tasks?indexUids={INDEX}&types=documentAdditionOrUpdate&statuses=enqueued,processing");
    let writes = format!("{}/{writes}", node.url());
    within(TIMEOUT, async || {
        let tasks = http.get(&writes).send().await.unwrap().bytes().await.unwrap();
        let tasks: serde_json::Value = serde_json::from_slice(&tasks).unwrap();
        (tasks["total"] != 0).then_some(())
    })
    .await;
    // The pass cannot end.
    node.freeze();
    server.kill();
    let _ = ingest.terminate();
    server.stop_and_restore(&backup);
    server.restart();
    node.thaw();
    within(TIMEOUT, async || {
        let stderr = catalogue.try_run(&["verify", "--search"]).stderr;
        stderr.contains("the search index needs a rebuild").then_some(())
    })
    .await;
    catalogue.run(&["rebuild"]);
    catalogue.assert_equal();
    catalogue.ingest();
    catalogue.assert_becomes_equal();
    assert_eq!(follower.terminate(), Some(130));
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn unused_index_of_an_earlier_format_is_deleted() {
    let catalogue = Catalogue::synced(5).await;
    let node = &catalogue.nodes[0];
    let http = chart_index_tests::http_client_builder().build().unwrap();
    let get = async |path: &str| http.get(format!("{}{path}", node.url())).send().await.unwrap();
    let position = get(&format!("/indexes/{INDEX}_state/documents/state")).await.text().await.unwrap();
    for index in ["chartsets_v1", "chartsets_v4000000000"] {
        for (uid, document) in [(format!("{index}_state"), &*position), (index.to_owned(), r#"{"id":"a"}"#)] {
            request(node, Method::POST, &format!("/indexes/{uid}/documents?primaryKey=id"), document).await;
        }
    }
    let indexes = async || {
        let all: serde_json::Value =
            serde_json::from_slice(&get("/stats").await.bytes().await.unwrap()).unwrap();
        let mut uids: Vec<String> = all["indexes"].as_object().unwrap().keys().cloned().collect();
        uids.sort();
        uids
    };
    let mut own_and_later =
        [INDEX, &format!("{INDEX}_state"), "chartsets_v4000000000", "chartsets_v4000000000_state"];
    let earlier = ["chartsets_v1", "chartsets_v1_state"];
    let mut all = [&earlier[..], &own_and_later].concat();
    all.sort_unstable();
    own_and_later.sort_unstable();
    // Without changes it may be in use.
    catalogue.run(&["sync"]);
    assert_eq!(indexes().await, all);
    catalogue.write_set(0, "changed");
    catalogue.ingest();
    catalogue.run(&["sync"]);
    assert_eq!(indexes().await, all);
    catalogue.database.psql("UPDATE catalogue_changes SET changed_at_ms = changed_at_ms - 3600000");
    let sync = catalogue.run(&["sync"]);
    assert!(sync.contains("deleted the index of format 1, which nothing uses"), "{sync}");
    assert_eq!(indexes().await, own_and_later);
    catalogue.assert_equal();
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn wrong_key_is_an_error_without_the_key() {
    let mut catalogue = Catalogue::with_nodes(0).await;
    let node = start_node(&["--master-key", "a-key-of-sixteen-bytes"]);
    catalogue.nodes.push(node);
    let with_wrong_key =
        run(catalogue.command(&["sync"]).env("MEILISEARCH_API_KEY", "hunter2-hunter2-hunter2"));
    assert_eq!(with_wrong_key.code, Some(1));
    assert!(
        !with_wrong_key.stderr.contains("hunter2") && with_wrong_key.stderr.contains("403"),
        "{}",
        with_wrong_key.stderr
    );
    let with_right_key =
        run(catalogue.command(&["sync"]).env("MEILISEARCH_API_KEY", "a-key-of-sixteen-bytes"));
    assert_eq!(with_right_key.code, Some(0), "{}", with_right_key.stderr);
}
