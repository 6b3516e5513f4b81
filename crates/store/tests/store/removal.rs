//! Removed charts and chartsets stay removed until they are restored.

use chart_index_domain::search::{SearchQuery, parse_query_string};
use chart_index_domain::{ChartsetDraft, Entity};
use chart_index_store::{CatalogueCounts, PutEffect, PutOutcome, Removal, RemovalOutcome, Store};
use chart_index_tests::PrivatePostgres;

use crate::support::{Catalogue, OpenTransaction, alpha, chart, config, folder, hash, id, ids, removal};

#[tokio::test]
async fn a_removed_chart_stays_removed() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    catalogue.put(&folder(1, [chart(1), chart(2)]), 10).await;
    catalogue.put(&folder(2, [chart(1)]), 10).await;
    assert_eq!(catalogue.remove(hash(1), 20).await, RemovalOutcome::Removed);
    assert_eq!(catalogue.remove(hash(1), 21).await, RemovalOutcome::AlreadyRemoved);
    catalogue.put(&folder(1, [chart(1), chart(2)]), 30).await;
    catalogue.put(&folder(3, [chart(1), chart(3)]), 30).await;

    assert_eq!(store.chart(hash(1)).await.unwrap(), None);
    assert_eq!(store.rox(hash(1)).await.unwrap(), None);
    assert_eq!(store.chart_page(hash(1)).await.unwrap(), None);
    assert_eq!(store.chartset(id(2)).await.unwrap(), None);
    let detail = store.chartset(id(1)).await.unwrap().unwrap();
    assert_eq!((detail.charts.len(), detail.chartset.chart_count), (1, 1));
    assert_eq!(ids(&catalogue.search(&SearchQuery::default()).await), [3, 1]);
    let like_the_removed_one = parse_query_string("keys=5&notesMin=1").unwrap();
    assert_eq!(catalogue.search(&like_the_removed_one).await.total, 0);
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
    catalogue.remove(hash(1), 20).await;
    assert!(catalogue.restore(hash(1), 30).await);
    assert!(!catalogue.restore(hash(1), 31).await);
    assert_eq!(store.chart(hash(1)).await.unwrap(), before);
    assert_eq!(store.rox(hash(1)).await.unwrap().unwrap().bytes, b"rox of 1");
    let mut restored = catalogue.search(&SearchQuery::default()).await;
    restored.items.reverse();
    assert_eq!(restored, page);
    assert_eq!(catalogue.changed_after(0), [1, 2].map(id));
    catalogue.assert_consistent().await;
}

#[tokio::test]
async fn a_removed_chartset_can_be_restored() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    let draft = ChartsetDraft { exact_source: Some(alpha(5)), ..folder(1, [chart(1), chart(2)]) };
    catalogue.put(&draft, 10).await;
    catalogue.put(&folder(2, [chart(1)]), 10).await;
    assert_eq!(catalogue.remove(id(1), 20).await, RemovalOutcome::Removed);
    assert_eq!(catalogue.remove(id(1), 21).await, RemovalOutcome::AlreadyRemoved);
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

    assert!(catalogue.restore(id(1), 40).await);
    assert!(!catalogue.restore(id(1), 41).await);
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
    catalogue.remove(id(1), 20).await;
    catalogue.remove(hash(1), 21).await;
    catalogue.restore(id(1), 22).await;
    let detail = store.chartset(id(1)).await.unwrap().unwrap();
    assert_eq!(detail.charts.iter().map(|entry| entry.chart.hash).collect::<Vec<_>>(), [hash(2)]);
    catalogue.assert_consistent().await;
}

