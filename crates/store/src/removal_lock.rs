//! Keeps ingests and removals of charts apart.
//!
//! An ingest reads which of its charts are removed and derives the chartset from the others; a removal marks a chart
//! and derives every chartset that holds it anew. Were both under way at once, each could miss the other. So
//! ingests share an advisory lock, which costs them nothing, and a removal, which is rare, has it alone.
//!
//! Locks on the rows of the charts would do as well, but each is a write: charts that many sets share, ingested
//! side by side, spent a tenth of the time of the database on them.

use chart_index_domain::ChartsetId;
use sqlx::{AssertSqlSafe, PgConnection};

/// Begins a transaction that no removal of a chart runs beside, and no other ingest of this chartset: the statement
/// that stores a set would not see, and so not delete, charts that another one added after it had begun. The first
/// number is that of [`wait_for_ingests`]; pairs of numbers are apart from it. Sets whose hashes are equal by chance
/// wait for each other, and each transaction has one set, so that none wait in a circle.
pub(crate) fn begin_ingest(id: ChartsetId) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!(
        "BEGIN; SELECT pg_advisory_xact_lock_shared(7105212083226935400), pg_advisory_xact_lock(0, hashtext('{id}'))"
    ))
}

/// Waits until the ingests under way have ended, and holds up others until the transaction ends. Whatever the
/// transaction reads from now on, it sees what they wrote.
pub(crate) async fn wait_for_ingests(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT pg_advisory_xact_lock(7105212083226935400)").execute(connection).await?;
    Ok(())
}
