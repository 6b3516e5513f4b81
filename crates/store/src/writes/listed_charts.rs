//! Writes what lists filter charts by again, where an earlier version left a column of it empty.

use sqlx::{Connection, PgConnection};

use crate::connection::removal_lock::lock_out_ingests;

/// The number of chartsets that are written in one transaction, for which ingests and removals wait.
const BATCH: i64 = 200;

/// Writes the rows of `shown_charts` without a main BPM again. It may be interrupted: the next call continues.
///
/// No chartset is recorded as changed, since its record in the change feed is the same.
pub(crate) async fn fill(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    // Without waiting for a running ingest.
    let is_filled = "SELECT NOT EXISTS (SELECT FROM shown_charts WHERE bpm_main IS NULL)";
    if sqlx::query_scalar(is_filled).fetch_one(&mut *connection).await? {
        return Ok(());
    }
    let mut after = Some(String::new());
    while let Some(id) = after {
        after = fill_batch(connection, &id).await?;
    }
    Ok(())
}

/// Writes those of the next chartsets in the order of their ids. Returns the last of them; `None` if there was
/// none.
async fn fill_batch(connection: &mut PgConnection, after: &str) -> Result<Option<String>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    lock_out_ingests(&mut transaction).await?;
    let last = sqlx::query_scalar(
        "WITH batch AS MATERIALIZED (
             SELECT DISTINCT chartset_id FROM shown_charts WHERE bpm_main IS NULL AND chartset_id > $1
             ORDER BY chartset_id LIMIT $2
         ), written AS MATERIALIZED (SELECT chartset_id, write_shown(chartset_id) FROM batch)
         SELECT max(chartset_id) FROM written",
    );
    let last = last.bind(after).bind(BATCH).fetch_one(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(last)
}