#[tokio::test]
async fn what_is_not_stored_can_be_removed() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    let reason = Some("a letter\0".to_owned());
    let removals = [removal(hash(1), 5), Removal { reason, ..removal(id(2), 4) }, removal(hash(9), 6)];
    assert_eq!(store.remove(&removals, 10).await.unwrap(), [RemovalOutcome::NotStored; 3]);
    assert_eq!(catalogue.remove(hash(1), 11).await, RemovalOutcome::AlreadyRemoved);
    let list = store.removals().await.unwrap();
    assert_eq!(list.iter().map(|removal| removal.removed_at_ms).collect::<Vec<_>>(), [4, 5, 6]);
    assert_eq!(list[0].reason.as_deref(), Some("a letter\u{fffd}"));

    let hidden = PutOutcome { effect: PutEffect::Added, removed: true };
    catalogue.put(&folder(1, [chart(1), chart(2)]), 20).await;
    assert_eq!(catalogue.put(&folder(2, [chart(2), chart(3)]), 20).await, hidden);
    catalogue.put(&folder(3, [chart(1)]), 20).await;
    assert_eq!(ids(&catalogue.search(&SearchQuery::default()).await), [1]);
    let detail = store.chartset(id(1)).await.unwrap().unwrap();
    assert_eq!(detail.charts.iter().map(|entry| entry.chart.hash).collect::<Vec<_>>(), [hash(2)]);
    for removed in [hash(1), hash(3)] {
        assert_eq!(store.chart(removed).await.unwrap(), None);
        assert_eq!(store.rox(removed).await.unwrap(), None);
    }
    catalogue.assert_consistent().await;

    assert!(catalogue.restore(hash(1), 30).await && catalogue.restore(id(2), 31).await);
    assert!(!catalogue.restore(id(2), 32).await && !catalogue.restore(hash(8), 32).await);
    assert_eq!(ids(&catalogue.search(&SearchQuery::default()).await), [2, 1, 3]);
    assert_eq!(store.removals().await.unwrap(), [removal(hash(9), 6)]);
    catalogue.assert_consistent().await;
}

/// An ingest that begins while a removal runs, waits for it: it would not see the removal otherwise, which does
/// not see what the ingest stores.
#[tokio::test]
async fn ingests_wait_for_a_removal() {
    let catalogue = Catalogue::create().await;
    let mut removing = OpenTransaction::begin(catalogue.database.url());
    removing.run("DO $$ BEGIN PERFORM pg_advisory_xact_lock(7105212083226935400); END $$");
    for removed in [hash(1).to_string(), id(2).to_string(), hash(3).to_string()] {
        removing.run(&format!("INSERT INTO removals (entity, removed_at_ms) VALUES ('\\x{removed}', 5)"));
    }
    let put = |draft: ChartsetDraft| {
        let store = catalogue.store.clone();
        tokio::spawn(async move { store.put_chartset(&draft, 10).await.map(drop) })
    };
    let store = catalogue.store.clone();
    let put_charts = tokio::spawn(async move { store.put_charts(&[chart(3)], 10).await });
    let ingests = [put(folder(1, [chart(1), chart(4)])), put(folder(2, [chart(4), chart(5)])), put_charts];
    catalogue.wait_for_blocked_sessions(3).await;
    removing.commit();
    for ingest in ingests {
        ingest.await.unwrap().unwrap();
    }
    assert_eq!(ids(&catalogue.search(&SearchQuery::default()).await), [1]);
    let removed = "SELECT count(*) FROM charts WHERE removed_at_ms = 5";
    assert_eq!(catalogue.database.psql(removed), "2");
    catalogue.assert_consistent().await;
}

/// A removal that begins while an ingest runs, waits for it.
#[tokio::test]
async fn removals_wait_for_ingests() {
    let catalogue = Catalogue::create().await;
    for entity in [Entity::from(hash(1)), Entity::from(id(1))] {
        let mut ingest = OpenTransaction::begin(catalogue.database.url());
        ingest.run("DO $$ BEGIN PERFORM pg_advisory_xact_lock_shared(7105212083226935400); END $$");
        let store = catalogue.store.clone();
        let remove = tokio::spawn(async move { store.remove(&[removal(entity, 5)], 5).await });
        catalogue.wait_for_blocked_sessions(1).await;
        ingest.commit();
        assert_eq!(remove.await.unwrap().unwrap(), [RemovalOutcome::NotStored]);
    }
}

