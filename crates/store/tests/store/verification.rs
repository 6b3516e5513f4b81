//! Verification finds stored values that differ from derived ones.

use std::time::Duration;

use chart_index_domain::NoteHash;
use chart_index_store::BackfillState;
use chart_index_tests::within;

use crate::support::{Catalogue, analysis, chart, curve, folder, hash, id};

#[tokio::test]
async fn a_changed_column_is_found() {
    for (column, tampering) in [
        ("title", "title = 'x'"),
        ("keys", "keys = '{7}'"),
        ("bpm_max", "bpm_max = bpm_max + 0.001"),
        ("length_min_ms", "length_min_ms = length_min_ms - 1"),
        ("source_kind", "source_kind = 'alphaSet', source_ref = '1'"),
        ("chart_count", "chart_count = chart_count + 1"),
        ("tags", "tags = '{}'"),
        ("creator_search", "creator_search = ''"),
        ("lexemes", "search_words = ''"),
    ] {
        let catalogue = Catalogue::create().await;
        for number in 1..=3 {
            catalogue.put(&folder(number, [chart(u32::try_from(number).unwrap())]), 10).await;
        }
        let statement = format!("UPDATE chartsets SET {tampering} WHERE id = '{}'", id(2));
        let _ = catalogue.database.psql(&statement);
        let (mismatches, _) = catalogue.store.column_mismatches(None, 10).await.unwrap();
        assert_eq!((mismatches[0].id, mismatches[0].column), (id(2), column));
        assert_ne!(mismatches[0].stored, mismatches[0].expected);
    }
}

/// With all files below it, each page of a million charts took seconds.
#[tokio::test]
async fn a_page_reads_its_own_rox_files() {
    let catalogue = Catalogue::create().await;
    catalogue.database.psql(
        "INSERT INTO charts (hash, keys, bpm_min, bpm_max, bpm_main, length_ms, notes, lns, density_avg, density_peak,
                             rox_bytes, first_seen_ms)
         SELECT sha256(number::text::bytea), 4, 100, 100, 100, 60000, 10, 0, 1, 1, 1, 1
         FROM generate_series(1, 20000) AS number;
         INSERT INTO rox_files SELECT hash, '\\x00' FROM charts",
    );
    catalogue.database.psql("VACUUM (ANALYZE) charts, rox_files");
    let page =
        catalogue.store.stored_charts_after(Some(NoteHash::from_bytes([0xf0; 32])), 100).await.unwrap();
    assert_eq!(page.len(), 100);
    // Connections report what they read when they end.
    catalogue.store.close().await;
    let read = "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_user_tables WHERE relname = 'rox_files'";
    let reported = async || Some(catalogue.database.psql(read).parse().unwrap()).filter(|rows| *rows > 0);
    let (rows, _): (u32, _) = within(Duration::from_secs(10), reported).await;
    assert!(rows <= 200, "{rows}");
}

#[tokio::test]
async fn checks_cover_every_page() {
    let catalogue = Catalogue::create().await;
    for number in 1..=5 {
        let charts = [chart(number), chart(number + 10)];
        catalogue.put(&folder(number.into(), charts), 10).await;
    }
    catalogue.remove(hash(1), 20).await;
    catalogue.put(&folder(2, []), 20).await;
    let mut after = None;
    let mut pages = 0;
    loop {
        let (mismatches, next) = catalogue.store.column_mismatches(after, 2).await.unwrap();
        assert_eq!(mismatches, []);
        let Some(next) = next else { break };
        after = Some(next);
        pages += 1;
    }
    assert_eq!((after, pages), (Some(id(5)), 3));

    let mut seen: Vec<NoteHash> = Vec::new();
    loop {
        let page = catalogue.store.stored_charts_after(seen.last().copied(), 3).await.unwrap();
        if page.is_empty() {
            break;
        }
        assert!(page.iter().all(|chart| chart.values.rox_bytes == chart.rox.len() as u64));
        seen.extend(page.iter().map(|chart| chart.hash));
    }
    let mut expected: Vec<NoteHash> = (1..=5).chain(11..=15).map(hash).collect();
    expected.sort();
    assert_eq!(seen, expected, "including removed charts and those in no set");
}

#[tokio::test]
async fn computed_values_are_written_once() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    catalogue.put(&folder(1, [chart(1), chart(2), chart(3), chart(4), chart(5)]), 10).await;
    catalogue.database.psql(&format!(
        "UPDATE charts SET density_curve = NULL WHERE hash IN ('\\x{0}', '\\x{1}');
         UPDATE charts SET analysis_version = 0 WHERE hash IN ('\\x{1}', '\\x{2}')",
        hash(1),
        hash(2),
        hash(5)
    ));
    let mut states: Vec<BackfillState> = Vec::new();
    loop {
        let page = store.backfill_states_after(states.last().map(|state| state.hash), 2).await.unwrap();
        if page.is_empty() {
            break;
        }
        states.extend(page);
    }
    assert_eq!(states.len(), 5);
    assert!(states.iter().all(|state| state.rox_bytes == 8));
    let missing = |state: &&BackfillState| !state.is_complete;
    let mut missing: Vec<NoteHash> = states.iter().filter(missing).map(|state| state.hash).collect();
    let mut expected = [1, 2, 5].map(hash);
    expected.sort();
    assert_eq!(missing, expected);

    let mut files = store.rox_files(&[hash(2), hash(1), hash(9)]).await.unwrap();
    files.sort();
    let mut expected = [1_u8, 2].map(|number| (hash(number.into()), format!("rox of {number}").into_bytes()));
    expected.sort();
    assert_eq!(files, expected);

    let computed = [5, 4, 3, 2, 1].map(chart);
    let mut changed = store.put_computed(&computed).await.unwrap();
    changed.sort();
    missing.sort();
    assert_eq!(changed, missing, "not the one that is there");
    assert_eq!(store.put_computed(&computed).await.unwrap(), []);
    for stored in store.stored_charts_after(None, 10).await.unwrap() {
        let number = (1..=5).find(|&number| hash(number) == stored.hash).unwrap();
        let number = number.try_into().unwrap();
        let expected = (Some(curve(number)), Some(analysis(number)));
        assert_eq!((stored.values.curve, stored.values.analysis), expected);
    }
    assert_eq!(store.stored_chart_count().await.unwrap(), 5);
}

#[tokio::test]
async fn a_missing_rox_file_is_read_as_empty() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    let _ = catalogue.database.psql("DELETE FROM rox_files");
    let stored = catalogue.store.stored_charts_after(None, 10).await.unwrap();
    assert_eq!((stored[0].rox.len(), stored[0].values.rox_bytes), (0, 8));
}
