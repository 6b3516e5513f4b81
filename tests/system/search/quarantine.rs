//! A node that rejects the document of one chartset as too large still gets all others.

use crate::support::Catalogue;

/// Less than the document of a chartset with many tags, more than any other request.
const LIMIT: [&str; 2] = ["--http-payload-size-limit", "8KiB"];

fn many_tags() -> String {
    (0..190).map(|number| format!("{number}-{}tags", "many-".repeat(12))).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn too_large_chartset_is_quarantined_and_reported() {
    let catalogue = Catalogue::with_node_arguments(&LIMIT).await;
    catalogue.write_sets(30, "");
    catalogue.ingest();
    catalogue.run(&["sync"]);
    catalogue.assert_equal();
    catalogue.write_sets(30, "changed");
    catalogue.write_set(7, &many_tags());
    catalogue.ingest();
    let large = catalogue.database.psql("SELECT id FROM chartsets ORDER BY cardinality(tags) DESC LIMIT 1");

    let sync = catalogue.try_run(&["sync"]);
    assert_eq!(sync.code, Some(0), "{}", sync.stderr);
    assert!(sync.stdout.contains(": 29 written, 0 deleted, "), "{}", sync.stdout);
    assert!(sync.stderr.contains("warning") && sync.stderr.contains(&large), "{}", sync.stderr);
    assert_only_difference(&catalogue, &large);

    let sync = catalogue.try_run(&["sync"]);
    assert!(sync.stdout.contains(": 0 written, 0 deleted, "), "the position advanced: {}", sync.stdout);
    assert!(!sync.stderr.contains(&large), "it is not retried: {}", sync.stderr);
    catalogue.write_set(8, "after");
    catalogue.ingest();
    assert!(catalogue.run(&["sync"]).contains(": 1 written, 0 deleted, "));
    assert_only_difference(&catalogue, &large);

    let rebuild = catalogue.try_run(&["rebuild"]);
    assert_eq!(rebuild.code, Some(0), "{}", rebuild.stderr);
    assert!(rebuild.stderr.contains(&large), "a rebuild retries it: {}", rebuild.stderr);
    assert_only_difference(&catalogue, &large);

    catalogue.write_set(7, "few");
    catalogue.ingest();
    assert!(catalogue.run(&["sync"]).contains(": 1 written, 0 deleted, "));
    catalogue.assert_equal();
}

fn assert_only_difference(catalogue: &Catalogue, large: &str) {
    let verify = catalogue.try_run(&["verify", "--search"]);
    assert_eq!(verify.code, Some(1));
    let line = verify.stdout.lines().find(|line| line.contains(large));
    assert!(line.is_some_and(|line| line.contains("too large for the node")), "{}", verify.stdout);
    assert!(verify.stdout.contains("30 chartsets compared, 1 difference"), "{}", verify.stdout);
}