#[tokio::test]
async fn erased_entries_are_deleted_and_not_stored_again() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    let drafts = [folder(1, [chart(1), chart(2)]), folder(2, [chart(2), chart(3)]), folder(3, [chart(4)])];
    for draft in &drafts {
        catalogue.put(draft, 10).await;
    }
    // By a version before this one.
    let previews = "INSERT INTO chart_previews (hash, json) SELECT hash, '{}' FROM charts";
    assert_eq!(catalogue.database.psql(previews), "");
    let erase = |entity: Entity| [Removal { erased: true, ..removal(entity, 20) }];
    assert_eq!(store.remove(&erase(hash(1).into()), 20).await.unwrap(), [RemovalOutcome::Removed]);
    catalogue.remove(id(2), 20).await;
    assert_eq!(store.remove(&erase(id(2).into()), 20).await.unwrap(), [RemovalOutcome::AlreadyRemoved]);
    let stored = || {
        catalogue.database.psql(
            "SELECT (SELECT count(*) FROM charts), (SELECT count(*) FROM rox_files),
                    (SELECT count(*) FROM chart_previews), (SELECT count(*) FROM chartset_charts),
                    (SELECT count(*) FROM chartsets), (SELECT count(*) FROM removals WHERE erased)",
        )
    };
    // Chart 2 is in set 1 as well; chart 3 was in set 2 only.
    assert_eq!(stored(), "2|2|2|2|2|2");
    catalogue.assert_consistent().await;
    assert_eq!(store.feed_mismatches().await.unwrap(), []);

    for now_ms in [30, 31] {
        let mut outcomes = Vec::new();
        for draft in &drafts {
            outcomes.push(catalogue.put(draft, now_ms).await);
        }
        let first = if now_ms == 30 { PutEffect::Updated } else { PutEffect::Unchanged };
        let outcome = |effect, removed| PutOutcome { effect, removed };
        let unchanged = PutEffect::Unchanged;
        assert_eq!(outcomes, [outcome(first, false), outcome(unchanged, true), outcome(unchanged, false)]);
        assert_eq!(stored(), "2|2|2|2|2|2");
    }
    // Read when chart 1 was stored, which has been erased since, and stored together with a new chart.
    let mut without_file = folder(4, [chart(1), chart(2)]);
    without_file.charts.iter_mut().for_each(|chart| chart.rox = None);
    store.put_chartsets(&[&without_file, &folder(5, [chart(5)])], 32).await.unwrap();
    assert_eq!(store.chart(hash(1)).await.unwrap(), None);
    assert!(store.chart(hash(5)).await.unwrap().is_some());
    assert_eq!(catalogue.database.psql("SELECT count(*) FROM charts"), "3");

    assert!(catalogue.restore(hash(1), 40).await && catalogue.restore(id(2), 40).await);
    assert_eq!(store.chart(hash(1)).await.unwrap(), None, "its data is gone");
    for draft in &drafts {
        catalogue.put(draft, 41).await;
    }
    assert!(store.chart(hash(1)).await.unwrap().is_some());
    assert_eq!(store.chartset(id(2)).await.unwrap().unwrap().charts.len(), 2);
    catalogue.assert_consistent().await;
}

/// Rows as an ingest stores them, of 20,000 chartsets. The inputs of 20,000 chartsets that are not stored are
/// recorded as well.
const LARGE: &str = "
    SET session_replication_role = replica;
    INSERT INTO charts (hash, keys, bpm_min, bpm_max, bpm_main, length_ms, notes, lns, density_avg, density_peak,
                        rox_bytes, first_seen_ms)
    SELECT sha256(n::text::bytea), 4, 120, 120, 120, 1000, 1, 0, 1, 1, 1, 1 FROM generate_series(1, 20000) AS n;
    INSERT INTO chartsets
    (id, path, content_fingerprint, checked_at_ms, updated_at_ms, title, artist, creator, keys, bpm_min, bpm_max,
     length_min_ms, length_max_ms, density_max, chart_count, tags, romanised_names, title_sort, artist_sort,
     creator_search, search_words)
    SELECT lpad(to_hex(n), 16, '0'), 'alpha/' || n, sha256('a'), 1, 1, 'Title', 'Artist', 'Creator', '{4}', 120, 120,
           1000, 1000, 1, 1, '{}', '{}', 'title', 'artist', 'creator', '' FROM generate_series(1, 20000) AS n;
    INSERT INTO chartset_charts (chartset_id, chart_hash, title, artist, creator, difficulty, tags)
    SELECT lpad(to_hex(n), 16, '0'), sha256(n::text::bytea), 'Title', 'Artist', 'Creator', 'Hard', '{}'
    FROM generate_series(1, 20000) AS n;
    INSERT INTO rox_files (hash, bytes) SELECT hash, 'rox' FROM charts;
    INSERT INTO chart_previews (hash, json) SELECT hash, '{}' FROM charts;
    INSERT INTO chart_aliases SELECT chart_hash, chartset_id, substr(chart_hash, 1, 16) FROM chartset_charts;
    INSERT INTO chartset_checks SELECT id, 1 FROM chartsets;
    INSERT INTO removals (entity, removed_at_ms, erased)
    SELECT sha256('removed' || n::text::bytea), 1, true FROM generate_series(1, 20000) AS n;
    INSERT INTO ingest_fingerprints (input_key, content_digest, outcome)
    SELECT sha256(n::text::bytea), sha256(n::text::bytea),
           '{\"chartsets\":[{\"id\":\"' || lpad(to_hex(n), 16, '0') || '\",\"path\":\"alpha/' || n || '\"}]}'
    FROM generate_series(1, 40000) AS n;";

