//! Locks on tables, which hold a program where it reads or writes them.

use std::process::Child;
use std::time::Duration;

use chart_index_tests::within;

use super::Database;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Holds a lock on a table, for which programs wait that read or write it.
pub(crate) async fn block_table(database: &Database, table: &str) -> Child {
    let lock = database.0.start_psql(&format!("BEGIN; LOCK TABLE {table}; SELECT pg_sleep(600)"));
    let granted = format!("relation = '{table}'::regclass AND mode = 'AccessExclusiveLock' AND granted");
    within(TIMEOUT, async || (database.0.locks(&granted) == 1).then_some(())).await;
    lock
}

/// Waits until a program waits for the lock of [`block_table`].
pub(crate) async fn wait_until_blocked(database: &Database, table: &str) {
    let waiting = format!("relation = '{table}'::regclass AND NOT granted");
    within(TIMEOUT, async || (database.0.locks(&waiting) != 0).then_some(())).await;
}

/// Holds the lock of a running ingest, for which commands wait that remove entries or delete objects.
pub(crate) async fn block_removals(database: &Database) -> Child {
    let lock = "BEGIN; SELECT pg_advisory_xact_lock_shared(7105212083226935400); SELECT pg_sleep(600)";
    let lock = database.0.start_psql(lock);
    let granted = "locktype = 'advisory' AND granted";
    within(TIMEOUT, async || (database.0.locks(granted) == 1).then_some(())).await;
    lock
}

/// Waits until a program waits for an ingest.
pub(crate) async fn wait_until_removals_are_blocked(database: &Database) {
    let waiting = "locktype = 'advisory' AND NOT granted";
    within(TIMEOUT, async || (database.0.locks(waiting) == 1).then_some(())).await;
}

/// Ends the lock of [`block_table`] or [`block_removals`].
pub(crate) fn release(database: &Database, mut lock: Child) {
    database.0.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                     WHERE datname = current_database() AND query LIKE '%pg_sleep(600)' AND pid <> pg_backend_pid()");
    let _ = lock.wait().unwrap();
}
