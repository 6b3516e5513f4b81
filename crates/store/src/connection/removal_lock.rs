//! The advisory lock that ingests share and a removal takes exclusively.
//!
//! An ingest reads what is removed, and derives the chartset from its other charts. A removal marks the rows
//! that are stored, and derives every chartset that contains a removed chart again. Concurrently, each could
//! miss the change of the other, and the ingest would make visible what was removed. Ingests share the lock, so
//! they do not wait for each other; removals are rare.
//!
//! Row locks on the charts would suffice for charts that are stored, but each of them is a write: with charts
//! that many chartsets share, they took a tenth of the database time of an ingest.

use chart_index_domain::ChartsetId;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::schema::statement_columns::array_literal;

/// Begins a transaction that inserts charts or aliases, and no chartset. No removal runs concurrently.
pub(crate) const BEGIN_INSERT: &str = "BEGIN; SELECT pg_advisory_xact_lock_shared(7105212083226935400)";

/// The statement that begins the transaction of an ingest. No removal and no other ingest of these chartsets
/// runs concurrently: the statement that stores a chartset would not see, and so not delete, charts that
/// another ingest inserted after it had begun.
///
/// The first key is that of [`lock_out_ingests`]; keys of two numbers are distinct from it. Chartsets whose
/// `hashtext` happens to be the same wait for each other. All transactions lock in the same order, so there is
/// no deadlock.
///
/// Plans are made while the tables are nearly empty, and stay until autovacuum analyzes the tables, a minute
/// later at best. Without the setting they read whole tables, which took two thirds of the time of PostgreSQL.
pub(crate) fn begin_ingest(ids: impl ExactSizeIterator<Item = ChartsetId>) -> AssertSqlSafe<String> {
    // PostgreSQL would plan the statement for one chartset each time, which takes half as long as to run it.
    // The plan for many follows from their number, and from how full the tables are.
    let plans = if ids.len() == 1 { "SET LOCAL plan_cache_mode = force_generic_plan;" } else { "" };
    let ids = array_literal(ids.map(|id| id.to_string()));
    AssertSqlSafe(format!(
        "{BEGIN_INSERT}; SET LOCAL enable_seqscan = off; {plans} SELECT pg_advisory_xact_lock(0, key) FROM (
             SELECT DISTINCT hashtext(id) AS key FROM unnest('{ids}'::text[]) AS id ORDER BY key
         ) AS keys"
    ))
}

/// Waits until the running transactions of ingests and removals end, and blocks new ones until this transaction
/// ends. Afterwards this transaction sees what those wrote.
pub(crate) async fn lock_out_ingests(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT pg_advisory_xact_lock(7105212083226935400)").execute(connection).await?;
    Ok(())
}
