//! Chartsets of an export are stored in batches.

use chart_index_domain::{ChartsetDraft, Entity};
use chart_index_store::{
    CatalogueCounts, ImportOutcome, ImportedChartset, Precedence, PutEffect, PutOutcome, Removal,
};

use crate::support::{Catalogue, chart, folder, hash, id, removal};

/// The chartset as an export has it: without ROX files and path.
fn imported(draft: &ChartsetDraft, updated_at_ms: i64) -> ImportedChartset {
    let mut draft = ChartsetDraft { path: String::new(), ..draft.clone() };
    draft.charts.iter_mut().for_each(|chart| (chart.rox, chart.curve) = (None, None));
    ImportedChartset { draft, updated_at_ms, checked_at_ms: updated_at_ms + 5 }
}

const fn stored(effect: PutEffect, removed: bool) -> ImportOutcome {
    ImportOutcome::Stored(PutOutcome { effect, removed })
}

#[tokio::test]
async fn each_chartset_of_a_batch_has_its_outcome() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    let folders: Vec<_> = (1..=6).map(|number| folder(number.into(), [chart(number), chart(7)])).collect();
    catalogue.put(&folders[0], 10).await;
    catalogue.put(&folder(2, [chart(2), chart(8)]), 10).await;
    catalogue.put(&folders[2], 30).await;
    catalogue.remove(id(4), 15).await;
    let erased = Removal { erased: true, ..removal(id(5), 15) };
    store.remove(&[erased, Removal { erased: true, ..removal(hash(6), 15) }], 15).await.unwrap();
    store.put_charts(&[chart(2), chart(4), chart(5), chart(7)], 16).await.unwrap();

    let times = [10, 20, 20, 20, 20, 20];
    let batch: Vec<_> = folders.iter().zip(times).map(|(draft, time)| imported(draft, time)).collect();
    let mut outcomes = store.import_chartsets(&batch, Precedence::Stored, 40).await.unwrap();
    let mut expected = vec![
        stored(PutEffect::Unchanged, false),
        stored(PutEffect::Updated, false),
        ImportOutcome::Newer,
        stored(PutEffect::Added, true),
        stored(PutEffect::Unchanged, true),
        stored(PutEffect::Added, false),
    ];
    outcomes.sort_by_key(|outcome| format!("{outcome:?}"));
    expected.sort_by_key(|outcome| format!("{outcome:?}"));
    assert_eq!(outcomes, expected);
    let times: Vec<_> = [1, 2, 3, 4, 6].map(|number| catalogue.times(id(number))).into();
    assert_eq!(times, ["10|15", "20|25", "30|30", "20|25", "20|25"]);
    let hashes = async |number| {
        let detail = store.chartset(id(number)).await.unwrap();
        detail.map(|detail| detail.charts.iter().map(|entry| entry.chart.hash).collect::<Vec<_>>())
    };
    assert_eq!(hashes(2).await, Some(vec![hash(2), hash(7)]), "chart 8 left the chartset");
    assert_eq!(hashes(4).await, None);
    assert_eq!(hashes(6).await, Some(vec![hash(7)]), "chart 6 was erased");
    let rows = "SELECT count(*), min(path) FROM chartsets WHERE id LIKE '%5' OR id LIKE '%2'";
    assert_eq!(catalogue.database.psql(rows), "1|alpha/2");
    assert_eq!(store.counts().await.unwrap(), CatalogueCounts { chartsets: 4, charts: 4 });
    catalogue.assert_consistent().await;
    assert_eq!(store.feed_mismatches().await.unwrap(), []);
}

#[tokio::test]
async fn every_column_of_a_batch_is_that_of_single_chartsets() {
    let (single, batch) = (Catalogue::create().await, Catalogue::create().await);
    let mut odd = chart(3);
    odd.metadata.title = r#"{"quoted", \back, 'single'} NULL"#.into();
    odd.metadata.title_romanised = Some(String::new());
    odd.metadata.tags = vec![r#"a "b" \c, {d}"#.into(), "NULL".into(), " ".into(), "歌".into()];
    let mut bare = chart(4);
    bare.metadata.tags.clear();
    let drafts = [folder(1, [chart(1), chart(2)]), folder(2, [odd, chart(2)]), folder(3, [bare])];
    for draft in &drafts {
        single.put(&ChartsetDraft { path: String::new(), ..draft.clone() }, 10).await;
    }
    let charts: Vec<_> = drafts.iter().flat_map(|draft| draft.charts.clone()).collect();
    batch.store.put_charts(&charts[..3], 10).await.unwrap();
    batch.store.put_charts(&charts[4..], 10).await.unwrap();
    let imported: Vec<_> = drafts.iter().map(|draft| imported(draft, 10)).collect();
    batch.store.import_chartsets(&imported, Precedence::Stored, 10).await.unwrap();
    for rows in [
        "SELECT to_jsonb(t) - 'checked_at_ms' FROM chartsets AS t ORDER BY id",
        "SELECT to_jsonb(t) FROM chartset_charts AS t ORDER BY chartset_id, chart_hash",
        "SELECT to_jsonb(t) FROM shown_chartsets AS t ORDER BY id",
        "SELECT entity FROM catalogue_changes ORDER BY entity",
    ] {
        assert_eq!(batch.database.psql(rows), single.database.psql(rows));
    }
    let entity = Entity::from(id(2));
    for catalogue in [&single, &batch] {
        catalogue.remove(entity, 20).await;
        assert!(catalogue.restore(entity, 30).await);
        catalogue.assert_consistent().await;
    }
}
