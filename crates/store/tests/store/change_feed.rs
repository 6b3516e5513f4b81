//! The change feed: numbers, tombstones, and gaps after lost changes.

use std::collections::HashMap;
use std::pin::pin;
use std::time::Duration;

use chart_index_domain::{ChangeType, ChartsetDraft, Lineage};
use chart_index_store::{FeedEntity, FeedEntry, FeedError, FeedPage, PageEnd, Store};
use tokio::time::timeout;

use crate::support::{Catalogue, OpenTransaction, alpha, chart, config, folder, hash, id};

impl Catalogue {
    /// Returns the page of the feed after a sequence.
    async fn feed_after(&self, after: u64) -> Vec<FeedEntry> {
        self.store.feed_after(after, None, 1_000).await.unwrap().entries
    }

    async fn assert_feed_matches(&self) {
        assert_eq!(self.store.feed_mismatches().await.unwrap(), []);
    }
}

/// The entries as `change chart N` and `change set N`, with the number of charts of its record.
fn described(entries: &[FeedEntry]) -> Vec<String> {
    entries.iter().map(describe).collect()
}

fn describe(entry: &FeedEntry) -> String {
    let change = match entry.change {
        ChangeType::Added => "added",
        ChangeType::Updated => "updated",
        ChangeType::Removed => "removed",
    };
    match &entry.entity {
        FeedEntity::Chart(chart) => {
            let number = (1..100).find(|&number| hash(number) == *chart).unwrap();
            format!("{change} chart {number}")
        }
        FeedEntity::Chartset(set, record) => {
            let number = (1..100).find(|&number| id(number) == *set).unwrap();
            let charts = record.as_ref().map(|record| format!(" with {}", record.charts.len()));
            format!("{change} set {number}{}", charts.unwrap_or_default())
        }
    }
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

fn last(entries: &[FeedEntry]) -> u64 {
    entries.last().unwrap().sequence
}

#[tokio::test]
async fn each_chart_and_chartset_has_its_latest_change() {
    let catalogue = Catalogue::create().await;
    assert_eq!(catalogue.feed_after(0).await, []);
    catalogue.put(&folder(1, [chart(1), chart(2)]), 10).await;
    let first = catalogue.feed_after(0).await;
    assert_eq!(sorted(described(&first)), ["added chart 1", "added chart 2", "added set 1 with 2"]);
    assert_eq!(first.iter().map(|entry| entry.sequence).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(catalogue.store.feed_position().await.unwrap().sequence, 3);

    let renamed = |number| {
        let mut renamed = chart(number);
        renamed.metadata.title = "Another title".into();
        renamed
    };
    catalogue.put(&folder(1, [chart(1), renamed(2), chart(3)]), 20).await;
    let second = catalogue.feed_after(3).await;
    // Chart 1 is unchanged.
    let expected = ["added chart 3", "updated chart 2", "updated set 1 with 3"];
    assert_eq!(sorted(described(&second)), expected);
    let all = catalogue.feed_after(0).await;
    assert_eq!(described(&all)[0], "added chart 1");
    assert_eq!(all[1..], second);
    // Lookups of the others show its title, which is that of the chartset.
    catalogue.put(&folder(1, [renamed(1), renamed(2), chart(3)]), 30).await;
    let third = catalogue.feed_after(last(&second)).await;
    let expected = ["updated chart 1", "updated chart 2", "updated chart 3", "updated set 1 with 3"];
    assert_eq!(sorted(described(&third)), expected);
    catalogue.assert_feed_matches().await;
}

#[tokio::test]
async fn records_are_those_of_the_catalogue() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&ChartsetDraft { exact_source: Some(alpha(7)), ..folder(1, [chart(1)]) }, 10).await;
    let feed = catalogue.feed_after(0).await;
    let records = catalogue.store.chartset_records(&[id(1)]).await.unwrap();
    let record = feed.into_iter().find_map(|entry| match entry.entity {
        FeedEntity::Chartset(_, record) => record,
        FeedEntity::Chart(_) => None,
    });
    assert_eq!(record.unwrap(), records[0].record);
}

