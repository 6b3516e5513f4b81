//! `sync`, `follow` and `rebuild`.

use crate::support::Catalogue;

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn sync_applies_additions_changes_and_removals() {
    let catalogue = Catalogue::with_nodes(1).await;
    catalogue.write_sets(30, "");
    catalogue.ingest();
    let first = catalogue.run(&["sync"]);
    assert!(first.contains("no index, rebuilding") && first.contains("with 30 chartsets"), "{first}");
    catalogue.assert_equal();
    assert!(catalogue.run(&["sync"]).contains(": 0 written, 0 deleted, "));

    catalogue.write_sets(32, "changed");
    catalogue.ingest();
    assert!(catalogue.run(&["sync"]).contains(": 32 written, 0 deleted, "));
    catalogue.assert_equal();

    let ids = catalogue.ids();
    catalogue.run(&["remove", "chartset", &ids[0]]);
    catalogue.run(&["remove", "chartset", &ids[1]]);
    catalogue.run(&["restore", "chartset", &ids[1]]);
    assert!(catalogue.run(&["sync"]).contains(": 1 written, 1 deleted, "));
    catalogue.assert_equal();
}

/// An empty catalogue has an index, and an index may become empty.
#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn empty_catalogue_has_an_empty_index() {
    let catalogue = Catalogue::with_nodes(1).await;
    catalogue.run(&["sync"]);
    catalogue.assert_equal();
    catalogue.write_sets(1, "");
    catalogue.ingest();
    catalogue.run(&["remove", "chartset", &catalogue.ids()[0]]);
    catalogue.run(&["sync"]);
    catalogue.assert_equal();
    catalogue.run(&["rebuild"]);
    catalogue.assert_equal();
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn follow_applies_changes_until_sigterm() {
    let catalogue = Catalogue::with_nodes(1).await;
    let mut follower = catalogue.start(&["follow"]);
    for round in 0..3 {
        catalogue.write_sets(20, &format!("round{round}"));
        catalogue.ingest();
        // The follower builds the first index.
        catalogue.assert_becomes_equal();
    }
    let second = catalogue.try_run(&["sync"]);
    assert_eq!(second.code, Some(1));
    assert!(second.stderr.contains("another process is already syncing this node"), "{}", second.stderr);

    // Terminates the connections of the follower, as a restart of PostgreSQL does: it reconnects.
    let _ = catalogue.database.psql(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    catalogue.write_sets(20, "after");
    catalogue.ingest();
    catalogue.assert_becomes_equal();
    assert!(!follower.has_ended());
    assert_eq!(follower.terminate(), Some(130));
    catalogue.run(&["sync"]);
}

/// Changes that `follow` applies during a rebuild are not lost.
#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn rebuild_during_follow_and_ingest_ends_equal() {
    let catalogue = Catalogue::synced(100).await;
    let mut follower = catalogue.start(&["follow"]);
    for round in 0..2 {
        let mut rebuild = catalogue.start(&["rebuild"]);
        let mut number = 0;
        while !rebuild.has_ended() {
            for _ in 0..10 {
                catalogue.write_set(number % 120, &format!("round{round} number{number}"));
                number += 7;
            }
            catalogue.ingest();
        }
        assert_eq!(rebuild.wait(), Some(0));
        catalogue.assert_equal();
    }
    assert!(!follower.has_ended());
    assert_eq!(follower.terminate(), Some(130));
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn concurrent_rebuilds_exclude_each_other() {
    let catalogue = Catalogue::synced(10).await;
    let mut rebuilds = [(); 4].map(|()| catalogue.start(&["rebuild"]));
    let mut codes: Vec<_> = rebuilds.iter_mut().map(|rebuild| rebuild.wait().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes[0], 0, "{codes:?}");
    assert!(codes[3] <= 1, "{codes:?}");
    catalogue.assert_equal();
}
