//! Following the outbox: no change is skipped or lost, and an invalid checkpoint is an error.

use std::time::{Duration, Instant};

use chart_index_domain::ChartsetId;
use chart_index_domain::search::{CatalogueChanges, Checkpoint, RecordedCheckpoint, UnappliedChanges};
use chart_index_store::{Backlog, Changes, ChangesError, NodeRole, RebuildReason, Store};
use chart_index_tests::{PrivatePostgres, TestDatabase};

use crate::support::{Catalogue, OpenTransaction, chart, config, folder, hash, id};

/// Longer than anything that a test waits for.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the changes after a checkpoint as soon as no running transaction holds any back: other tests run
/// transactions on the same server.
async fn settled_changes(store: &Store, from: impl Into<RecordedCheckpoint>, limit: u32) -> Changes {
    let from = from.into();
    let start = Instant::now();
    loop {
        let changes = store.changes(from, u32::MAX >> 1).await.unwrap();
        if changes.next.checkpoint == changes.committed {
            return store.changes(from, limit).await.unwrap();
        }
        assert!(start.elapsed() < TIMEOUT, "a transaction never ends");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn sorted(changes: &Changes) -> Vec<ChartsetId> {
    let mut ids = changes.chartsets.clone();
    ids.sort_unstable();
    ids
}

async fn reason(store: &Store, from: impl Into<RecordedCheckpoint>) -> RebuildReason {
    match store.changes(from.into(), 10).await {
        Err(ChangesError::RebuildNeeded { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

/// The statement with which a writer adds a change to the outbox.
fn change(set: u64) -> String {
    format!("INSERT INTO search_changes (chartset_id, changed_at_ms) VALUES ('{}', {set})", id(set))
}

#[tokio::test]
async fn each_change_is_returned_once() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    let none = store.changes(Checkpoint(0).into(), 10).await.unwrap();
    assert_eq!((none.chartsets, none.next, none.is_last), (vec![], Checkpoint(0).into(), true));
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    catalogue.put(&folder(2, [chart(1)]), 20).await;
    store.remove_chart(hash(1), 30).await.unwrap();
    let all = settled_changes(store, Checkpoint(0), 100).await;
    assert_eq!((sorted(&all), all.is_last), (vec![id(1), id(2)], true));
    assert_eq!(all.next, store.current_checkpoint().await.unwrap());
    let after = settled_changes(store, all.next, 100).await;
    assert_eq!((after.chartsets, after.next), (vec![], all.next));
}

#[tokio::test]
async fn a_limit_never_splits_a_transaction() {
    let catalogue = Catalogue::create().await;
    let _ = catalogue.database.psql(&change(1));
    let _ = catalogue.database.psql(&[change(2), change(3), change(4)].join(";"));
    let _ = catalogue.database.psql(&change(5));
    let first = settled_changes(&catalogue.store, Checkpoint(0), 2).await;
    assert_eq!((sorted(&first), first.is_last), (vec![id(1), id(2), id(3), id(4)], false));
    let second = settled_changes(&catalogue.store, first.next, 2).await;
    assert_eq!((sorted(&second), second.is_last), (vec![id(5)], true));
}

/// The rows of the older transaction become visible below those of the newer one.
#[tokio::test]
async fn a_late_commit_is_not_skipped() {
    let server = PrivatePostgres::start();
    let database = TestDatabase::create_on(server.url());
    let store = Store::new(&config(database.url()));
    store.migrate().await.unwrap();
    let _ = database.psql(&change(1));
    let mut early = OpenTransaction::begin(database.url());
    early.run(&change(2));
    let _ = database.psql(&change(3));

    let first = store.changes(Checkpoint(0).into(), 10).await.unwrap();
    assert_eq!(first.chartsets, [id(1)], "later changes wait for the open transaction");
    assert!(first.is_last && first.has_running_transactions && first.next.checkpoint < first.committed);
    let backlog = async |from: RecordedCheckpoint| store.backlog(from.checkpoint).await.unwrap();
    assert_eq!(backlog(Checkpoint(0).into()).await, Backlog { changes: 2, oldest_ms: Some(1) });
    assert_eq!(backlog(first.next).await, Backlog { changes: 1, oldest_ms: Some(3) });
    assert_eq!(store.current_checkpoint().await.unwrap(), first.next);
    assert_eq!(
        store.unapplied(first.next).await.unwrap(),
        UnappliedChanges { oldest_ms: Some(3), count: 1 },
        "a waiting change is unapplied"
    );

    early.commit();
    let second = store.changes(first.next, 10).await.unwrap();
    assert_eq!(sorted(&second), [id(2), id(3)]);
    assert_eq!((second.next.checkpoint == second.committed, second.has_running_transactions), (true, false));
    assert_eq!(store.unapplied(second.next).await.unwrap(), UnappliedChanges::default());
    assert_eq!(backlog(second.next).await, Backlog { changes: 0, oldest_ms: None });

    let mut rolled_back = OpenTransaction::begin(database.url());
    rolled_back.run(&change(4));
    let _ = database.psql(&change(5));
    assert_eq!(store.changes(second.next, 10).await.unwrap().chartsets, []);
    rolled_back.roll_back();
    assert_eq!(store.changes(second.next, 10).await.unwrap().chartsets, [id(5)]);
}

#[tokio::test]
async fn applied_rows_are_pruned_except_new_ones() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    let insert = |rows: &str, time: u32| {
        catalogue.database.psql(&format!(
            "INSERT INTO search_changes (chartset_id, changed_at_ms)
             SELECT '0000000000000001', {time} FROM generate_series(1, {rows})"
        ))
    };
    let rows = || catalogue.database.psql("SELECT count(*) FROM search_changes");
    let _ = (insert("100", 1), insert("100", 2));
    let old = settled_changes(store, Checkpoint(0), 5).await.next;
    let second = settled_changes(store, old, 5).await.next;
    let _ = (insert("100", 3), insert("100", 9), insert("100", 3), insert("4000", 3));
    let all = settled_changes(store, Checkpoint(0), 100_000).await.next;
    let prune = async |applied: RecordedCheckpoint, before_ms| {
        store.prune_changes(applied.checkpoint, before_ms).await.unwrap()
    };

    assert_eq!(prune(old, 5).await, 0, "the history of the lowest checkpoint is retained");
    assert_eq!(prune(second, 5).await, 100, "only rows that every index has applied");
    assert_eq!(prune(all, 5).await, 200, "up to the first new one");
    assert_eq!(prune(all, 10).await, 100, "the newest rows are retained");
    assert_eq!(rows(), "4100");
    let _ = insert("5000", 3);
    assert_eq!(prune(all, 10).await, 100);
    assert_eq!(rows(), "9000");
    let last = settled_changes(store, all, 10_000).await;
    assert_eq!(last.chartsets, [id(1)]);
    assert_eq!(prune(last.next, 10).await, 4000);
    assert_eq!(prune(last.next, 10).await, 0);

    for pruned in [old, second, all] {
        assert_eq!(reason(store, pruned).await, RebuildReason::Pruned);
        assert_eq!(store.unapplied(pruned).await.unwrap().oldest_ms, Some(0));
    }
    assert_eq!(reason(store, Checkpoint(0)).await, RebuildReason::Pruned);
    assert_eq!(settled_changes(store, last.next, 10_000).await.chartsets, []);
}

#[tokio::test]
async fn a_checkpoint_of_another_database_is_an_error() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    let known = settled_changes(store, Checkpoint(0), 10).await.next.checkpoint;
    for unknown in [Checkpoint(known.0 - 1), Checkpoint(known.0 + 1), Checkpoint(known.0 + (1 << 48))] {
        assert_eq!(reason(store, unknown).await, RebuildReason::UnknownCheckpoint);
        assert_eq!(store.unapplied(unknown.into()).await.unwrap().oldest_ms, Some(0));
    }
}

/// The sequence and the transaction id of the lost change are assigned to another one.
#[tokio::test]
async fn reused_transaction_ids_do_not_hide_lost_changes() {
    let server = PrivatePostgres::start();
    let catalogue = Catalogue::create_on(server.url()).await;
    let (store, database) = (&catalogue.store, &catalogue.database);
    let _ = database.psql(&change(1));
    let retained = store.changes(Checkpoint(0).into(), 10).await.unwrap().next;
    let backup = server.stop_and_copy();
    server.restart();
    for set in [2, 3] {
        let _ = database.psql(&change(set));
    }
    let lost = store.changes(retained, 10).await.unwrap().next;
    assert_eq!(store.unapplied(lost).await.unwrap().oldest_ms, None);

    server.stop_and_restore(&backup);
    server.restart();
    assert_eq!(store.changes(retained, 10).await.unwrap().chartsets, [], "the retained checkpoint is valid");
    assert_eq!(reason(store, lost).await, RebuildReason::UnknownCheckpoint);
    for set in [2, 3, 4] {
        let _ = database.psql(&change(set));
    }
    let without_history = RecordedCheckpoint { history: None, ..lost };
    assert_eq!(
        store.changes(without_history, 10).await.unwrap().chartsets,
        [id(4)],
        "ids are assigned again"
    );
    assert_eq!(reason(store, lost).await, RebuildReason::HistoryDiverged);
    assert_eq!(store.unapplied(lost).await.unwrap().oldest_ms, Some(0));
    assert_eq!(sorted(&store.changes(retained, 10).await.unwrap()), [id(2), id(3), id(4)]);
    assert!(store.changes(store.current_checkpoint().await.unwrap(), 10).await.is_ok());
}

/// Two transactions overlap, the newer one commits first, and only the commit of the older one is lost.
#[tokio::test]
async fn a_lost_change_below_a_newer_one_is_detected() {
    let server = PrivatePostgres::start();
    let catalogue = Catalogue::create_on(server.url()).await;
    let (store, database) = (&catalogue.store, &catalogue.database);
    let mut older = OpenTransaction::begin(database.url());
    older.run(&change(1));
    let _ = database.psql(&change(2));
    older.roll_back();
    let after_loss = store.changes(Checkpoint(0).into(), 10).await.unwrap();
    assert_eq!(after_loss.chartsets, [id(2)]);
    let both = format!(
        "INSERT INTO search_changes (chartset_id, changed_at_ms, transaction_id)
         SELECT '{}', 1, (min(transaction_id)::text::bigint - 1)::text::xid8 FROM search_changes",
        id(1)
    );
    let _ = database.psql(&both);
    let before_loss = store.changes(Checkpoint(0).into(), 10).await.unwrap().next;
    let _ = database
        .psql("DELETE FROM search_changes WHERE sequence = (SELECT max(sequence) FROM search_changes)");
    assert_eq!(before_loss.checkpoint, after_loss.next.checkpoint);
    assert_eq!(reason(store, before_loss).await, RebuildReason::HistoryDiverged);
}

#[tokio::test]
async fn a_checkpoint_without_a_history_gets_one() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    let recorded = settled_changes(store, Checkpoint(0), 10).await.next;
    assert!(recorded.history.is_some());
    assert_eq!(store.current_checkpoint().await.unwrap(), recorded);
    let from_older_version = recorded.checkpoint;
    assert_eq!(settled_changes(store, from_older_version, 10).await.next, recorded);
}

#[tokio::test]
async fn another_cluster_needs_a_new_epoch() {
    let from_the_future = "UPDATE search_changes SET transaction_id = '1000000000000'";
    let other_cluster = "UPDATE search_outbox SET cluster = cluster + 1";
    for restored in [from_the_future, other_cluster] {
        let catalogue = Catalogue::create().await;
        let store = &catalogue.store;
        catalogue.put(&folder(1, [chart(1)]), 10).await;
        let before = settled_changes(store, Checkpoint(0), 10).await.next;
        assert!(!store.start_outbox_epoch().await.unwrap(), "the cluster is the same");
        let generation = store.generation().await.unwrap();
        let _ = catalogue.database.psql(restored);

        assert_eq!(reason(store, before).await, RebuildReason::OtherCluster);
        assert_eq!(reason(store, Checkpoint(0)).await, RebuildReason::OtherCluster);
        assert!(store.current_checkpoint().await.is_err());
        assert_eq!(store.unapplied(before).await.unwrap().oldest_ms, Some(0));

        assert!(store.start_outbox_epoch().await.unwrap());
        assert!(!store.start_outbox_epoch().await.unwrap());
        assert_eq!(store.generation().await.unwrap(), generation, "no chartset changed");
        assert_eq!(reason(store, before).await, RebuildReason::UnknownCheckpoint, "of the previous epoch");
        let current = store.current_checkpoint().await.unwrap();
        assert!(current.checkpoint > before.checkpoint);
        catalogue.put(&folder(2, [chart(1)]), 20).await;
        assert_eq!(settled_changes(store, current, 10).await.chartsets, [id(2)]);
    }
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
    store.remove_chartset(id(2), 20).await.unwrap();
    let some = store.indexed_chartsets(&[id(3), id(2), id(1), id(9)]).await.unwrap();
    let listed: Vec<_> = some.iter().map(|set| (set.chartset.id, set.updated_at_ms)).collect();
    assert_eq!(listed, [(id(1), 11), (id(3), 13)]);
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
    let checkpoint = settled_changes(store, Checkpoint(0), 10).await.next.checkpoint;
    let snapshot = store.snapshot().await.unwrap();
    let count = store.shown_count(checkpoint).await.unwrap();
    assert_eq!((count.unchanged, count.changed), (3, vec![]));
    assert!(store.changed_since(&snapshot, &[id(1)]).await.unwrap().is_empty());

    store.remove_chartset(id(1), 20).await.unwrap();
    catalogue.put(&folder(2, [chart(9)]), 20).await;
    catalogue.put(&folder(4, [chart(9)]), 20).await;
    let mut count = store.shown_count(checkpoint).await.unwrap();
    count.changed.sort_unstable();
    assert_eq!((count.unchanged, count.changed), (1, vec![id(1), id(2), id(4)]));
    let changed = store.changed_since(&snapshot, &[id(1), id(3)]).await.unwrap();
    assert_eq!(changed.into_iter().collect::<Vec<_>>(), [id(1)]);
}

#[tokio::test]
async fn a_listener_is_notified_of_changes() {
    let catalogue = Catalogue::create().await;
    let mut listener = catalogue.store.changes_listener();
    // Notifies once when it starts, since it may have missed changes.
    listener.changed(TIMEOUT).await;
    for set in 1..=3 {
        let start = Instant::now();
        catalogue.put(&folder(set, [chart(1)]), 10).await;
        listener.changed(TIMEOUT).await;
        assert!(start.elapsed() < TIMEOUT, "notified");
    }
    let start = Instant::now();
    listener.changed(Duration::from_millis(50)).await;
    assert!(start.elapsed() >= Duration::from_millis(50), "nothing changed");
}

#[tokio::test]
async fn a_listener_reconnects_after_a_restart() {
    let server = PrivatePostgres::start();
    let database = TestDatabase::create_on(server.url());
    let store = Store::new(&config(database.url()));
    store.migrate().await.unwrap();
    let mut listener = store.changes_listener();
    listener.changed(TIMEOUT).await;
    server.kill();
    server.restart();
    let start = Instant::now();
    listener.changed(TIMEOUT).await;
    let _ = database.psql(&change(1));
    listener.changed(TIMEOUT).await;
    assert!(start.elapsed() < TIMEOUT, "notified before the timeout");
}

/// PostgreSQL commits notifications one at a time; ingests must not wait for each other because of that.
#[tokio::test]
async fn one_of_concurrent_transactions_notifies() {
    let catalogue = Catalogue::create().await;
    let mut first = OpenTransaction::begin(catalogue.database.url());
    first.run(&change(1));
    let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database =
                    (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(catalogue.database.psql(held), "1");
    let _ = catalogue.database.psql(&change(2));
    let mut listener = catalogue.store.changes_listener();
    listener.changed(TIMEOUT).await;
    let start = Instant::now();
    first.commit();
    listener.changed(TIMEOUT).await;
    assert!(start.elapsed() < TIMEOUT);
    assert_eq!(catalogue.database.psql(held), "0");
}

#[tokio::test]
async fn a_role_has_one_holder_until_its_connection_ends() {
    let catalogue = Catalogue::create().await;
    let (store, node) = (&catalogue.store, catalogue.database.url());
    let first = store.node_locks(node).await.unwrap();
    let second = store.node_locks(node).await.unwrap();
    assert!(first.try_acquire(NodeRole::Sync).await.unwrap());
    assert!(!second.try_acquire(NodeRole::Sync).await.unwrap());
    assert!(second.try_acquire(NodeRole::Rebuild).await.unwrap(), "another role");
    let elsewhere = store.node_locks("http://elsewhere:7700").await.unwrap();
    assert!(elsewhere.try_acquire(NodeRole::Sync).await.unwrap(), "another node");
    first.release(NodeRole::Sync).await.unwrap();
    assert!(second.try_acquire(NodeRole::Sync).await.unwrap());

    second.check().await.unwrap();
    let _ = catalogue.database.psql(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    );
    let forever = std::future::pending::<()>();
    assert!(tokio::time::timeout(TIMEOUT, second.while_held(forever)).await.unwrap().is_err());
    assert!(second.check().await.is_err());
    first.acquire(NodeRole::Sync).await.unwrap();
}