#[tokio::test]
async fn removals_are_tombstones_and_restoring_adds_again() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1), chart(2)]), 10).await;
    catalogue.put(&folder(2, [chart(2)]), 10).await;
    let mut sequence = last(&catalogue.feed_after(0).await);
    let mut changes = async |expected: &[&str]| {
        let entries = catalogue.feed_after(sequence).await;
        assert_eq!(sorted(described(&entries)), expected);
        sequence = last(&entries);
        catalogue.assert_feed_matches().await;
    };
    catalogue.remove(hash(1), 20).await;
    changes(&["removed chart 1", "updated chart 2", "updated set 1 with 1"]).await;
    // Chart 2 stays known by the other chartset.
    catalogue.remove(id(1), 30).await;
    changes(&["removed chart 1", "removed set 1", "updated chart 2"]).await;
    catalogue.remove(id(2), 40).await;
    changes(&["removed chart 2", "removed set 2"]).await;
    // It is in no set that is shown.
    catalogue.restore(hash(1), 50).await;
    changes(&["removed chart 1", "removed set 1"]).await;
    catalogue.restore(id(1), 60).await;
    changes(&["added chart 1", "added chart 2", "added set 1 with 2"]).await;
    // A chart that leaves its last chartset is no longer known.
    catalogue.put(&folder(1, [chart(2)]), 70).await;
    changes(&["removed chart 1", "updated chart 2", "updated set 1 with 1"]).await;
}

#[tokio::test]
async fn another_exact_source_changes_all_charts() {
    let catalogue = Catalogue::create().await;
    let draft = folder(1, [chart(1), chart(2)]);
    catalogue.put(&draft, 10).await;
    let sequence = last(&catalogue.feed_after(0).await);
    catalogue.put(&ChartsetDraft { exact_source: Some(alpha(9)), ..draft }, 20).await;
    let changes = catalogue.feed_after(sequence).await;
    assert_eq!(sorted(described(&changes)), ["updated chart 1", "updated chart 2", "updated set 1 with 2"]);
}

/// The transaction that began first commits last: a reader that has seen the other one still gets its change.
#[tokio::test]
async fn late_commits_are_never_skipped() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    catalogue.put(&folder(2, [chart(2)]), 10).await;
    let start = last(&catalogue.feed_after(0).await);
    let mut early = OpenTransaction::begin(catalogue.database.url());
    early.run("UPDATE chartsets SET updated_at_ms = 20 WHERE id = '0000000000000001'");
    catalogue.remove(id(2), 30).await;
    let seen = catalogue.feed_after(start).await;
    assert_eq!(sorted(described(&seen)), ["removed chart 2", "removed set 2"]);
    early.commit();
    let late = catalogue.feed_after(last(&seen)).await;
    assert_eq!(described(&late), ["updated set 1 with 1"]);
    assert!(late[0].changed_at_ms <= seen[0].changed_at_ms, "it began first");
}

/// Numbers become visible in their order: a transaction that has taken some blocks the commits of others until
/// it is visible.
#[tokio::test]
async fn commits_wait_for_the_numbers_before_theirs() {
    let catalogue = Catalogue::create().await;
    let mut first = OpenTransaction::begin(catalogue.database.url());
    first.run(
        "INSERT INTO pending_changes (entity) VALUES ('\\x0000000000000009'); SET CONSTRAINTS ALL IMMEDIATE",
    );
    let store = catalogue.store.clone();
    let second = tokio::spawn(async move { store.put_chartset(&folder(1, [chart(1)]), 10).await });
    catalogue.wait_for_blocked_sessions(1).await;
    assert_eq!(catalogue.feed_after(0).await, []);
    first.commit();
    second.await.unwrap().unwrap();
    let feed = catalogue.feed_after(0).await;
    assert_eq!(described(&feed[..1]), ["removed set 9"]);
    assert_eq!(sorted(described(&feed[1..])), ["added chart 1", "added set 1 with 1"]);
    assert_eq!(catalogue.database.psql("SELECT count(*) FROM pending_changes"), "0");
}

