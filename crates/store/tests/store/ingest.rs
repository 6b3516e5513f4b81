//! Ingesting new, unchanged and changed folders.

use chart_index_domain::search::SearchQuery;
use chart_index_domain::{ChartDraft, ChartsetDraft};
use chart_index_store::{PutEffect, PutOutcome};

use crate::support::{Catalogue, alpha, chart, folder, hash, id, ids, numbers};

const ADDED: PutOutcome = PutOutcome { effect: PutEffect::Added, removed: false };
const UNCHANGED: PutOutcome = PutOutcome { effect: PutEffect::Unchanged, removed: false };
const UPDATED: PutOutcome = PutOutcome { effect: PutEffect::Updated, removed: false };

#[tokio::test]
async fn unchanged_folders_only_update_the_last_check() {
    let catalogue = Catalogue::create().await;
    let draft = folder(1, [chart(1), chart(2)]);
    assert_eq!(catalogue.put(&draft, 10).await, ADDED);
    let before = catalogue.store.chartset(id(1)).await.unwrap();
    assert_eq!(catalogue.put(&draft, 20).await, UNCHANGED);
    assert_eq!(catalogue.store.chartset(id(1)).await.unwrap(), before);
    assert_eq!(catalogue.times(id(1)), "10|20");
    assert_eq!(catalogue.last_sequence(), 3);
}

#[tokio::test]
async fn file_order_and_path_are_not_content() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1), chart(2)]), 10).await;
    let moved = ChartsetDraft { path: "elsewhere".into(), ..folder(1, [chart(2), chart(1)]) };
    assert_eq!(catalogue.put(&moved, 20).await, UNCHANGED);
    assert_eq!(catalogue.database.psql("SELECT path FROM chartsets"), "elsewhere");
    assert_eq!(catalogue.last_sequence(), 3, "it is no change of the feed");
}

type Edit = fn(&mut ChartDraft);

#[tokio::test]
async fn all_metadata_is_content() {
    let edits: [(&str, Edit); 10] = [
        ("title", |chart| chart.metadata.title.push('x')),
        ("artist", |chart| chart.metadata.artist.push('x')),
        ("romanised title", |chart| chart.metadata.title_romanised = Some(String::new())),
        ("romanised artist", |chart| chart.metadata.artist_romanised = Some("x".into())),
        ("creator", |chart| chart.metadata.creator.push('x')),
        ("difficulty", |chart| chart.metadata.difficulty.push('x')),
        ("tags", |chart| chart.metadata.tags.swap(0, 1)),
        ("declared source", |chart| chart.declared_source = Some(alpha(5))),
        ("beatmap id", |chart| chart.alpha_beatmap_id = None),
        ("another chart", |chart| chart.hash = hash(99)),
    ];
    let catalogue = Catalogue::create().await;
    for (what, edit) in edits {
        catalogue.put(&folder(1, [chart(1)]), 10).await;
        let mut changed = folder(1, [chart(1)]);
        edit(&mut changed.charts[0]);
        assert_eq!(catalogue.put(&changed, 20).await, UPDATED, "{what}");
        assert_eq!(catalogue.put(&changed, 20).await, UNCHANGED, "{what}");
        catalogue.assert_consistent().await;
    }
    let with_source = ChartsetDraft { exact_source: Some(alpha(5)), ..folder(1, [chart(1)]) };
    assert_eq!(catalogue.put(&with_source, 20).await, UPDATED);
}

#[tokio::test]
async fn a_changed_folder_updates_its_chartset() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1), chart(2)]), 10).await;
    catalogue.put(&folder(2, [chart(3)]), 11).await;
    let put = catalogue.put(&folder(1, [chart(2), chart(4)]), 20).await;
    assert_eq!(put, UPDATED);
    assert_eq!(catalogue.times(id(1)), "20|20");
    assert_eq!(catalogue.times(id(2)), "11|11");
    assert_eq!(catalogue.store.chart(hash(1)).await.unwrap(), None);
    assert_eq!(catalogue.store.rox(hash(1)).await.unwrap(), None);
    let detail = catalogue.store.chartset(id(1)).await.unwrap().unwrap();
    let hashes: Vec<_> = detail.charts.iter().map(|entry| entry.chart.hash).collect();
    assert_eq!(hashes, [hash(4), hash(2)]);
    assert_eq!(catalogue.changed_after(0), [2, 1].map(id));
    assert_eq!(ids(&catalogue.search(&SearchQuery::default()).await), [1, 2]);
    catalogue.assert_consistent().await;
}

