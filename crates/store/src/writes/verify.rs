//! Reads and compares stored values, for `chart-indexer verify`.

use std::fmt::Debug;

use chart_index_domain::{ChartValues, ChartsetId, NoteHash};
use sqlx::Connection;

use crate::connection::pooled_connection::{BEGIN_SNAPSHOT, PooledConnection};
use crate::error::corrupt;
use crate::schema::chart_row::{ChartRow, chart_columns};
use crate::schema::derived_columns::DerivedColumns;
use crate::schema::stored_files::StoredFile;
use crate::writes::derive::{ChartsetRow, derive_columns, stored_columns};
use crate::{Store, StoreError};

/// A stored chart, whether or not it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredChart {
    /// The note hash that it is stored under.
    pub hash: NoteHash,
    /// The version of the note hash.
    pub note_hash_version: u32,
    /// The values in responses, which must be those of the ROX file.
    pub values: ChartValues,
    /// Whether all values are computed.
    pub is_complete: bool,
    /// Its ROX file; empty if it is missing.
    pub rox: Vec<u8>,
    /// Why the ROX file is missing, if its object is missing or damaged.
    pub lost: Option<String>,
}

/// A stored value of a chartset that differs from the value derived from its charts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnMismatch {
    /// The id of the chartset.
    pub id: ChartsetId,
    /// The name of the column; `lexemes` for `search_words`.
    pub column: &'static str,
    /// The stored value, for the report.
    pub stored: String,
    /// The derived value, for the report.
    pub expected: String,
}

/// The size of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueCounts {
    /// Number of shown chartsets.
    pub chartsets: u64,
    /// Number of known charts.
    pub charts: u64,
}

#[derive(sqlx::FromRow)]
struct StoredChartRow {
    #[sqlx(flatten)]
    chart: ChartRow,
    note_hash_version: i32,
    rox: Option<Vec<u8>>,
    rox_object: Option<[u8; 32]>,
}

impl Store {
    /// Returns the next stored charts in the order of their hashes, including removed charts and those in no
    /// chartset. Empty after the last.
    pub async fn stored_charts_after(
        &self,
        after: Option<NoteHash>,
        limit: u32,
    ) -> Result<Vec<StoredChart>, StoreError> {
        const OPERATION: &str = "read stored charts";
        let failed = |error| StoreError::new(OPERATION, error);
        let query = sqlx::query_as(concat!(
            "SELECT ",
            chart_columns!(),
            // Not a join: PostgreSQL would merge both tables, and read all files below the page.
            ", chart.note_hash_version,
             (SELECT rox.bytes FROM rox_files AS rox WHERE rox.hash = chart.hash) AS rox,
             (SELECT rox.object FROM rox_files AS rox WHERE rox.hash = chart.hash) AS rox_object
             FROM charts AS chart WHERE chart.hash > $1 ORDER BY chart.hash LIMIT $2"
        ));
        // The empty value sorts before every hash.
        let query = query.bind(after.as_ref().map_or(&[][..], |hash| hash.as_bytes())).bind(i64::from(limit));
        let rows: Vec<StoredChartRow> = self.fetch_rows(OPERATION, query, Ok).await?;
        let (mut charts, mut indexes, mut files) = (Vec::new(), Vec::new(), Vec::new());
        for (index, mut row) in rows.into_iter().enumerate() {
            if let Some(file) = StoredFile::new(row.rox.take(), row.rox_object) {
                indexes.push(index);
                files.push(file);
            }
            charts.push(row.parse().map_err(failed)?);
        }
        for (index, rox) in indexes.into_iter().zip(self.contents(files).await.map_err(failed)?) {
            let Some(chart) = charts.get_mut(index) else { continue };
            match rox {
                Ok(rox) => chart.rox = rox,
                Err(error) => chart.lost = Some(error.to_string()),
            }
        }
        Ok(charts)
    }

