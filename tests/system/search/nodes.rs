//! Several independent nodes.

use crate::support::{Catalogue, run};

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn unavailable_node_blocks_neither_sync_nor_follow() {
    let catalogue = Catalogue::with_nodes(2).await;
    catalogue.write_sets(10, "");
    catalogue.ingest();
    catalogue.run(&["sync"]);
    catalogue.assert_equal();

    let unavailable = &catalogue.nodes[0];
    unavailable.kill();
    catalogue.write_sets(20, "changed");
    catalogue.ingest();
    let sync = catalogue.try_run(&["sync"]);
    assert_eq!(sync.code, Some(1));
    assert!(
        sync.stderr.contains(&unavailable.url()) && sync.stderr.contains("1 of 2 nodes"),
        "{}",
        sync.stderr
    );
    assert!(sync.stdout.contains(&format!("{}: 20 written", catalogue.nodes[1].url())), "{}", sync.stdout);
    let compared = catalogue.try_run(&["verify", "--search"]);
    assert_eq!(compared.code, Some(1));
    assert!(
        compared.stdout.contains(" compared, 0 differences"),
        "the other node is equal: {}",
        compared.stdout
    );

    unavailable.restart();
    catalogue.run(&["sync"]);
    catalogue.assert_equal();

    let mut follower = catalogue.start(&["follow"]);
    catalogue.nodes[1].kill();
    catalogue.write_sets(10, "again");
    catalogue.ingest();
    let first = catalogue.nodes[0].url();
    let verify = run(catalogue.command(&["verify", "--search"]).env("MEILISEARCH_URL", &first));
    assert_eq!(verify.code, Some(0), "{}{}", verify.stdout, verify.stderr);
    catalogue.nodes[1].restart();
    catalogue.assert_becomes_equal();
    assert!(!follower.has_ended());
    assert_eq!(follower.terminate(), Some(130));
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn missing_node_is_an_error_that_names_the_setting() {
    let catalogue = Catalogue::with_nodes(1).await;
    for arguments in [&["sync"][..], &["rebuild"], &["verify", "--search"]] {
        let none = run(catalogue.command(arguments).env_remove("MEILISEARCH_URL"));
        assert_eq!(none.code, Some(2));
        assert!(none.stderr.contains("MEILISEARCH_URL"), "{}", none.stderr);
    }
    assert_eq!(run(catalogue.command(&["verify"]).env_remove("MEILISEARCH_URL")).code, Some(0));
}