/// Ingests and other removals wait meanwhile.
#[tokio::test]
async fn erasing_many_chartsets_reads_no_table_as_a_whole() {
    let server = PrivatePostgres::start();
    let catalogue = Catalogue::create_on(server.url()).await;
    let _ = catalogue.database.psql(LARGE);
    let _ = catalogue.database.psql("VACUUM ANALYZE");
    let name = catalogue.database.url().rsplit_once('/').unwrap().1;
    let _ = catalogue.database.psql(&format!(
        "ALTER DATABASE {name} SET session_preload_libraries = auto_explain;
         ALTER DATABASE {name} SET auto_explain.log_min_duration = 0;
         ALTER DATABASE {name} SET random_page_cost = 1"
    ));
    let store = Store::new(&config(catalogue.database.url()));
    // Half of them are not stored.
    let listed: Vec<Removal> =
        (0..20).map(|number| Removal { erased: true, ..removal(id(2_000 * number + 1), 20) }).collect();
    for _ in 0..2 {
        store.remove(&listed, 20).await.unwrap();
    }
    let plans = server.log();
    assert!(plans.contains("Delete on ingest_fingerprints"), "plans are logged");
    let scans: Vec<_> = plans.lines().filter(|line| line.contains("Seq Scan on ")).collect();
    assert!(scans.iter().all(|line| line.contains("change_feed")), "{scans:#?}");
    let left = "SELECT count(*), (SELECT count(*) FROM chart_aliases), (SELECT count(*) FROM chartsets)
                FROM ingest_fingerprints";
    assert_eq!(catalogue.database.psql(left), "39980|19990|19990");
}

/// docs/api.md, "ROX file": the tag is the hash unless the bytes have changed.
#[tokio::test]
async fn another_file_than_the_first_one_of_an_erased_chart_is_a_replacement() {
    let catalogue = Catalogue::create().await;
    let (store, chart_1) = (&catalogue.store, Entity::from(hash(1)));
    let first = folder(1, [chart(1)]);
    let mut other = folder(1, [chart(1)]);
    other.charts[0].rox = Some(b"another one".to_vec());
    let digest = blake3::hash(b"another one").to_hex();
    let replacement = || {
        let digest = "SELECT coalesce(encode(replacement_digest, 'hex'), 'none') FROM rox_files";
        catalogue.database.psql(digest)
    };
    // In the list before it is stored.
    catalogue.remove(hash(1), 5).await;
    assert!(catalogue.restore(hash(1), 6).await);
    catalogue.put(&first, 10).await;
    assert_eq!(replacement(), "none");
    for (draft, expected) in
        [(&first, "none"), (&other, digest.as_str()), (&other, &digest), (&first, "none")]
    {
        let erased = [Removal { erased: true, ..removal(chart_1, 20) }];
        assert_eq!(store.remove(&erased, 20).await.unwrap(), [RemovalOutcome::Removed]);
        assert!(catalogue.restore(hash(1), 30).await);
        catalogue.put(draft, 40).await;
        assert_eq!(replacement(), expected);
    }
}
