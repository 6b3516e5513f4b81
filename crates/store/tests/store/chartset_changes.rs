//! Following the changes of chartsets: none is skipped or lost, and a position that is not in the feed is an
//! error.

use chart_index_domain::search::CatalogueChanges;
use chart_index_domain::{ChartsetId, Origin, Position};
use chart_index_store::{ChangesError, ChartsetChanges, Store};
use chart_index_tests::PrivatePostgres;

use crate::support::{Catalogue, OpenTransaction, chart, config, folder, id};

impl Catalogue {
    /// The position of an index that is about to be filled.
    async fn position(&self) -> Position {
        self.store.feed_position().await.unwrap()
    }

    /// Returns the changes after a position.
    async fn changes_after(&self, from: Position) -> ChartsetChanges {
        changes(&self.store, from, 100).await
    }
}

async fn changes(store: &Store, from: Position, limit: u32) -> ChartsetChanges {
    store.chartset_changes(from, limit).await.unwrap()
}

async fn needs_rebuild(store: &Store, from: Position) -> bool {
    let is_lost = matches!(store.chartset_changes(from, 10).await, Err(ChangesError::RebuildNeeded(lost)) if lost == from);
    let oldest_ms = store.unapplied(from).await.unwrap().oldest_ms;
    assert_eq!(is_lost, oldest_ms == Some(0), "{from:?}");
    is_lost
}

fn sorted(changes: &ChartsetChanges) -> Vec<ChartsetId> {
    let mut ids = changes.changed.clone();
    ids.sort_unstable();
    ids
}

fn shown(changes: &ChartsetChanges) -> Vec<ChartsetId> {
    changes.shown.iter().map(|set| set.chartset.id).collect()
}

#[tokio::test]
async fn each_change_is_returned_once() {
    let catalogue = Catalogue::create().await;
    let start = catalogue.position().await;
    let none = changes(&catalogue.store, start, 10).await;
    assert_eq!((none.changed, none.next, none.is_last), (vec![], start, true));
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    catalogue.put(&folder(2, [chart(1)]), 20).await;
    // It may have been read before its removal.
    catalogue.remove(id(1), 30).await;
    let all = catalogue.changes_after(start).await;
    assert_eq!((sorted(&all), shown(&all), all.is_last), (vec![id(1), id(2)], vec![id(2)], true));
    assert_eq!(all.next, catalogue.position().await);
    let after = catalogue.changes_after(all.next).await;
    assert_eq!((after.changed, after.next), (vec![], all.next));
}

#[tokio::test]
async fn pages_continue_from_each_other() {
    let catalogue = Catalogue::create().await;
    let start = catalogue.position().await;
    for set in 1..=5 {
        catalogue.put(&folder(set, [chart(u32::try_from(set).unwrap())]), 10).await;
    }
    let first = changes(&catalogue.store, start, 3).await;
    assert_eq!((sorted(&first), first.is_last), ([1, 2, 3].map(id).to_vec(), false));
    let second = changes(&catalogue.store, first.next, 3).await;
    assert_eq!((sorted(&second), second.is_last), ([4, 5].map(id).to_vec(), true));
    assert_eq!(second.next, catalogue.position().await);
}

/// A position that is not advanced would look as if changes were missing.
#[tokio::test]
async fn changes_of_charts_advance_the_position() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    let before = catalogue.changes_after(catalogue.position().await).await.next;
    let _ = catalogue.database.psql("UPDATE chartset_charts SET title = 'new'");
    let after = catalogue.changes_after(before).await;
    assert_eq!((after.changed, after.next.sequence), (vec![], before.sequence + 1));
}

/// A transaction that is open anywhere on the server delays no one.
#[tokio::test]
async fn open_transactions_delay_nothing() {
    let server = PrivatePostgres::start();
    let catalogue = Catalogue::create_on(server.url()).await;
    let start = catalogue.position().await;
    let mut open = OpenTransaction::begin(server.url());
    open.run("CREATE TEMPORARY TABLE held (id int)");
    let mut writer = OpenTransaction::begin(catalogue.database.url());
    writer.run("INSERT INTO pending_changes (entity) VALUES ('\\x0000000000000009')");
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    let first = catalogue.changes_after(start).await;
    assert_eq!(first.changed, [id(1)]);
    let applied = catalogue.store.unapplied(first.next).await.unwrap();
    assert_eq!((applied.oldest_ms, applied.count), (None, 0));
    writer.commit();
    catalogue.remove(id(1), 20).await;
    assert_eq!(catalogue.store.unapplied(first.next).await.unwrap().count, 2);
    assert_eq!(sorted(&catalogue.changes_after(first.next).await), [id(1), id(9)]);
    open.roll_back();
}

#[tokio::test]
async fn unapplied_changes_have_the_age_of_the_oldest() {
    let catalogue = Catalogue::create().await;
    let start = catalogue.position().await;
    let none = catalogue.store.unapplied(start).await.unwrap();
    assert_eq!((none.origin, none.oldest_ms, none.count), (start.origin, None, 0));
    let now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let now_ms: i64 = catalogue.database.psql(now).parse().unwrap();
    assert!((now_ms - 60_000..=now_ms).contains(&none.asked_ms), "{} of {now_ms}", none.asked_ms);
    for (set, changed_at_ms) in [(1, 20), (2, 10)] {
        catalogue.put(&folder(set, []), 5).await;
        let _ = catalogue.database.psql(&format!(
            "INSERT INTO pending_changes (entity, changed_at_ms) VALUES ('\\x{}', {changed_at_ms})",
            id(set)
        ));
    }
    let unapplied = catalogue.store.unapplied(start).await.unwrap();
    assert_eq!(unapplied.oldest_ms, Some(10));
}

