//! The generation changes with every change of the catalogue.

use std::time::Duration;

use chart_index_store::{CatalogueRead, CatalogueWatch};

use crate::support::{Catalogue, chart, folder, hash};

#[tokio::test]
async fn every_shown_change_changes_the_generation() {
    let catalogue = Catalogue::create().await;
    let generation = async || catalogue.store.generation().await.unwrap();
    let mut seen = vec![generation().await];
    catalogue.put(&folder(1, [chart(1)]), 1).await;
    seen.push(generation().await);
    catalogue.put(&folder(1, [chart(1)]), 2).await;
    assert_eq!(generation().await, seen[1], "nothing changed");
    catalogue.store.remove_chart(hash(1), 3).await.unwrap();
    seen.push(generation().await);
    catalogue.store.restore_chart(hash(1), 4).await.unwrap();
    seen.push(generation().await);
    seen.dedup();
    assert_eq!(seen.len(), 4, "{seen:?}");
}

/// Cached charts count as current while the generation is unchanged, so every change of a lookup or a ROX file
/// must change it, even if no list changes.
#[tokio::test]
async fn every_lookup_change_changes_the_generation() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    let state = async || {
        let (mut lookups, mut files) = (Vec::new(), Vec::new());
        for number in 1..=2 {
            lookups.push(store.chart(hash(number)).await.unwrap());
            files.push(store.rox(hash(number)).await.unwrap());
        }
        ((lookups, files), store.generation().await.unwrap())
    };
    let [both, one, other] = [folder(1, [chart(1), chart(2)]), folder(1, [chart(2)]), folder(2, [chart(1)])];
    let mut before = state().await;
    let mut changes = 0;
    for step in 0..11 {
        match step {
            0 => {
                catalogue.put(&both, 1).await;
            }
            1 => {
                catalogue.put(&other, 1).await;
            }
            2 | 8 => {
                store.remove_chart(hash(1), 2).await.unwrap();
            }
            3 | 9 => {
                store.restore_chart(hash(1), 3).await.unwrap();
            }
            4 => {
                store.remove_chartset(other.id, 4).await.unwrap();
            }
            // The chart is only in removed chartsets.
            5 => {
                catalogue.put(&one, 1).await;
            }
            6 => {
                store.remove_chartset(one.id, 5).await.unwrap();
            }
            7 | 10 => {
                store.restore_chartset(other.id, 6).await.unwrap();
            }
            _ => unreachable!("all steps are named"),
        }
        let after = state().await;
        if after.0 != before.0 {
            changes += 1;
            assert_ne!(after.1, before.1, "step {step}");
        }
        before = after;
    }
    assert!(changes >= 8, "{changes}");
}

#[tokio::test]
async fn a_watch_reports_the_time_of_its_last_read() {
    let catalogue = Catalogue::create().await;
    let before = std::time::Instant::now();
    let watch = CatalogueWatch::start(&catalogue.store, Duration::from_secs(20)).await;
    let CatalogueRead { generation, read_at, .. } = watch.last_read().unwrap();
    assert_eq!(generation, watch.generation());
    assert_eq!(generation, catalogue.store.generation().await.unwrap());
    assert!(before <= read_at && read_at <= std::time::Instant::now());
    assert_eq!(CatalogueWatch::disabled().last_read(), None);
}

/// A row may become visible after rows with a higher sequence.
#[tokio::test]
async fn a_late_commit_changes_the_generation() {
    let catalogue = Catalogue::create().await;
    let insert = |sequence| {
        format!(
            "INSERT INTO search_changes (sequence, chartset_id, changed_at_ms) OVERRIDING SYSTEM VALUE
             VALUES ({sequence}, '0000000000000001', 1)"
        )
    };
    catalogue.database.psql(&insert(8));
    let before = catalogue.store.generation().await.unwrap();
    catalogue.database.psql(&insert(7));
    assert_ne!(catalogue.store.generation().await.unwrap(), before);
}

/// A restored database assigns the sequences of lost rows again.
#[tokio::test]
async fn equal_sequences_of_two_histories_have_different_generations() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 1).await;
    let lost = catalogue.store.generation().await.unwrap();
    catalogue.database.psql("UPDATE search_changes SET token = token + 1");
    assert_ne!(catalogue.store.generation().await.unwrap(), lost);
}

#[tokio::test]
async fn other_tables_and_clusters_are_other_databases() {
    let catalogue = Catalogue::create().await;
    let state = async || catalogue.store.generation_and_database().await.unwrap();
    let before = state().await;
    catalogue.put(&folder(1, [chart(1)]), 1).await;
    let (generation, database) = state().await;
    assert_ne!(generation, before.0);
    assert_eq!(database, before.1);
    // What pg_restore --clean does.
    catalogue.database.psql(
        "CREATE TABLE restored (LIKE search_changes INCLUDING ALL); INSERT INTO restored OVERRIDING SYSTEM VALUE TABLE search_changes;
         DROP TABLE search_changes; ALTER TABLE restored RENAME TO search_changes",
    );
    let restored = state().await;
    assert_eq!(restored.0, generation);
    assert_ne!(restored.1, database);
}

#[tokio::test]
async fn a_watch_follows_the_generation() {
    let catalogue = Catalogue::create().await;
    let watch = CatalogueWatch::start(&catalogue.store, Duration::from_millis(50)).await;
    let current = catalogue.store.generation().await.unwrap();
    while watch.generation() != current {
        tokio::task::yield_now().await;
    }
    catalogue.put(&folder(1, [chart(1)]), 1).await;
    let next = catalogue.store.generation().await.unwrap();
    let follows = async {
        while watch.generation() != next {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(10), follows).await.is_ok());
}
