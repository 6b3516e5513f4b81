//! Removes charts and chartsets from the index, and restores them.

use chart_index_domain::{ChartsetId, NoteHash};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Postgres, Transaction};

use crate::derive::{ChartsetRow, derive_columns};
use crate::derived_columns::DerivedColumns;
use crate::pooled_connection::PooledConnection;
use crate::statement_columns::{Columns, Parameters};
use crate::{Store, StoreError, removal_lock};

/// The result of a removal or restoration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalOutcome {
    /// It was removed or restored.
    Changed,
    /// It was in that state before.
    Unchanged,
    /// It is not stored.
    NotFound,
}

impl Store {
    /// Removes a chart from the index and from every chartset. It stays unknown even if it is ingested again. A
    /// chartset without other charts is no longer shown.
    pub async fn remove_chart(&self, hash: NoteHash, now_ms: i64) -> Result<RemovalOutcome, StoreError> {
        self.run_once("remove chart", |connection| Self::set_chart_removed(connection, hash, true, now_ms))
            .await
    }

    /// Restores a removed chart.
    pub async fn restore_chart(&self, hash: NoteHash, now_ms: i64) -> Result<RemovalOutcome, StoreError> {
        self.run_once("restore chart", |connection| Self::set_chart_removed(connection, hash, false, now_ms))
            .await
    }

    /// Removes a chartset from the index. It is not shown even if it is ingested again. Its charts stay known
    /// if other chartsets contain them.
    pub async fn remove_chartset(&self, id: ChartsetId, now_ms: i64) -> Result<RemovalOutcome, StoreError> {
        self.run_once("remove chartset", |connection| {
            Self::set_chartset_removed(connection, id, true, now_ms)
        })
        .await
    }

    /// Restores a removed chartset.
    pub async fn restore_chartset(&self, id: ChartsetId, now_ms: i64) -> Result<RemovalOutcome, StoreError> {
        self.run_once("restore chartset", |connection| {
            Self::set_chartset_removed(connection, id, false, now_ms)
        })
        .await
    }

    async fn set_chart_removed(
        mut connection: PooledConnection,
        hash: NoteHash,
        removed: bool,
        now_ms: i64,
    ) -> Result<RemovalOutcome, sqlx::Error> {
        let mut transaction = connection.begin().await?;
        removal_lock::lock_out_ingests(&mut transaction).await?;
        match is_chart_removed(&mut transaction, hash).await? {
            None => return Ok(RemovalOutcome::NotFound),
            Some(was_removed) if was_removed == removed => return Ok(RemovalOutcome::Unchanged),
            Some(_) => (),
        }
        sqlx::query("UPDATE charts SET removed_at_ms = $2 WHERE hash = $1")
            .bind(hash.as_bytes())
            .bind(removed.then_some(now_ms))
            .execute(&mut *transaction)
            .await?;
        derive_chartsets_with(&mut transaction, hash, now_ms).await?;
        transaction.commit().await?;
        Ok(RemovalOutcome::Changed)
    }

    async fn set_chartset_removed(
        mut connection: PooledConnection,
        id: ChartsetId,
        removed: bool,
        now_ms: i64,
    ) -> Result<RemovalOutcome, sqlx::Error> {
        let mut transaction = connection.begin().await?;
        let was_removed: Option<bool> =
            sqlx::query_scalar("SELECT removed_at_ms IS NOT NULL FROM chartsets WHERE id = $1 FOR UPDATE")
                .bind(id.to_string())
                .fetch_optional(&mut *transaction)
                .await?;
        match was_removed {
            None => return Ok(RemovalOutcome::NotFound),
            Some(was_removed) if was_removed == removed => return Ok(RemovalOutcome::Unchanged),
            Some(_) => (),
        }
        sqlx::query("UPDATE chartsets SET removed_at_ms = $2, updated_at_ms = $3 WHERE id = $1")
            .bind(id.to_string())
            .bind(removed.then_some(now_ms))
            .bind(now_ms)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(RemovalOutcome::Changed)
    }
}

/// Whether the chart is removed; `None` if it is not stored.
async fn is_chart_removed(
    connection: &mut PgConnection,
    hash: NoteHash,
) -> Result<Option<bool>, sqlx::Error> {
    sqlx::query_scalar("SELECT removed_at_ms IS NOT NULL FROM charts WHERE hash = $1")
        .bind(hash.as_bytes())
        .fetch_optional(connection)
        .await
}

/// Updates the derived columns of the chartsets that contain the chart.
///
/// It locks them in the order of their ids before it reads their charts: another removal has either finished
/// and is visible here, or waits for this lock and will see this removal.
async fn derive_chartsets_with(
    transaction: &mut Transaction<'_, Postgres>,
    hash: NoteHash,
    now_ms: i64,
) -> Result<(), sqlx::Error> {
    let sets: Vec<ChartsetRow> = sqlx::query_as(
        "SELECT id, exact_kind, exact_ref FROM chartsets
         WHERE id IN (SELECT chartset_id FROM chartset_charts WHERE chart_hash = $1)
         ORDER BY id FOR UPDATE",
    )
    .bind(hash.as_bytes())
    .fetch_all(&mut **transaction)
    .await?;
    let derived = derive_columns(transaction, &sets).await?;
    for (set, derived) in sets.iter().zip(&derived) {
        update_derived(transaction, set.id()?, derived, now_ms).await?;
    }
    Ok(())
}

async fn update_derived(
    connection: &mut PgConnection,
    id: ChartsetId,
    derived: &DerivedColumns,
    now_ms: i64,
) -> Result<(), sqlx::Error> {
    let (mut columns, mut parameters) = (Columns::default(), Parameters::default());
    let (id, now) = (parameters.bind(id.to_string()), parameters.bind(now_ms));
    derived.add_to(&mut columns, &mut parameters);
    let statement =
        format!("UPDATE chartsets SET updated_at_ms = {now}, {} WHERE id = {id}", columns.assignments());
    // Safe: it consists of constants and placeholders.
    sqlx::query_with(AssertSqlSafe(statement), parameters.into_arguments()?).execute(connection).await?;
    Ok(())
}