#[tokio::test]
async fn a_dropped_chart_stays_known_in_other_sets() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1), chart(2)]), 10).await;
    catalogue.put(&folder(2, [chart(1)]), 10).await;
    catalogue.put(&folder(1, [chart(2)]), 20).await;
    assert!(catalogue.store.chart(hash(1)).await.unwrap().is_some());
    catalogue.put(&folder(2, []), 30).await;
    assert_eq!(catalogue.store.chart(hash(1)).await.unwrap(), None);
    assert_eq!(catalogue.store.chartset(id(2)).await.unwrap(), None);
    catalogue.assert_consistent().await;
}

#[tokio::test]
async fn the_first_file_of_a_hash_decides_its_numbers() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    let mut second = chart(1);
    second.rox = Some(b"other bytes of the same notes".to_vec());
    second.numbers = numbers(7);
    second.metadata.title = "Other".into();
    catalogue.put(&folder(2, [second.clone()]), 20).await;
    let detail = catalogue.store.chartset(id(2)).await.unwrap().unwrap();
    assert_eq!(detail.charts[0].chart.numbers, numbers(1));
    assert_eq!(detail.charts[0].chart.rox_bytes, 8);
    assert_eq!((detail.chartset.title.as_str(), detail.chartset.keys[0].get()), ("Other", 5));

    // Even if the chart returns after no set contained it any more.
    catalogue.put(&folder(1, []), 30).await;
    catalogue.put(&folder(2, []), 30).await;
    assert_eq!(catalogue.store.rox(hash(1)).await.unwrap(), None);
    catalogue.put(&folder(2, [second]), 40).await;
    assert_eq!(catalogue.store.rox(hash(1)).await.unwrap().unwrap().bytes, b"rox of 1");
    catalogue.assert_consistent().await;
}

#[tokio::test]
async fn malicious_text_is_stored() {
    let catalogue = Catalogue::create().await;
    let mut malicious = chart(1);
    malicious.metadata.title = format!("nul\0 {}", "Ж😀 ".repeat(20_000));
    malicious.metadata.artist = "宙".repeat(30_000);
    malicious.metadata.creator = "'; DROP TABLE charts; --\0".into();
    malicious.metadata.title_romanised = Some("x".repeat(100_000));
    malicious.metadata.tags = (0..20_000).map(|number| format!("tag{number}\0")).collect();
    malicious.metadata.tags.push(String::new());
    malicious.alpha_beatmap_id = Some(u64::MAX);
    let draft = ChartsetDraft { path: "nul\0".into(), ..folder(1, [malicious]) };
    assert_eq!(catalogue.put(&draft, 10).await, ADDED);
    assert_eq!(catalogue.put(&draft, 20).await, UNCHANGED);
    let known = catalogue.store.chart(hash(1)).await.unwrap().unwrap();
    assert_eq!(known.chart.creator, "'; DROP TABLE charts; --\u{fffd}");
    catalogue.assert_consistent().await;
}

#[tokio::test]
async fn an_empty_folder_is_stored_and_not_shown() {
    let catalogue = Catalogue::create().await;
    assert_eq!(catalogue.put(&folder(1, []), 10).await, ADDED);
    assert_eq!(catalogue.put(&folder(1, []), 10).await, UNCHANGED);
    assert_eq!(catalogue.store.chartset(id(1)).await.unwrap(), None);
    assert_eq!(catalogue.search(&SearchQuery::default()).await.total, 0);
    catalogue.assert_consistent().await;
}

#[tokio::test]
async fn a_new_chart_needs_its_rox_file() {
    let catalogue = Catalogue::create().await;
    let without = || ChartDraft { rox: None, ..chart(1) };
    let refused = catalogue.store.put_chartset(&folder(1, [without()]), 10).await.unwrap_err();
    assert!(!refused.is_unavailable());
    assert_eq!(catalogue.store.counts().await.unwrap().chartsets, 0, "nothing was stored");
    assert_eq!(catalogue.database.psql("SELECT count(*) FROM rox_files"), "0");
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    catalogue.put(&folder(2, [without()]), 20).await;
    assert_eq!(catalogue.store.rox(hash(1)).await.unwrap().unwrap().bytes, b"rox of 1");
    catalogue.assert_consistent().await;
}
