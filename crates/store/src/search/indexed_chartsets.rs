//! Reads chartsets for search indexes outside of PostgreSQL: to fill them, and to compare them with the
//! catalogue.

use std::collections::HashSet;

use chart_index_domain::search::IndexedChartset;
use chart_index_domain::{ChartsetId, Position, ReadError};
use sqlx::PgConnection;

use crate::Store;
use crate::connection::server::ReadLength;
use crate::schema::column_values::parse_chartset_id;
use crate::schema::derived_columns::{KeywordColumns, ListedColumns};
use crate::search::filterable_charts::FilterableChartColumns;

/// The number of shown chartsets that an index at a position must contain. All values are of one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownCount {
    /// Number of shown chartsets that have not changed after the position.
    pub unchanged: u64,
    /// The chartsets that have changed since, shown or not.
    pub changed: Vec<ChartsetId>,
}

/// A row of the view `indexed_chartsets`.
#[derive(sqlx::FromRow)]
struct IndexedRow {
    id: String,
    updated_at_ms: i64,
    #[sqlx(flatten)]
    listed: ListedColumns,
    #[sqlx(flatten)]
    keywords: KeywordColumns,
    #[sqlx(flatten)]
    charts: FilterableChartColumns,
    bpm_main_max: f64,
}

impl IndexedRow {
    fn parse(self) -> Result<IndexedChartset, sqlx::Error> {
        let chartset = self.listed.into_chartset(parse_chartset_id(&self.id)?)?;
        let keywords = self.keywords.into_keywords();
        let charts = self.charts.into_charts()?;
        let (bpm_main_max, updated_at_ms) = (self.bpm_main_max, self.updated_at_ms);
        Ok(IndexedChartset { chartset, charts, bpm_main_max, keywords, updated_at_ms })
    }
}

/// The ids of the chartsets that have changed after the sequence `$1`.
macro_rules! changed_chartsets {
    () => {
        "SELECT encode(entity, 'hex') AS id FROM catalogue_changes
         WHERE sequence > $1 AND octet_length(entity) = 8"
    };
}

impl Store {
    /// Returns the current state of the chartsets with these ids that are shown, in the order of the ids.
    pub async fn indexed_chartsets(&self, ids: &[ChartsetId]) -> Result<Vec<IndexedChartset>, ReadError> {
        self.long_read("read chartsets to index", |mut connection| async move {
            read_indexed(&mut connection, ids).await
        })
        .await
    }

    /// Returns the next shown chartsets in the order of their ids. Empty after the last.
    pub async fn indexed_chartsets_after(
        &self,
        after: Option<ChartsetId>,
        limit: u32,
    ) -> Result<Vec<IndexedChartset>, ReadError> {
        let query = || {
            sqlx::query_as("SELECT * FROM indexed_chartsets WHERE id > $1 ORDER BY id LIMIT $2")
                // The empty text sorts before every id.
                .bind(after.map(|id| id.to_string()).unwrap_or_default())
                .bind(i64::from(limit))
        };
        self.read_rows("read chartsets to index", ReadLength::Long, query, IndexedRow::parse).await
    }

    /// Counts the shown chartsets for a comparison with an index at this position.
    pub async fn shown_count(&self, since: Position) -> Result<ShownCount, ReadError> {
        self.long_read("count chartsets", |mut connection| async move {
            let (unchanged, changed): (i64, Vec<String>) = sqlx::query_as(concat!(
                "WITH changed AS MATERIALIZED (",
                changed_chartsets!(),
                ")
                 SELECT (SELECT count(*) FROM chartsets WHERE shown)
                        - (SELECT count(*) FROM chartsets JOIN changed USING (id) WHERE shown),
                        (SELECT coalesce(array_agg(id), '{}') FROM changed)"
            ))
            .bind(since.sequence.cast_signed())
            .fetch_one(&mut *connection)
            .await?;
            let changed = changed.iter().map(|id| parse_chartset_id(id)).collect::<Result<_, _>>()?;
            Ok(ShownCount { unchanged: unchanged.unsigned_abs(), changed })
        })
        .await
    }

    /// Returns which of the chartsets have changed after the position.
    pub async fn changed_since(
        &self,
        since: Position,
        ids: &[ChartsetId],
    ) -> Result<HashSet<ChartsetId>, ReadError> {
        let ids: Vec<String> = ids.iter().map(ChartsetId::to_string).collect();
        let query = || {
            sqlx::query_as(concat!(
                "SELECT id FROM (",
                changed_chartsets!(),
                ") AS changed WHERE id = ANY($2)"
            ))
            .bind(since.sequence.cast_signed())
            .bind(&ids)
        };
        let parse = |(id,): (String,)| parse_chartset_id(&id);
        self.read_rows("read changed chartsets", ReadLength::Long, query, parse).await
    }
}

/// Reads the current state of the chartsets with these ids that are shown, in the order of the ids.
pub(crate) async fn read_indexed(
    connection: &mut PgConnection,
    ids: &[ChartsetId],
) -> Result<Vec<IndexedChartset>, sqlx::Error> {
    let ids: Vec<String> = ids.iter().map(ChartsetId::to_string).collect();
    let rows: Vec<IndexedRow> =
        sqlx::query_as("SELECT * FROM indexed_chartsets WHERE id = ANY($1) ORDER BY id")
            .bind(ids)
            .fetch_all(connection)
            .await?;
    rows.into_iter().map(IndexedRow::parse).collect()
}
