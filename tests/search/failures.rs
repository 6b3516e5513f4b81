//! What must not pass for success.

use chart_index_tests::{PrivateMeilisearch, PrivatePostgres};
use reqwest::Method;

use crate::support::{Catalogue, run, start_node};

/// Asks Meilisearch for something, and waits until its tasks are done.
async fn meilisearch(node: &PrivateMeilisearch, method: Method, path: &str, body: &'static str) {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = http.request(method, format!("{}{path}", node.url()));
    let answer = request.header("content-type", "application/json").body(body).send().await.unwrap();
    assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
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
#[ignore = "needs a Meilisearch server: make test"]
async fn verify_names_the_sets_that_differ() {
    let catalogue = Catalogue::synced(30).await;
    let ids = catalogue.ids();
    let path = format!("/indexes/chartsets/documents/{}", ids[0]);
    meilisearch(&catalogue.nodes[0], Method::DELETE, &path, "").await;
    // Past the outbox, as no program of ours does it.
    let _ = catalogue.database.psql(&format!("UPDATE chartsets SET title = 'x' WHERE id = '{}'", ids[1]));
    let _ =
        catalogue.database.psql(&format!("UPDATE chartsets SET removed_at_ms = 1 WHERE id = '{}'", ids[2]));
    let found = catalogue.try_run(&["verify", "--search"]);
    assert_eq!(found.code, Some(1));
    for finding in [
        format!("chartset {}: missing from the index", ids[0]),
        format!("chartset {}: content differs from PostgreSQL", ids[1]),
        format!("chartset {}: in the index but not shown", ids[2]),
        "29 chartsets compared, 3 differences".into(),
    ] {
        assert!(found.stdout.contains(&finding), "{finding}\n{}", found.stdout);
    }
    let _ = catalogue.database.psql("UPDATE chartsets SET title = 'x'");
    let found = catalogue.try_run(&["verify", "--search"]).stdout;
    assert_eq!(found.matches("content differs from PostgreSQL").count(), 18, "the first 20 of 30: {found}");
    assert!(found.contains("and 10 more"), "{found}");
    catalogue.run(&["rebuild"]);
    catalogue.assert_equal();
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn a_task_that_meilisearch_does_not_finish_is_an_error() {
    let catalogue = Catalogue::synced(5).await;
    let node = &catalogue.nodes[0];
    meilisearch(node, Method::DELETE, "/indexes/chartsets", "").await;
    // An index whose documents have another name for their id takes none of ours.
    meilisearch(node, Method::POST, "/indexes", r#"{"uid":"chartsets","primaryKey":"name"}"#).await;
    catalogue.write_sets(5, "changed");
    catalogue.ingest();
    let sync = catalogue.try_run(&["sync"]);
    assert_eq!(sync.code, Some(1), "{}", sync.stdout);
    assert!(sync.stderr.contains(&node.url()), "{}", sync.stderr);
    assert_eq!(catalogue.try_run(&["sync"]).code, Some(1), "the checkpoint did not move");
    catalogue.run(&["rebuild"]);
    catalogue.run(&["sync"]);
    catalogue.assert_equal();
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn a_database_from_elsewhere_wants_a_rebuild() {
    let catalogue = Catalogue::synced(5).await;
    for restored in [
        "UPDATE search_outbox SET cluster = cluster + 1",
        "UPDATE search_changes SET transaction_id = '1000000000000'",
        "UPDATE search_changes SET transaction_id = (transaction_id::text::bigint - 1)::text::xid8
         WHERE transaction_id > '0'",
        "UPDATE search_outbox SET pruned_below = pg_current_xact_id()",
    ] {
        // Another transaction first, so that those ids lie above the checkpoint.
        let _ = catalogue.database.psql("SELECT pg_current_xact_id()");
        let _ = catalogue.database.psql(restored);
        for command in [&["sync"][..], &["verify", "--search"]] {
            let run = catalogue.try_run(command);
            assert_eq!(run.code, Some(1), "{restored}");
            assert!(run.stderr.contains("rebuild"), "{restored}: {}", run.stderr);
        }
        catalogue.run(&["rebuild"]);
        catalogue.assert_equal();
        catalogue.write_sets(6, restored);
        catalogue.ingest();
        catalogue.run(&["sync"]);
        catalogue.assert_equal();
    }
}

/// Restored from a copy of its data, the database gives the ids of lost transactions to other ones.
#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn a_database_that_went_back_wants_a_rebuild() {
    let server = PrivatePostgres::start();
    let catalogue = Catalogue::on(&server);
    catalogue.write_sets(5, "");
    catalogue.ingest();
    catalogue.run(&["sync"]);
    let backup = server.stop_and_copy();
    server.restart();
    catalogue.write_sets(5, "lost");
    catalogue.ingest();
    catalogue.run(&["sync"]);

    server.stop_and_restore(&backup);
    server.restart();
    catalogue.write_sets(8, "other");
    catalogue.ingest();
    for command in [&["sync"][..], &["verify", "--search"], &["sync"]] {
        let run = catalogue.try_run(command);
        assert_eq!(run.code, Some(1), "{command:?}: {}", run.stdout);
        assert!(run.stderr.contains("needs a rebuild"), "{command:?}: {}", run.stderr);
    }
    catalogue.run(&["rebuild"]);
    catalogue.run(&["sync"]);
    catalogue.assert_equal();
}

/// Settings decide what is found and in which order, as much as documents do.
#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn verify_names_the_settings_that_differ() {
    let catalogue = Catalogue::synced(3).await;
    let node = &catalogue.nodes[0];
    let settings = r#"{"searchCutoffMs":7,"rankingRules":["words"],"distinctAttribute":"titleKey"}"#;
    meilisearch(node, Method::PATCH, "/indexes/chartsets/settings", settings).await;
    meilisearch(node, Method::PATCH, "/experimental-features", r#"{"legacySearch":false}"#).await;
    let verify = catalogue.try_run(&["verify", "--search"]);
    assert_eq!(verify.code, Some(1), "{}", verify.stdout);
    for finding in [
        "setting searchCutoffMs: differs from the value",
        "setting rankingRules: differs from the value",
        "setting distinctAttribute: differs from the value",
        "experimental feature legacySearch: off",
        "3 chartsets compared, 4 differences",
    ] {
        assert!(verify.stdout.contains(finding), "{finding}\n{}", verify.stdout);
    }
    catalogue.run(&["rebuild"]);
    catalogue.assert_equal();
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn an_index_of_an_older_version_is_rebuilt_and_one_of_a_newer_version_is_left_alone() {
    let catalogue = Catalogue::synced(5).await;
    let path = "/indexes/chartsets_state/documents";
    let newer = r#"[{"id":"state","checkpoint":"1","format":4000000000}]"#;
    meilisearch(&catalogue.nodes[0], Method::POST, path, newer).await;
    let sync = catalogue.try_run(&["sync"]);
    assert_eq!(sync.code, Some(1), "{}", sync.stdout);
    assert!(sync.stderr.contains("newer version"), "{}", sync.stderr);
    // Whoever goes back to an older version of the program says so.
    catalogue.run(&["rebuild"]);
    catalogue.assert_equal();
    let older = r#"[{"id":"state","checkpoint":"1","format":1}]"#;
    meilisearch(&catalogue.nodes[0], Method::POST, path, older).await;
    let sync = catalogue.run(&["sync"]);
    assert!(sync.contains("the index is of an older version, building one"), "{sync}");
    catalogue.assert_equal();
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn a_wrong_key_is_an_error_that_does_not_repeat_it() {
    let mut catalogue = Catalogue::with_nodes(0).await;
    let node = start_node(&["--master-key", "a-key-of-sixteen-bytes"]);
    catalogue.nodes.push(node);
    let wrong = run(catalogue.command(&["sync"]).env("MEILISEARCH_API_KEY", "hunter2-hunter2-hunter2"));
    assert_eq!(wrong.code, Some(1));
    assert!(!wrong.stderr.contains("hunter2") && wrong.stderr.contains("403"), "{}", wrong.stderr);
    let right = run(catalogue.command(&["sync"]).env("MEILISEARCH_API_KEY", "a-key-of-sixteen-bytes"));
    assert_eq!(right.code, Some(0), "{}", right.stderr);
}
