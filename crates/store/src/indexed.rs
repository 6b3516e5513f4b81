//! What an engine that keeps documents of its own is filled from and compared with.

use std::collections::HashSet;

use chart_index_domain::search::{Checkpoint, IndexedChartset};
use chart_index_domain::{ChartsetId, ReadError};

use crate::Store;
use crate::columns::{KeywordColumns, ListedColumns, keyword_columns, listed_columns};
use crate::error::corrupt;
use crate::outbox::transaction_of;

/// The chartsets that are shown, counted beside the changes that an index may not hold yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownCount {
    /// How many sets are shown that did not change since the checkpoint.
    pub unchanged: u64,
    /// The sets that changed since, shown or not.
    pub changed: Vec<ChartsetId>,
}

/// A snapshot in the history of the catalogue, to ask later what changed since.
#[derive(Debug, Clone)]
pub struct Snapshot(String);

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
        let chartset = self.listed.into_chartset(self.id.parse().map_err(corrupt)?)?;
        let keywords = self.keywords.into_keywords();
        Ok(IndexedChartset { chartset, keywords, updated_at_ms: self.updated_at_ms })
    }
}

impl Store {
    /// Those of the sets that are shown, as they are now, in the order of their ids.
    pub async fn indexed_chartsets(&self, ids: &[ChartsetId]) -> Result<Vec<IndexedChartset>, ReadError> {
        let ids: &Vec<String> = &ids.iter().map(ChartsetId::to_string).collect();
        self.read("read chartsets to index", |mut lease| async move {
            let rows: Vec<IndexedRow> = sqlx::query_as(concat!(
                "SELECT id, updated_at_ms, ",
                listed_columns!(),
                ", ",
                keyword_columns!(),
                " FROM chartsets WHERE id = ANY($1) AND shown ORDER BY id"
            ))
            .bind(ids)
            .fetch_all(lease.connection())
            .await?;
            rows.into_iter().map(IndexedRow::parse).collect()
        })
        .await
    }

    /// The next shown sets in the order of their ids. Empty after the last.
    pub async fn indexed_chartsets_after(
        &self,
        after: Option<ChartsetId>,
        limit: u32,
    ) -> Result<Vec<IndexedChartset>, ReadError> {
        self.read("read chartsets to index", |mut lease| async move {
            let rows: Vec<IndexedRow> = sqlx::query_as(concat!(
                "SELECT id, updated_at_ms, ",
                listed_columns!(),
                ", ",
                keyword_columns!(),
                " FROM chartsets WHERE id > $1 AND shown ORDER BY id LIMIT $2"
            ))
            // No id is empty, so this lies before the first.
            .bind(after.map(|id| id.to_string()).unwrap_or_default())
            .bind(i64::from(limit))
            .fetch_all(lease.connection())
            .await?;
            rows.into_iter().map(IndexedRow::parse).collect()
        })
        .await
    }

    /// How many sets are shown, and which of them an index at that checkpoint need not hold as they are: all of it
    /// of one snapshot.
    pub async fn shown_count(&self, since: Checkpoint) -> Result<ShownCount, ReadError> {
        self.read("count chartsets", |mut lease| async move {
            let (unchanged, changed): (i64, Vec<String>) = sqlx::query_as(
                "WITH changed AS MATERIALIZED (
                     SELECT DISTINCT chartset_id AS id FROM search_changes
                     WHERE transaction_id >= $1::text::xid8
                 )
                 SELECT (SELECT count(*) FROM chartsets WHERE shown)
                        - (SELECT count(*) FROM chartsets JOIN changed USING (id) WHERE shown),
                        (SELECT coalesce(array_agg(id), '{}') FROM changed)",
            )
            .bind(transaction_of(since).to_string())
            .fetch_one(lease.connection())
            .await?;
            let changed = changed.iter().map(|id| id.parse().map_err(corrupt)).collect::<Result<_, _>>()?;
            Ok(ShownCount { unchanged: unchanged.unsigned_abs(), changed })
        })
        .await
    }

    /// The present snapshot.
    pub async fn snapshot(&self) -> Result<Snapshot, ReadError> {
        self.read("read the snapshot", |mut lease| async move {
            let snapshot = sqlx::query_scalar("SELECT pg_current_snapshot()::text");
            snapshot.fetch_one(lease.connection()).await.map(Snapshot)
        })
        .await
    }

    /// Those of the sets that changed since that snapshot.
    pub async fn changed_since(
        &self,
        snapshot: &Snapshot,
        ids: &[ChartsetId],
    ) -> Result<HashSet<ChartsetId>, ReadError> {
        let ids: &Vec<String> = &ids.iter().map(ChartsetId::to_string).collect();
        self.read("read what changed", |mut lease| async move {
            let changed: Vec<String> = sqlx::query_scalar(
                "SELECT DISTINCT chartset_id FROM search_changes
                 WHERE transaction_id >= pg_snapshot_xmin($1::text::pg_snapshot)
                   AND NOT pg_visible_in_snapshot(transaction_id, $1::text::pg_snapshot)
                   AND chartset_id = ANY($2)",
            )
            .bind(&snapshot.0)
            .bind(ids)
            .fetch_all(lease.connection())
            .await?;
            changed.iter().map(|id| id.parse().map_err(corrupt)).collect()
        })
        .await
    }
}