    /// Derives the next chartsets from their charts again and compares every stored column. Returns the
    /// differences, and the id to continue after; `None` after the last.
    pub async fn column_mismatches(
        &self,
        after: Option<ChartsetId>,
        limit: u32,
    ) -> Result<(Vec<ColumnMismatch>, Option<ChartsetId>), StoreError> {
        self.run_once("check chartsets", |connection| Self::compare_columns(connection, after, limit)).await
    }

    async fn compare_columns(
        mut connection: PooledConnection,
        after: Option<ChartsetId>,
        limit: u32,
    ) -> Result<(Vec<ColumnMismatch>, Option<ChartsetId>), sqlx::Error> {
        // One snapshot of chartsets and charts: otherwise a concurrent ingest would look like a mismatch.
        let mut snapshot = connection.begin_with(BEGIN_SNAPSHOT).await?;
        let after = after.map(|id| id.to_string()).unwrap_or_default();
        let (sets, stored) = stored_columns(&mut snapshot, &after, limit.into()).await?;
        let expected = derive_columns(&mut snapshot, &sets).await?;
        snapshot.commit().await?;
        let mut mismatches = Vec::new();
        for ((set, stored), expected) in sets.iter().zip(&stored).zip(&expected) {
            compare(set.id()?, stored, expected, &mut mismatches);
        }
        let next = sets.last().map(ChartsetRow::id).transpose()?;
        Ok((mismatches, next))
    }

    /// Counts the stored charts, including removed ones and those in no chartset.
    pub async fn stored_chart_count(&self) -> Result<u64, StoreError> {
        self.run_once("count stored charts", |mut connection| async move {
            let count: i64 =
                sqlx::query_scalar("SELECT count(*) FROM charts").fetch_one(&mut *connection).await?;
            Ok(count.unsigned_abs())
        })
        .await
    }

    /// Counts the shown chartsets and the known charts.
    pub async fn counts(&self) -> Result<CatalogueCounts, StoreError> {
        let (chartsets, charts): (i64, i64) = self
            .run_once("count", |mut connection| async move {
                sqlx::query_as(
                    "SELECT (SELECT count(*) FROM chartsets WHERE shown), (SELECT count(*) FROM known_charts)",
                )
                .fetch_one(&mut *connection)
                .await
            })
            .await?;
        Ok(CatalogueCounts { chartsets: chartsets.unsigned_abs(), charts: charts.unsigned_abs() })
    }
}

impl StoredChartRow {
    /// The chart without its ROX file.
    fn parse(&self) -> Result<StoredChart, sqlx::Error> {
        Ok(StoredChart {
            hash: self.chart.hash(),
            note_hash_version: u32::try_from(self.note_hash_version).map_err(corrupt)?,
            values: self.chart.values()?,
            is_complete: self.chart.is_complete(),
            rox: Vec::new(),
            lost: None,
        })
    }
}

fn compare(
    id: ChartsetId,
    stored: &DerivedColumns,
    expected: &DerivedColumns,
    mismatches: &mut Vec<ColumnMismatch>,
) {
    macro_rules! differences {
        ($($part:ident: $($column:ident),+;)+) => {
            [$($(difference(stringify!($column), &stored.$part.$column, &expected.$part.$column)),+),+]
        };
    }
    let differences = differences! {
        listed: title, artist, creator, source_kind, source_ref, keys, bpm_min, bpm_max, length_min_ms,
            length_max_ms, density_max, chart_count;
        keywords: tags, romanised_names;
        search: title_sort, artist_sort, creator_search, lexemes;
    };
    mismatches.extend(differences.into_iter().flatten().map(|(column, stored, expected)| ColumnMismatch {
        id,
        column,
        stored,
        expected,
    }));
}

fn difference<T: PartialEq + Debug>(
    column: &'static str,
    stored: &T,
    expected: &T,
) -> Option<(&'static str, String, String)> {
    (stored != expected).then(|| (column, format!("{stored:?}"), format!("{expected:?}")))
}
