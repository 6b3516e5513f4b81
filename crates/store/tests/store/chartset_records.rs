//! Records of chartsets: what exports and the change feed contain.

use chart_index_domain::{ChartsetDraft, ChartsetRecord};

use crate::support::{Catalogue, alpha, beta, chart, folder, hash, id};

#[tokio::test]
async fn record_has_all_that_is_shown() {
    let catalogue = Catalogue::create().await;
    let mut declaring = chart(1);
    declaring.declared_source = Some(alpha(8));
    declaring.alpha_beatmap_id = Some(77);
    declaring.metadata.title_romanised = Some("Mirai".into());
    let draft = ChartsetDraft { exact_source: Some(alpha(9)), ..folder(3, [declaring.clone(), chart(2)]) };
    catalogue.put(&draft, 10).await;
    catalogue.put(&draft, 12).await;
    let [checked] = &catalogue.store.chartset_records(&[id(3)]).await.unwrap()[..] else {
        panic!("one record")
    };
    assert_eq!((checked.checked_at_ms, checked.record.updated_at_ms), (12, 10));
    assert_eq!(checked.record.exact_source, Some(alpha(9)));
    let detail = catalogue.store.chartset(id(3)).await.unwrap().unwrap();
    let order: Vec<_> = detail.charts.iter().map(|chart| chart.chart.hash).collect();
    assert_eq!(checked.record.charts.iter().map(|chart| chart.hash).collect::<Vec<_>>(), order);
    let stored = checked.record.charts.iter().find(|chart| chart.hash == declaring.hash).unwrap();
    assert_eq!((&stored.metadata, &stored.declared_source), (&declaring.metadata, &Some(alpha(8))));
    assert_eq!((stored.numbers, stored.alpha_beatmap_id), (declaring.numbers, Some(77)));
    assert_eq!(stored.rox_bytes, declaring.rox.as_ref().unwrap().len() as u64);
}

#[tokio::test]
async fn what_is_removed_is_in_no_record() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1), chart(2)]), 10).await;
    catalogue.put(&folder(2, [chart(2)]), 10).await;
    catalogue.put(&folder(3, [chart(3)]), 10).await;
    catalogue.remove(hash(2), 11).await;
    catalogue.remove(id(3), 11).await;
    let records = catalogue.store.chartset_records(&[id(3), id(2), id(1), id(9)]).await.unwrap();
    let shown: Vec<_> =
        records.iter().map(|checked| (checked.record.id, checked.record.charts.len())).collect();
    assert_eq!(shown, [(id(1), 1)]);
}

/// What is read from a record is what was read from the files.
#[tokio::test]
async fn draft_of_a_record_has_the_content_of_the_chartset() {
    let catalogue = Catalogue::create().await;
    let mut in_pack = chart(2);
    in_pack.alpha_beatmap_id = None;
    for draft in [
        folder(1, [chart(1), chart(3)]),
        ChartsetDraft { exact_source: Some(beta(5)), ..folder(2, [in_pack]) },
    ] {
        catalogue.put(&draft, 10).await;
        let records = catalogue.store.chartset_records(&[draft.id]).await.unwrap();
        let json = serde_json::to_string(&records[0].record).unwrap();
        let record: ChartsetRecord = serde_json::from_str(&json).unwrap();
        let read = record.into_draft().unwrap();
        assert_eq!(
            chart_index_store::content_fingerprint(&read),
            chart_index_store::content_fingerprint(&draft)
        );
    }
}
