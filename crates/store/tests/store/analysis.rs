//! Ratings and patterns of charts (docs/formats/rating.md, docs/formats/patterns.md).

use chart_index_domain::{ChartAnalysis, ChartDraft, Rating};

use crate::support::{Catalogue, OpenTransaction, analysis, chart, curve, folder, hash, id};

#[tokio::test]
async fn every_read_has_the_analysis() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    catalogue.put(&folder(1, [chart(1), chart(5)]), 10).await;
    let many = store.charts(&[hash(1), hash(5), hash(9)]).await.unwrap();
    assert_eq!(many.len(), 2);
    let detail = store.chartset(id(1)).await.unwrap().unwrap();
    for number in [1, 5] {
        let hash = hash(number.into());
        let known = store.chart(hash).await.unwrap().unwrap();
        let ChartAnalysis { rating, patterns } = analysis(number);
        assert_eq!((known.chart.rating, known.chart.patterns), (rating, Some(patterns)));
        assert_eq!(many[&hash], known);
        assert_eq!(store.chart_page(hash).await.unwrap().unwrap().chart, known.chart);
        assert!(detail.charts.iter().any(|entry| entry.chart == known.chart));
    }
}

#[tokio::test]
async fn records_have_the_analysis_of_this_version() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    let read = async || {
        let record = &catalogue.store.chartset_records(&[id(1)]).await.unwrap()[0].record;
        (record.charts[0].rating, record.charts[0].patterns)
    };
    assert_eq!(read().await, (analysis(1).rating, Some(analysis(1).patterns)));
    for version in [0, 2] {
        catalogue.database.psql(&format!("UPDATE charts SET analysis_version = {version}"));
        assert_eq!(read().await, (None, None));
        let known = catalogue.store.chart(hash(1)).await.unwrap().unwrap();
        assert!(known.chart.patterns.is_none());
    }
}

/// Their records have the rating.
#[tokio::test]
async fn chartsets_of_analysed_charts_change() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1), chart(2)]), 10).await;
    catalogue.put(&folder(2, [chart(2), chart(3)]), 10).await;
    let before = catalogue.last_sequence();
    let computed = |number, analysis| ChartDraft { analysis: Some(analysis), ..chart(number) };
    let other = ChartAnalysis { rating: Rating::from_hundredths(1_500), ..analysis(2) };
    let charts = [computed(1, analysis(1)), computed(2, other), computed(3, analysis(3))];
    assert_eq!(catalogue.store.put_computed(&charts).await.unwrap(), [hash(2)]);
    let mut changed = catalogue.changed_after(before);
    changed.sort_unstable();
    assert_eq!(changed, [id(1), id(2)]);
    let before = catalogue.last_sequence();
    let with_curve = ChartDraft { curve: Some(curve(9)), ..chart(3) };
    catalogue.store.put_computed(&[with_curve]).await.unwrap();
    assert_eq!(catalogue.changed_after(before), [], "density curves are in no record");
}

/// An ingest that has written what lists filter by, but is not committed, has seen the earlier analysis.
#[tokio::test(flavor = "multi_thread")]
async fn backfill_waits_for_ingests() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    catalogue.database.psql(
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql
             AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER wait_before_commit AFTER INSERT ON chartsets
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()",
    );
    let mut lock = OpenTransaction::begin(catalogue.database.url());
    lock.run("SELECT FROM pg_advisory_xact_lock(1)");
    let store = catalogue.store.clone();
    let ingest = tokio::spawn(async move { store.put_chartset(&folder(2, [chart(1)]), 10).await });
    catalogue.wait_for_blocked_sessions(1).await;
    let store = catalogue.store.clone();
    let computed = ChartDraft { analysis: Some(analysis(7)), ..chart(1) };
    let backfill = tokio::spawn(async move { store.put_computed(&[computed]).await });
    catalogue.wait_for_blocked_sessions(2).await;
    lock.commit();
    ingest.await.unwrap().unwrap();
    assert_eq!(backfill.await.unwrap().unwrap(), [hash(1)]);
    catalogue.assert_consistent().await;
    let ratings = "SELECT count(*), min(rating), max(rating) FROM shown_charts";
    assert_eq!(catalogue.database.psql(ratings), "2|207|207");
}

#[tokio::test]
async fn replaced_rox_file_replaces_the_analysis() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    let replacement = ChartDraft { analysis: Some(analysis(7)), rox: Some(vec![7]), ..chart(1) };
    assert!(catalogue.store.replace_rox(&replacement, None).await.unwrap());
    let stored = catalogue.store.stored_charts_after(None, 1).await.unwrap();
    assert_eq!(stored[0].values.analysis, Some(analysis(7)));
}
