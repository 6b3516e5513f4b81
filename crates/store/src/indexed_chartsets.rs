//! Reads chartsets for search indexes outside of PostgreSQL: to fill them, and to compare them with the
//! catalogue.

use std::collections::HashSet;

use chart_index_domain::search::{Checkpoint, IndexedChartset};
use chart_index_domain::{ChartsetId, ReadError};

use crate::Store;
use crate::column_values::parse_chartset_id;
use crate::derived_columns::{KeywordColumns, ListedColumns, keyword_columns, listed_columns};
use crate::outbox_state::Position;

/// The number of shown chartsets that an index at a checkpoint must contain. All values are of one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownCount {
    /// Number of shown chartsets that have not changed since the checkpoint.
    pub unchanged: u64,
    /// The chartsets that have changed since, shown or not.
    pub changed: Vec<ChartsetId>,
}

/// A snapshot of the catalogue, for [`Store::changed_since`].
#[derive(Debug, Clone)]
pub struct CatalogueSnapshot(String);

#[derive(sqlx::FromRow)]
struct IndexedRow {
    id: String,
    updated_at_ms: i64,
    #[sqlx(flatten)]
    listed: ListedColumns,
    #[sqlx(flatten)]
    keywords: KeywordColumns,
}

impl IndexedRow {
    fn parse(self) -> Result<IndexedChartset, sqlx::Error> {
        let chartset = self.listed.into_chartset(parse_chartset_id(&self.id)?)?;
        let keywords = self.keywords.into_keywords();
        Ok(IndexedChartset { chartset, keywords, updated_at_ms: self.updated_at_ms })
    }
}

impl Store {
    /// Returns the current state of the chartsets with these ids that are shown, in the order of the ids.
    pub async fn indexed_chartsets(&self, ids: &[ChartsetId]) -> Result<Vec<IndexedChartset>, ReadError> {
        let ids: &Vec<String> = &ids.iter().map(ChartsetId::to_string).collect();
        self.long_read("read chartsets to index", |mut connection| async move {
            let rows: Vec<IndexedRow> = sqlx::query_as(concat!(
                "SELECT id, updated_at_ms, ",
                listed_columns!(),
                ", ",
                keyword_columns!(),
                " FROM chartsets WHERE id = ANY($1) AND shown ORDER BY id"
            ))
            .bind(ids)
            .fetch_all(&mut *connection)
            .await?;
            rows.into_iter().map(IndexedRow::parse).collect()
        })
        .await
    }

    /// Returns the next shown chartsets in the order of their ids. Empty after the last.
    pub async fn indexed_chartsets_after(
        &self,
        after: Option<ChartsetId>,
        limit: u32,
    ) -> Result<Vec<IndexedChartset>, ReadError> {
        self.long_read("read chartsets to index", |mut connection| async move {
            let rows: Vec<IndexedRow> = sqlx::query_as(concat!(
                "SELECT id, updated_at_ms, ",
                listed_columns!(),
                ", ",
                keyword_columns!(),
                " FROM chartsets WHERE id > $1 AND shown ORDER BY id LIMIT $2"
            ))
            // The empty text sorts before every id.
            .bind(after.map(|id| id.to_string()).unwrap_or_default())
            .bind(i64::from(limit))
            .fetch_all(&mut *connection)
            .await?;
            rows.into_iter().map(IndexedRow::parse).collect()
        })
        .await
    }

    /// Counts the shown chartsets for a comparison with an index at this checkpoint.
    pub async fn shown_count(&self, since: Checkpoint) -> Result<ShownCount, ReadError> {
        self.long_read("count chartsets", |mut connection| async move {
            let (unchanged, changed): (i64, Vec<String>) = sqlx::query_as(
                "WITH changed AS MATERIALIZED (
                     SELECT DISTINCT chartset_id AS id FROM search_changes
                     WHERE transaction_id >= $1::text::xid8
                 )
                 SELECT (SELECT count(*) FROM chartsets WHERE shown)
                        - (SELECT count(*) FROM chartsets JOIN changed USING (id) WHERE shown),
                        (SELECT coalesce(array_agg(id), '{}') FROM changed)",
            )
            .bind(Position::from(since).transaction_id.to_string())
            .fetch_one(&mut *connection)
            .await?;
            let changed = changed.iter().map(|id| parse_chartset_id(id)).collect::<Result<_, _>>()?;
            Ok(ShownCount { unchanged: unchanged.unsigned_abs(), changed })
        })
        .await
    }

    /// Takes a snapshot.
    pub async fn snapshot(&self) -> Result<CatalogueSnapshot, ReadError> {
        self.long_read("read the current snapshot", |mut connection| async move {
            let snapshot = sqlx::query_scalar("SELECT pg_current_snapshot()::text");
            snapshot.fetch_one(&mut *connection).await.map(CatalogueSnapshot)
        })
        .await
    }

    /// Returns which of the chartsets have changed since the snapshot.
    pub async fn changed_since(
        &self,
        snapshot: &CatalogueSnapshot,
        ids: &[ChartsetId],
    ) -> Result<HashSet<ChartsetId>, ReadError> {
        let ids: &Vec<String> = &ids.iter().map(ChartsetId::to_string).collect();
        self.long_read("read changed chartsets", |mut connection| async move {
            let changed: Vec<String> = sqlx::query_scalar(
                "SELECT DISTINCT chartset_id FROM search_changes
                 WHERE transaction_id >= pg_snapshot_xmin($1::text::pg_snapshot)
                   AND NOT pg_visible_in_snapshot(transaction_id, $1::text::pg_snapshot)
                   AND chartset_id = ANY($2)",
            )
            .bind(&snapshot.0)
            .bind(ids)
            .fetch_all(&mut *connection)
            .await?;
            changed.iter().map(|id| parse_chartset_id(id)).collect()
        })
        .await
    }
}
