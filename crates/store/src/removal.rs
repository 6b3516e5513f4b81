//! Taking charts and chartsets out of the index, and back in.

use chart_index_domain::{ChartsetId, NoteHash};
use sqlx::{Connection, PgConnection, Postgres, Transaction};

use crate::columns::{DerivedColumns, bind_derived_columns};
use crate::lease::Lease;
use crate::members::{SetRow, derive};
use crate::{Store, StoreError, removal_lock};

/// What a removal or a restoration did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalOutcome {
    /// It is removed, or restored, now.
    Changed,
    /// It was so before.
    Unchanged,
    /// The index never held it.
    NotFound,
}

impl Store {
    /// Removes a chart: it is unknown from now on, also when it is ingested again, and leaves every chartset
    /// that holds it; one that holds nothing else is no longer shown.
    pub async fn remove_chart(&self, hash: NoteHash, now_ms: i64) -> Result<RemovalOutcome, StoreError> {
        self.run_once("remove chart", |lease| Self::set_chart_removed(lease, hash, true, now_ms)).await
    }

    /// Takes the removal of a chart back.
    pub async fn restore_chart(&self, hash: NoteHash, now_ms: i64) -> Result<RemovalOutcome, StoreError> {
        self.run_once("restore chart", |lease| Self::set_chart_removed(lease, hash, false, now_ms)).await
    }

    /// Removes a chartset: it is not shown from now on, also when it is ingested again. Its charts stay known
    /// where other chartsets hold them.
    pub async fn remove_chartset(&self, id: ChartsetId, now_ms: i64) -> Result<RemovalOutcome, StoreError> {
        self.run_once("remove chartset", |lease| Self::set_chartset_removed(lease, id, true, now_ms)).await
    }

    /// Takes the removal of a chartset back.
    pub async fn restore_chartset(&self, id: ChartsetId, now_ms: i64) -> Result<RemovalOutcome, StoreError> {
        self.run_once("restore chartset", |lease| Self::set_chartset_removed(lease, id, false, now_ms)).await
    }

    async fn set_chart_removed(
        mut lease: Lease,
        hash: NoteHash,
        remove: bool,
        now_ms: i64,
    ) -> Result<RemovalOutcome, sqlx::Error> {
        let mut transaction = lease.connection().begin().await?;
        removal_lock::wait_for_ingests(&mut transaction).await?;
        match is_chart_removed(&mut transaction, hash).await? {
            None => return Ok(RemovalOutcome::NotFound),
            Some(removed) if removed == remove => return Ok(RemovalOutcome::Unchanged),
            Some(_) => (),
        }
        sqlx::query("UPDATE charts SET removed_at_ms = $2 WHERE hash = $1")
            .bind(hash.as_bytes())
            .bind(remove.then_some(now_ms))
            .execute(&mut *transaction)
            .await?;
        reassemble_sets_with(&mut transaction, hash, now_ms).await?;
        transaction.commit().await?;
        Ok(RemovalOutcome::Changed)
    }

    async fn set_chartset_removed(
        mut lease: Lease,
        id: ChartsetId,
        remove: bool,
        now_ms: i64,
    ) -> Result<RemovalOutcome, sqlx::Error> {
        let mut transaction = lease.connection().begin().await?;
        let removed: Option<bool> =
            sqlx::query_scalar("SELECT removed_at_ms IS NOT NULL FROM chartsets WHERE id = $1 FOR UPDATE")
                .bind(id.to_string())
                .fetch_optional(&mut *transaction)
                .await?;
        match removed {
            None => return Ok(RemovalOutcome::NotFound),
            Some(removed) if removed == remove => return Ok(RemovalOutcome::Unchanged),
            Some(_) => (),
        }
        sqlx::query(
            "WITH change AS (INSERT INTO search_changes (chartset_id, changed_at_ms) VALUES ($1, $3))
             UPDATE chartsets SET removed_at_ms = $2, updated_at_ms = $3 WHERE id = $1",
        )
        .bind(id.to_string())
        .bind(remove.then_some(now_ms))
        .bind(now_ms)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(RemovalOutcome::Changed)
    }
}

/// Whether the chart is removed; `None` for a chart that was never stored.
async fn is_chart_removed(
    connection: &mut PgConnection,
    hash: NoteHash,
) -> Result<Option<bool>, sqlx::Error> {
    sqlx::query_scalar("SELECT removed_at_ms IS NOT NULL FROM charts WHERE hash = $1")
        .bind(hash.as_bytes())
        .fetch_optional(connection)
        .await
}

/// Locks the sets in the order of their ids, and only then reads their charts: what another removal did to one
/// of those charts is either seen here, or waits for this lock and sees what is done here.
async fn reassemble_sets_with(
    transaction: &mut Transaction<'_, Postgres>,
    hash: NoteHash,
    now_ms: i64,
) -> Result<(), sqlx::Error> {
    let sets: Vec<SetRow> = sqlx::query_as(
        "SELECT id, exact_kind, exact_ref FROM chartsets
         WHERE id IN (SELECT chartset_id FROM chartset_charts WHERE chart_hash = $1)
         ORDER BY id FOR UPDATE",
    )
    .bind(hash.as_bytes())
    .fetch_all(&mut **transaction)
    .await?;
    let columns = derive(transaction, &sets).await?;
    for (set, columns) in sets.iter().zip(&columns) {
        update_derived(transaction, set.id()?, columns, now_ms).await?;
    }
    Ok(())
}

async fn update_derived(
    connection: &mut PgConnection,
    id: ChartsetId,
    columns: &DerivedColumns,
    now_ms: i64,
) -> Result<(), sqlx::Error> {
    let query = sqlx::query(
        "WITH change AS (INSERT INTO search_changes (chartset_id, changed_at_ms) VALUES ($1, $2))
         UPDATE chartsets SET
             updated_at_ms = $2, title = $3, artist = $4, creator = $5, source_kind = $6, source_ref = $7,
             keys = $8, bpm_min = $9, bpm_max = $10, length_min_ms = $11, length_max_ms = $12,
             density_max = $13, chart_count = $14, tags = $15, romanised_names = $16, title_sort = $17,
             artist_sort = $18, creator_search = $19, search_words = array_to_tsvector($20)
         WHERE id = $1",
    )
    .bind(id.to_string())
    .bind(now_ms);
    bind_derived_columns!(query, columns).execute(connection).await?;
    Ok(())
}
