//! The advisory lock that ingests share and the removal of a chart takes exclusively.
//!
//! An ingest reads which of its charts are removed and derives the chartset from the others. A removal marks a
//! chart and derives every chartset that contains it again. Concurrently, each could miss the change of the
//! other. Ingests share the lock, so they do not wait for each other; removals are rare.
//!
//! Row locks on the charts would suffice, but each of them is a write: with charts that many chartsets share,
//! they took a tenth of the database time of an ingest.

use chart_index_domain::ChartsetId;
use sqlx::{AssertSqlSafe, PgConnection};

/// The statement that begins the transaction of an ingest. No removal of a chart and no other ingest of this
/// chartset runs concurrently: the statement that stores a chartset would not see, and so not delete, charts
/// that another ingest inserted after it had begun.
///
/// The first key is that of [`lock_out_ingests`]; keys of two numbers are distinct from it. Chartsets whose
/// `hashtext` happens to be the same wait for each other. A transaction locks one chartset, so there is no
/// deadlock.
pub(crate) fn begin_ingest_statement(id: ChartsetId) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!(
        "BEGIN; SELECT pg_advisory_xact_lock_shared(7105212083226935400), pg_advisory_xact_lock(0, hashtext('{id}'))"
    ))
}

/// Waits until the running transactions of ingests end, and blocks new ones until this transaction ends.
/// Afterwards this transaction sees what those ingests wrote.
pub(crate) async fn lock_out_ingests(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT pg_advisory_xact_lock(7105212083226935400)").execute(connection).await?;
    Ok(())
}
