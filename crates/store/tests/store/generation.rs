//! The generation of the catalogue tells that something changed.

use std::time::Duration;

use chart_index_store::CatalogueWatch;

use crate::support::{Catalogue, chart, folder, hash};

#[tokio::test]
async fn every_change_of_what_is_shown_is_another_generation() {
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

/// "Numbers are handed out before they become visible": a row that commits late counts as well.
#[tokio::test]
async fn a_change_that_becomes_visible_late_is_another_generation() {
    let catalogue = Catalogue::create().await;
    let insert = |seq| {
        format!(
            "INSERT INTO search_changes (seq, chartset_id, changed_at_ms) OVERRIDING SYSTEM VALUE
             VALUES ({seq}, '0000000000000001', 1)"
        )
    };
    catalogue.database.psql(&insert(8));
    let before = catalogue.store.generation().await.unwrap();
    catalogue.database.psql(&insert(7));
    assert_ne!(catalogue.store.generation().await.unwrap(), before);
}

#[tokio::test]
async fn a_watch_hears_of_changes_and_knows_the_present_when_it_begins() {
    let catalogue = Catalogue::create().await;
    let watch = CatalogueWatch::follow(&catalogue.store, Duration::from_millis(50)).await;
    let present = catalogue.store.generation().await.unwrap();
    while watch.generation() != present {
        tokio::task::yield_now().await;
    }
    catalogue.put(&folder(1, [chart(1)]), 1).await;
    let next = catalogue.store.generation().await.unwrap();
    let hears = async {
        while watch.generation() != next {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(10), hears).await.is_ok());
}