/// Several processes write chartsets with the same charts for a while.
#[tokio::test]
async fn polls_beside_writers_miss_no_change() {
    let catalogue = Catalogue::create().await;
    let stores = [(); 4].map(|()| Store::new(&config(catalogue.database.url())));
    let write = async |number: u32, store: &Store| {
        for round in 0..25 {
            let charts = [1, 2, 10 + number * 25 + round].map(|number| {
                let mut chart = chart(number);
                chart.metadata.title = "Title".into();
                chart
            });
            store.put_chartset(&folder(u64::from(number), charts), 10).await.unwrap();
        }
    };
    let [a, b, c, d] = &stores;
    let mut writes = pin!(async { tokio::join!(write(1, a), write(2, b), write(3, c), write(4, d)) });
    let (mut seen, mut is_over) = (HashMap::new(), false);
    let mut after = 0;
    while !is_over {
        is_over = timeout(Duration::from_millis(1), &mut writes).await.is_ok();
        let poll = catalogue.store.poll_catalogue(after).await.unwrap();
        seen.extend(poll.changes.iter().map(|change| (change.entity, change.sequence)));
        after = poll.position.sequence;
    }
    let all = catalogue.store.poll_catalogue(0).await.unwrap().changes;
    assert_eq!(seen, all.iter().map(|change| (change.entity, change.sequence)).collect::<HashMap<_, _>>());
    // Each chartset first has three charts, and then another third one.
    assert_eq!(catalogue.last_sequence(), 4 * (4 + 24 * 3));
    catalogue.assert_feed_matches().await;
}

/// Readers of sequences that the server has lost get an error; all others continue.
#[tokio::test]
async fn lost_numbers_are_in_a_gap() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    let before = last(&catalogue.feed_after(0).await);
    let lost = |after| {
        let store = catalogue.store.clone();
        async move { matches!(store.feed_after(after, None, 10).await, Err(FeedError::Lost)) }
    };
    assert!(lost(before + 1).await, "above the last number");
    assert!(lost(u64::MAX).await);
    // As after a restart, a failover or a restore.
    let _ = catalogue.database.psql("UPDATE change_feed SET origin = 0");
    assert_eq!(catalogue.feed_after(before).await, [], "no gap without changes");
    catalogue.put(&folder(2, [chart(2)]), 20).await;
    let after_gap = catalogue.feed_after(before).await;
    let first = after_gap[0].sequence;
    assert!(first > before + (1 << 32) && last(&after_gap) == first + 1 && first < 1 << 53);
    assert!(lost(before + 1).await && lost(first - 1).await);
    assert!(!lost(before).await && !lost(first).await && !lost(0).await);
    catalogue.put(&folder(3, [chart(3)]), 30).await;
    let next = catalogue.feed_after(first + 1).await;
    assert_eq!(next[0].sequence, first + 2, "one gap for one restart");
    // The state before the gap is restored: later sequences differ from those after the gap.
    let _ = catalogue.database.psql(&format!(
        "UPDATE change_feed SET origin = 0, last_sequence = {before};
         DELETE FROM change_feed_gaps; DELETE FROM catalogue_changes WHERE sequence > {before}"
    ));
    catalogue.put(&folder(4, [chart(4)]), 40).await;
    assert!(catalogue.feed_after(before).await[0].sequence > last(&next));
    assert!(lost(first).await && lost(last(&next)).await);
}

/// A feed that was followed in another database does not continue in this one, whatever its numbers are.
#[tokio::test]
async fn feed_continues_in_its_own_lineage_only() {
    let (catalogue, other) = (Catalogue::create().await, Catalogue::create().await);
    for catalogue in [&catalogue, &other] {
        catalogue.put(&folder(1, [chart(1)]), 10).await;
    }
    let lineage = catalogue.store.feed_after(0, None, 10).await.unwrap().lineage;
    assert_eq!(catalogue.store.poll_catalogue(0).await.unwrap().lineage, lineage);
    // As after a restart.
    let _ = catalogue.database.psql("UPDATE change_feed SET origin = 0");
    catalogue.put(&folder(2, [chart(2)]), 20).await;
    assert_eq!(catalogue.store.feed_after(1, Some(lineage), 10).await.unwrap().lineage, lineage);
    for after in [0, 1] {
        let page = other.store.feed_after(after, Some(lineage), 10).await;
        assert!(matches!(page, Err(FeedError::Lost)), "{page:?}");
    }
    assert_ne!(other.store.feed_after(1, None, 10).await.unwrap().lineage, lineage);
}

