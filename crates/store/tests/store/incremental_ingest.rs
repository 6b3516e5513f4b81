//! Incremental ingest: checks and fingerprints.

use chart_index_domain::ChartsetDraft;
use chart_index_store::{ExpectedChartset, InputFingerprint, UnchangedChartset, content_fingerprint};

use crate::support::{Catalogue, alpha, chart, config, folder, hash, id};

fn expected(draft: &ChartsetDraft) -> ExpectedChartset {
    ExpectedChartset { id: draft.id, fingerprint: content_fingerprint(draft), path: draft.path.clone() }
}

fn fingerprint(input: u8, content: u8) -> InputFingerprint {
    let outcome = format!("outcome of {input}\0");
    InputFingerprint {
        input_key: [input; 32],
        file_metadata_digest: Some([content; 32]),
        content_digest: [content; 32],
        outcome,
    }
}

#[tokio::test]
async fn unchanged_chartsets_are_checked_together() {
    let catalogue = Catalogue::create().await;
    let drafts = [1, 2, 3].map(|number| folder(number, [chart(u32::try_from(number).unwrap())]));
    for draft in &drafts {
        catalogue.put(draft, 10).await;
    }
    catalogue.remove(id(2), 11).await;
    let before = catalogue.last_sequence();
    let changed = folder(3, [chart(4)]);
    let unknown = folder(9, [chart(9)]);
    let requested = [&drafts[1], &drafts[0], &drafts[0], &changed, &unknown].map(expected);
    let mut checked = catalogue.store.record_unchanged_chartsets(&requested, 20).await.unwrap();
    checked.sort_by_key(|chartset| chartset.id);
    checked.dedup();
    let found = [(0, false), (1, true)].map(|(at, removed)| {
        let ExpectedChartset { id, fingerprint, .. } = expected(&drafts[at]);
        UnchangedChartset { id, fingerprint, removed }
    });
    assert_eq!(checked, found);
    assert_eq!([1, 2, 3].map(|number| catalogue.times(id(number))), ["10|20", "11|20", "10|10"]);
    let _ = catalogue.store.record_unchanged_chartsets(&requested, 15).await.unwrap();
    assert_eq!(catalogue.times(id(1)), "10|20", "the last check never decreases");
    assert_eq!(catalogue.last_sequence(), before);
}

/// The row of a chartset is wide, and a new version of it is written to every index. A write to the narrow
/// table would clear the all-visible bits of its pages.
#[tokio::test]
async fn a_check_writes_no_row_of_the_chartset() {
    let catalogue = Catalogue::create().await;
    let draft = folder(1, [chart(1)]);
    catalogue.put(&draft, 10).await;
    let version = |table: &str| catalogue.database.psql(&format!("SELECT ctid, xmin FROM {table}"));
    let (wide, narrow) = (version("chartsets"), version("shown_chartsets"));
    catalogue.put(&draft, 20).await;
    let _ = catalogue.store.record_unchanged_chartsets(&[expected(&draft)], 30).await.unwrap();
    assert_eq!(version("chartsets"), wide);
    assert_eq!(catalogue.times(id(1)), "10|30");
    catalogue.put(&ChartsetDraft { path: "elsewhere".into(), ..draft }, 40).await;
    assert_eq!(version("shown_chartsets"), narrow);
    assert_eq!(catalogue.times(id(1)), "10|40");
}

#[tokio::test]
async fn sources_have_the_time_of_the_last_check() {
    let catalogue = Catalogue::create().await;
    let draft = ChartsetDraft { exact_source: Some(alpha(5)), ..folder(1, [chart(1)]) };
    catalogue.put(&draft, 10).await;
    for checked_at_ms in [10, 20] {
        let _ = catalogue.store.record_unchanged_chartsets(&[expected(&draft)], checked_at_ms).await.unwrap();
        let known = catalogue.store.chart(hash(1)).await.unwrap().unwrap();
        let detail = catalogue.store.chartset(id(1)).await.unwrap().unwrap();
        assert_eq!(
            [&known.sources, &detail.sources].map(|sources| sources[0].checked_at_ms),
            [checked_at_ms; 2]
        );
    }
}

#[tokio::test]
async fn fingerprints_are_read_as_they_were_stored() {
    let catalogue = Catalogue::create().await;
    let without = InputFingerprint { file_metadata_digest: None, ..fingerprint(2, 2) };
    catalogue.store.put_input_fingerprints(&[fingerprint(1, 1), without.clone()]).await.unwrap();
    catalogue.store.put_input_fingerprints(&[fingerprint(1, 3)]).await.unwrap();
    let mut read = catalogue.store.input_fingerprints(&[[1; 32], [2; 32], [9; 32]]).await.unwrap();
    read.sort_by_key(|fingerprint| fingerprint.input_key);
    let stored = |fingerprint: InputFingerprint| InputFingerprint {
        outcome: fingerprint.outcome.replace('\0', "\u{fffd}"),
        ..fingerprint
    };
    assert_eq!(read, [stored(fingerprint(1, 3)), stored(without)]);
}

#[tokio::test]
async fn chart_hashes_of_several_chartsets() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1), chart(2)]), 10).await;
    catalogue.put(&folder(2, [chart(2), chart(3)]), 10).await;
    catalogue.put(&folder(3, [chart(4)]), 10).await;
    let mut charts: Vec<_> =
        catalogue.store.chart_hashes_in(&[id(1), id(2), id(9)]).await.unwrap().into_iter().collect();
    charts.sort_unstable();
    let mut all = [1, 2, 3].map(hash);
    all.sort_unstable();
    assert_eq!(charts, all);
}

#[tokio::test]
async fn rejected_values_differ_from_other_failures() {
    let catalogue = Catalogue::create().await;
    let _ = catalogue.database.psql("ALTER TABLE chartsets ADD CHECK (path <> 'alpha/1')");
    let rejected = catalogue.store.put_chartset(&folder(1, [chart(1)]), 10).await.unwrap_err();
    assert_eq!((rejected.is_rejected(), rejected.is_unavailable()), (true, false), "{rejected:?}");
    catalogue.put(&folder(2, [chart(1)]), 10).await;
    let _ = catalogue.database.psql("DROP TABLE chartset_checks CASCADE");
    let failed = catalogue.store.put_chartset(&folder(2, [chart(1)]), 10).await.unwrap_err();
    assert_eq!((failed.is_rejected(), failed.is_unavailable()), (false, false), "{failed:?}");
    let unreachable = chart_index_store::Store::new(&config("postgres://127.0.0.1:1/none"));
    let unavailable = unreachable.put_chartset(&folder(1, [chart(1)]), 10).await.unwrap_err();
    assert_eq!((unavailable.is_rejected(), unavailable.is_unavailable()), (false, true), "{unavailable:?}");
}
