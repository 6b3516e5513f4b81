//! What `verify` compares.

use std::fmt::Debug;

use chart_index_domain::{ChartNumbers, ChartsetId, NoteHash};
use sqlx::{Connection, PgConnection};

use crate::columns::{DerivedColumns, keyword_columns, listed_columns};
use crate::lease::Lease;
use crate::members::{SetRow, derive};
use crate::rows::{ChartRow, chart_columns};
use crate::{Store, StoreError};

/// A chart as it is stored, known or not.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredChart {
    /// The note hash.
    pub hash: NoteHash,
    /// The numbers stored with it.
    pub numbers: ChartNumbers,
    /// The stored size of the ROX file, as answers give it.
    pub rox_bytes: u64,
    /// The ROX file; empty where it is missing.
    pub rox: Vec<u8>,
}

/// A stored value of a chartset that does not follow from its charts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateMismatch {
    /// The chartset.
    pub id: ChartsetId,
    /// The column.
    pub column: &'static str,
    /// What is stored.
    pub stored: String,
    /// What follows from the charts.
    pub expected: String,
}

/// How much the index shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Chartsets that are shown.
    pub chartsets: u64,
    /// Charts that are known.
    pub charts: u64,
}

#[derive(sqlx::FromRow)]
struct StoredRow {
    #[sqlx(flatten)]
    chart: ChartRow,
    rox: Vec<u8>,
}

#[derive(sqlx::FromRow)]
struct AggregateRow {
    #[sqlx(flatten)]
    set: SetRow,
    #[sqlx(flatten)]
    columns: DerivedColumns,
}

impl Store {
    /// The next stored charts in the order of their hashes: all of them, also removed ones and those that no
    /// chartset holds any more. Empty after the last.
    pub async fn stored_charts_after(
        &self,
        after: Option<NoteHash>,
        limit: u32,
    ) -> Result<Vec<StoredChart>, StoreError> {
        self.run_once("read stored charts", |lease| Self::stored_charts(lease, after, limit)).await
    }

    async fn stored_charts(
        mut lease: Lease,
        after: Option<NoteHash>,
        limit: u32,
    ) -> Result<Vec<StoredChart>, sqlx::Error> {
        let rows: Vec<StoredRow> = sqlx::query_as(concat!(
            "SELECT ",
            chart_columns!(),
            ", coalesce(rox.bytes, '') AS rox
             FROM charts AS chart LEFT JOIN rox_files AS rox ON rox.hash = chart.hash
             WHERE chart.hash > $1 ORDER BY chart.hash LIMIT $2"
        ))
        // No hash is empty, so this lies before the first.
        .bind(after.as_ref().map_or(&[][..], |hash| hash.as_bytes()))
        .bind(i64::from(limit))
        .fetch_all(lease.connection())
        .await?;
        rows.into_iter().map(StoredRow::parse).collect()
    }

    /// Puts the next chartsets together again from their charts and compares every stored column. Gives what
    /// differs, and where to go on; `None` after the last.
    pub async fn aggregate_mismatches(
        &self,
        after: Option<ChartsetId>,
        limit: u32,
    ) -> Result<(Vec<AggregateMismatch>, Option<ChartsetId>), StoreError> {
        self.run_once("check chartsets", |lease| Self::compare_aggregates(lease, after, limit)).await
    }

    async fn compare_aggregates(
        mut lease: Lease,
        after: Option<ChartsetId>,
        limit: u32,
    ) -> Result<(Vec<AggregateMismatch>, Option<ChartsetId>), sqlx::Error> {
        // Sets and charts of one moment: an ingest in between would look like a mismatch.
        let connection = lease.connection();
        let mut snapshot =
            connection.begin_with("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY").await?;
        let (sets, stored) = stored_aggregates(&mut snapshot, after, limit).await?;
        let expected = derive(&mut snapshot, &sets).await?;
        snapshot.commit().await?;
        let mut mismatches = Vec::new();
        for ((set, stored), expected) in sets.iter().zip(&stored).zip(&expected) {
            compare(set.id()?, stored, expected, &mut mismatches);
        }
        let next = sets.last().map(SetRow::id).transpose()?;
        Ok((mismatches, next))
    }

    /// How many chartsets are shown and how many charts are known.
    pub async fn counts(&self) -> Result<Counts, StoreError> {
        let (chartsets, charts): (i64, i64) = self
            .run_once("count", |mut lease| async move {
                sqlx::query_as(
                    "SELECT (SELECT count(*) FROM chartsets WHERE shown),
                            (SELECT count(*) FROM charts AS chart WHERE chart.removed_at_ms IS NULL AND EXISTS (
                                SELECT 1 FROM chartset_charts AS member
                                JOIN chartsets AS chartset ON chartset.id = member.chartset_id
                                WHERE member.chart_hash = chart.hash AND chartset.removed_at_ms IS NULL))",
                )
                .fetch_one(lease.connection())
                .await
            })
            .await?;
        Ok(Counts { chartsets: chartsets.unsigned_abs(), charts: charts.unsigned_abs() })
    }
}

impl StoredRow {
    fn parse(self) -> Result<StoredChart, sqlx::Error> {
        Ok(StoredChart {
            hash: self.chart.hash()?,
            numbers: self.chart.numbers()?,
            rox_bytes: self.chart.rox_bytes()?,
            rox: self.rox,
        })
    }
}

async fn stored_aggregates(
    connection: &mut PgConnection,
    after: Option<ChartsetId>,
    limit: u32,
) -> Result<(Vec<SetRow>, Vec<DerivedColumns>), sqlx::Error> {
    let rows: Vec<AggregateRow> = sqlx::query_as(concat!(
        "SELECT id, exact_kind, exact_ref, ",
        listed_columns!(),
        ", ",
        keyword_columns!(),
        ", title_sort, artist_sort, creator_search, tsvector_to_array(search_words) AS lexemes
         FROM chartsets WHERE id > $1 ORDER BY id LIMIT $2"
    ))
    .bind(after.map(|id| id.to_string()).unwrap_or_default())
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| (row.set, row.columns)).unzip())
}

fn compare(
    id: ChartsetId,
    stored: &DerivedColumns,
    expected: &DerivedColumns,
    mismatches: &mut Vec<AggregateMismatch>,
) {
    macro_rules! compare_columns {
        ($($part:ident: $($column:ident),+;)+) => {
            [$($(difference(stringify!($column), &stored.$part.$column, &expected.$part.$column)),+),+]
        };
    }
    let mut stored = stored.clone();
    // PostgreSQL orders lexemes by their lengths first.
    stored.search.lexemes.sort_unstable();
    let differences = compare_columns! {
        listed: title, artist, creator, source_kind, source_ref, keys, bpm_min, bpm_max, length_min_ms,
            length_max_ms, density_max, chart_count;
        keywords: tags, romanised_names;
        search: title_sort, artist_sort, creator_search, lexemes;
    };
    mismatches.extend(
        differences.into_iter().flatten().map(|(column, stored, expected)| AggregateMismatch {
            id,
            column,
            stored,
            expected,
        }),
    );
}

fn difference<T: PartialEq + Debug>(
    column: &'static str,
    stored: &T,
    expected: &T,
) -> Option<(&'static str, String, String)> {
    (stored != expected).then(|| (column, format!("{stored:?}"), format!("{expected:?}")))
}