#[tokio::test]
async fn positions_that_the_feed_lacks_need_a_rebuild() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    let before = catalogue.changes_after(catalogue.position().await).await.next;
    let at = |sequence| Position { sequence, ..before };
    assert!(!needs_rebuild(store, before).await && !needs_rebuild(store, at(0)).await);
    assert!(needs_rebuild(store, at(before.sequence + 1)).await, "above the last sequence");
    let other = Position { origin: Origin(before.origin.0 ^ 1), ..before };
    assert!(needs_rebuild(store, other).await, "of another database");
    // As after a restart that lost nothing.
    let _ = catalogue.database.psql("UPDATE change_feed SET origin = 7");
    let earlier = Position { origin: Origin(7), ..before };
    assert!(!needs_rebuild(store, earlier).await && needs_rebuild(store, before).await);
    catalogue.put(&folder(2, [chart(2)]), 20).await;
    let after = catalogue.changes_after(earlier).await;
    assert_eq!(after.changed, [id(2)]);
    assert!(!needs_rebuild(store, earlier).await && !needs_rebuild(store, after.next).await);
    assert_eq!(after.next.origin, before.origin, "the server is the same");
    assert!(needs_rebuild(store, at(before.sequence + 1)).await, "in the gap");
    assert!(needs_rebuild(store, Position { origin: Origin(7), ..after.next }).await);
}

/// The lost change and another one have the same transaction id.
#[tokio::test]
async fn lost_changes_are_noticed_after_a_restore() {
    let server = PrivatePostgres::start();
    let mut catalogue = Catalogue::create_on(server.url()).await;
    // Writes are not repeated on another connection.
    let reconnect = |catalogue: &mut Catalogue| {
        catalogue.store = Store::new(&config(catalogue.database.url()));
    };
    let start = catalogue.position().await;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    let retained = catalogue.changes_after(start).await.next;
    let backup = server.stop_and_copy();
    server.restart();
    reconnect(&mut catalogue);
    catalogue.put(&folder(2, [chart(2)]), 20).await;
    let lost = catalogue.changes_after(retained).await.next;
    server.stop_and_restore(&backup);
    server.restart();
    reconnect(&mut catalogue);
    let store = &catalogue.store;
    assert!(needs_rebuild(store, lost).await && !needs_rebuild(store, retained).await);
    catalogue.put(&folder(3, [chart(3)]), 20).await;
    assert_eq!(catalogue.changes_after(retained).await.changed, [id(3)]);
    assert!(needs_rebuild(store, lost).await);
}

#[tokio::test]
async fn shown_chartsets_are_read_by_id_and_by_page() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    for set in [3, 1, 2] {
        catalogue
            .put(&folder(set, [chart(u32::try_from(set).unwrap())]), 10 + i64::try_from(set).unwrap())
            .await;
    }
    catalogue.remove(id(2), 20).await;
    let some = store.indexed_chartsets(&[id(3), id(2), id(1), id(9)]).await.unwrap();
    let listed: Vec<_> =
        some.iter().map(|set| (set.chartset.id, set.updated_at_ms, set.bpm_main_max)).collect();
    assert_eq!(listed, [(id(1), 11, 121.5), (id(3), 13, 123.5)]);
    assert_eq!(some[0].chartset, store.chartset(id(1)).await.unwrap().unwrap().chartset);
    assert_eq!(store.indexed_chartsets_after(None, 1).await.unwrap(), some[..1]);
    assert_eq!(store.indexed_chartsets_after(Some(id(1)), 9).await.unwrap(), some[1..]);
    assert_eq!(store.indexed_chartsets_after(Some(id(3)), 9).await.unwrap(), []);
}

#[tokio::test]
async fn shown_count_excludes_changed_chartsets() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    for set in 1..=3 {
        catalogue.put(&folder(set, [chart(u32::try_from(set).unwrap())]), 10).await;
    }
    let position = catalogue.changes_after(catalogue.position().await).await.next;
    let count = store.shown_count(position).await.unwrap();
    assert_eq!((count.unchanged, count.changed), (3, vec![]));
    assert!(store.changed_since(position, &[id(1)]).await.unwrap().is_empty());

    catalogue.remove(id(1), 20).await;
    catalogue.put(&folder(2, [chart(9)]), 20).await;
    catalogue.put(&folder(4, [chart(9)]), 20).await;
    let mut count = store.shown_count(position).await.unwrap();
    count.changed.sort_unstable();
    assert_eq!((count.unchanged, count.changed), (1, vec![id(1), id(2), id(4)]));
    let changed = store.changed_since(position, &[id(1), id(3)]).await.unwrap();
    assert_eq!(changed.into_iter().collect::<Vec<_>>(), [id(1)]);
}
