//! Removed charts and chartsets stay removed until they are restored.

use chart_index_domain::search::SearchQuery;
use chart_index_domain::{ChartsetDraft, ReadError};
use chart_index_store::{CatalogueCounts, PutEffect, PutOutcome, RemovalOutcome};

use crate::support::{Catalogue, alpha, chart, folder, hash, id, ids};

#[tokio::test]
async fn a_removed_chart_stays_removed() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    catalogue.put(&folder(1, [chart(1), chart(2)]), 10).await;
    catalogue.put(&folder(2, [chart(1)]), 10).await;
    assert_eq!(store.remove_chart(hash(1), 20).await.unwrap(), RemovalOutcome::Changed);
    assert_eq!(store.remove_chart(hash(1), 21).await.unwrap(), RemovalOutcome::Unchanged);
    catalogue.put(&folder(1, [chart(1), chart(2)]), 30).await;
    catalogue.put(&folder(3, [chart(1), chart(3)]), 30).await;

    assert_eq!(store.chart(hash(1)).await.unwrap(), None);
    assert_eq!(store.rox(hash(1)).await.unwrap(), None);
    assert_eq!(store.chart_preview(hash(1)).await.unwrap(), None);
    assert_eq!(store.chart_page(hash(1)).await.unwrap(), None);
    assert_eq!(store.chartset(id(2)).await.unwrap(), None);
    let detail = store.chartset(id(1)).await.unwrap().unwrap();
    assert_eq!((detail.charts.len(), detail.chartset.chart_count), (1, 1));
    assert_eq!(ids(&catalogue.search(&SearchQuery::default()).await), [3, 1]);
    assert_eq!(catalogue.times(id(1)), "20|30");
    assert_eq!(store.counts().await.unwrap(), CatalogueCounts { chartsets: 2, charts: 2 });
    catalogue.assert_consistent().await;
}

#[tokio::test]
async fn a_restored_chart_is_back_in_every_set() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    catalogue.put(&folder(1, [chart(1), chart(2)]), 10).await;
    catalogue.put(&folder(2, [chart(1)]), 11).await;
    let before = store.chart(hash(1)).await.unwrap();
    let page = catalogue.search(&SearchQuery::default()).await;
    store.remove_chart(hash(1), 20).await.unwrap();
    assert_eq!(store.restore_chart(hash(1), 30).await.unwrap(), RemovalOutcome::Changed);
    assert_eq!(store.restore_chart(hash(1), 31).await.unwrap(), RemovalOutcome::Unchanged);
    assert_eq!(store.chart(hash(1)).await.unwrap(), before);
    assert_eq!(store.rox(hash(1)).await.unwrap().unwrap(), b"rox of 1");
    assert_eq!(store.chart_preview(hash(1)).await.unwrap().unwrap(), b"{\"preview\":1}");
    let mut restored = catalogue.search(&SearchQuery::default()).await;
    restored.items.reverse();
    assert_eq!(restored, page);
    // The removal is recorded for the chart, which each set shows, and for what each set has lost.
    assert_eq!(catalogue.changes(), [1, 2, 1, 2, 1, 2, 1, 2].map(id));
    catalogue.assert_consistent().await;
}

#[tokio::test]
async fn a_removed_chartset_can_be_restored() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    let draft = ChartsetDraft { exact_source: Some(alpha(5)), ..folder(1, [chart(1), chart(2)]) };
    catalogue.put(&draft, 10).await;
    catalogue.put(&folder(2, [chart(1)]), 10).await;
    assert_eq!(store.remove_chartset(id(1), 20).await.unwrap(), RemovalOutcome::Changed);
    assert_eq!(store.remove_chartset(id(1), 21).await.unwrap(), RemovalOutcome::Unchanged);
    let hidden = |effect| PutOutcome { effect, removed: true };
    assert_eq!(catalogue.put(&draft, 30).await, hidden(PutEffect::Unchanged));
    let changed = ChartsetDraft { charts: vec![chart(1), chart(2), chart(3)], ..draft };
    assert_eq!(catalogue.put(&changed, 31).await, hidden(PutEffect::Updated));

    assert_eq!(store.chartset(id(1)).await.unwrap(), None);
    assert_eq!(store.public_source(id(1)).await.unwrap(), None);
    assert_eq!(store.chart(hash(2)).await.unwrap(), None);
    assert_eq!(store.rox(hash(2)).await.unwrap(), None);
    let shared = store.chart(hash(1)).await.unwrap().unwrap();
    assert_eq!(shared.sources, [], "a removed set is not a source");
    assert_eq!(ids(&catalogue.search(&SearchQuery::default()).await), [2]);
    assert_eq!(store.counts().await.unwrap(), CatalogueCounts { chartsets: 1, charts: 1 });

    assert_eq!(store.restore_chartset(id(1), 40).await.unwrap(), RemovalOutcome::Changed);
    assert_eq!(store.restore_chartset(id(1), 41).await.unwrap(), RemovalOutcome::Unchanged);
    assert_eq!(store.chartset(id(1)).await.unwrap().unwrap().charts.len(), 3);
    assert_eq!(store.public_source(id(1)).await.unwrap(), Some(alpha(5)));
    assert_eq!(catalogue.times(id(1)), "40|31");
    catalogue.assert_consistent().await;
}

#[tokio::test]
async fn a_chart_removed_in_a_removed_set_stays_removed() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    catalogue.put(&folder(1, [chart(1), chart(2)]), 10).await;
    store.remove_chartset(id(1), 20).await.unwrap();
    store.remove_chart(hash(1), 21).await.unwrap();
    store.restore_chartset(id(1), 22).await.unwrap();
    let detail = store.chartset(id(1)).await.unwrap().unwrap();
    assert_eq!(detail.charts.iter().map(|entry| entry.chart.hash).collect::<Vec<_>>(), [hash(2)]);
    catalogue.assert_consistent().await;
}

#[tokio::test]
async fn unknown_charts_and_sets_are_not_found() -> Result<(), ReadError> {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    for outcome in [
        store.remove_chart(hash(1), 1).await,
        store.restore_chart(hash(1), 1).await,
        store.remove_chartset(id(1), 1).await,
        store.restore_chartset(id(1), 1).await,
    ] {
        assert_eq!(outcome.unwrap(), RemovalOutcome::NotFound);
    }
    assert_eq!(store.chart(hash(1)).await?, None);
    assert_eq!(store.rox(hash(1)).await?, None);
    assert_eq!(store.chartset(id(1)).await?, None);
    assert_eq!(store.public_source(id(1)).await?, None);
    Ok(())
}