/// Removals are compared with numbers of the same lineage only.
#[tokio::test]
async fn what_another_lineage_numbered_is_from_before_any_removal() {
    let catalogue = Catalogue::create().await;
    let lineage = Some(catalogue.store.poll_catalogue(0).await.unwrap().lineage);
    let has_removal_after =
        async |lineage, sequence| catalogue.store.has_removal_after(lineage, sequence).await.unwrap();
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    for lineage in [lineage, None] {
        assert!(!has_removal_after(lineage, 0).await, "nothing was removed");
    }
    catalogue.remove(id(1), 20).await;
    let last = catalogue.store.feed_position().await.unwrap().sequence;
    assert!(!has_removal_after(lineage, last).await && has_removal_after(lineage, 2).await);
    assert!(has_removal_after(None, u64::MAX).await);
    assert!(has_removal_after(Some(Lineage::from_bytes([1; 8])), u64::MAX).await);
}

/// A restored dump has other tables, even in the same cluster.
#[tokio::test]
async fn the_origin_differs_for_another_table() {
    let catalogue = Catalogue::create().await;
    let other = Catalogue::create().await;
    let origin = "SELECT change_feed_origin()";
    assert_eq!(catalogue.database.psql(origin), catalogue.database.psql(origin));
    assert_eq!(catalogue.database.psql(origin), catalogue.database.psql("SELECT origin FROM change_feed"));
    let _ = other.database.psql(
        "CREATE TABLE copy (LIKE catalogue_changes); DROP TABLE catalogue_changes;
                                 ALTER TABLE copy RENAME TO catalogue_changes",
    );
    assert_ne!(other.database.psql(origin), other.database.psql("SELECT origin FROM change_feed"));
}

#[tokio::test]
async fn pages_end_at_the_limit() {
    let catalogue = Catalogue::create().await;
    for number in 1..=4 {
        catalogue.put(&folder(number.into(), [chart(number)]), 10).await;
    }
    let all = catalogue.feed_after(0).await;
    assert_eq!(all.len(), 8);
    let page = async |after, limit| catalogue.store.feed_after(after, None, limit).await.unwrap();
    let lineage = catalogue.store.poll_catalogue(0).await.unwrap().lineage;
    let expected = |entries: &[FeedEntry], end| FeedPage { lineage, entries: entries.to_vec(), end };
    assert_eq!(page(0, 3).await, expected(&all[..3], PageEnd::Full));
    assert_eq!(page(3, 5).await, expected(&all[3..], PageEnd::Full), "as many as requested");
    assert_eq!(page(3, 6).await, expected(&all[3..], PageEnd::EndOfFeed));
    assert_eq!(page(8, 6).await, expected(&[], PageEnd::EndOfFeed));
}

#[tokio::test]
async fn pages_end_early_with_large_records() {
    let catalogue = Catalogue::create().await;
    for number in 1..=6 {
        let mut large = chart(number);
        large.metadata.tags = (0..10).map(|tag| format!("{tag}").repeat(100_000)).collect();
        catalogue.put(&folder(number.into(), [large]), 10).await;
    }
    let (mut after, mut pages) = (0, Vec::new());
    loop {
        let page = catalogue.store.feed_after(after, None, 1_000).await.unwrap();
        pages.push(page.entries.len());
        after = last(&page.entries);
        if page.end == PageEnd::EndOfFeed {
            break;
        }
    }
    assert_eq!(pages.iter().sum::<usize>(), 12);
    assert_eq!(pages.len(), 2, "{pages:?}");
}

#[tokio::test]
async fn mismatches_are_found() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    catalogue.assert_feed_matches().await;
    let _ = catalogue
        .database
        .psql("UPDATE catalogue_changes SET change = 'removed' WHERE octet_length(entity) = 8");
    let _ = catalogue.database.psql("DELETE FROM catalogue_changes WHERE octet_length(entity) = 32");
    let _ = catalogue.database.psql(
        "INSERT INTO catalogue_changes VALUES (900, 1, 'added', '\\x0000000000000009'), (901, 1, 'removed', '\\x0a0a0a0a0a0a0a0a')",
    );
    assert_eq!(catalogue.store.feed_mismatches().await.unwrap().len(), 3);
}
