//! Reads records of chartsets, for the change feed and for exports.

use std::collections::BTreeMap;

use chart_index_domain::{ChartsetId, ChartsetRecord, ReadError};
use sqlx::PgConnection;

use crate::Store;
use crate::reads::lookups::{DetailRow, Occurrence};
use crate::schema::member_rows::member_columns;

/// A shown chartset with the time of its last check.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedRecord {
    /// When the chartset was last checked, in Unix epoch milliseconds: `checkedAtMs` of its sources.
    pub checked_at_ms: i64,
    /// The chartset with its charts and sources.
    pub record: ChartsetRecord,
}

impl Store {
    /// Returns the records of the chartsets with these ids that are shown, in the order of the ids.
    pub async fn chartset_records(&self, ids: &[ChartsetId]) -> Result<Vec<CheckedRecord>, ReadError> {
        self.long_read("read chartset records", |mut connection| async move {
            read_records(&mut connection, ids).await
        })
        .await
    }
}

/// Returns the records of the chartsets with these ids that are shown, in the order of the ids. It runs one
/// statement, which in a `REPEATABLE READ` transaction reads the snapshot of that transaction.
pub(crate) async fn read_records(
    connection: &mut PgConnection,
    ids: &[ChartsetId],
) -> Result<Vec<CheckedRecord>, sqlx::Error> {
    let rows: Vec<DetailRow> = sqlx::query_as(concat!(
        "SELECT chartset.exact_kind, chartset.exact_ref, chartset.updated_at_ms, chartset.checked_at_ms, ",
        member_columns!(),
        // `FileAliases::MAX_VALUES` of each kind.
        ", ARRAY(SELECT numbered.alias FROM (
                     SELECT alias, row_number() OVER (PARTITION BY octet_length(alias) ORDER BY alias) AS number
                     FROM chart_aliases AS other
                     WHERE other.chart_hash = member.chart_hash AND other.chartset_id = member.chartset_id
                 ) AS numbered WHERE numbered.number <= 64) AS aliases
          FROM checked_chartsets AS chartset
          JOIN chartset_charts AS member ON member.chartset_id = chartset.id
          JOIN charts AS chart ON chart.hash = member.chart_hash
          WHERE chartset.id = ANY($1) AND chartset.shown AND chart.removed_at_ms IS NULL"
    ))
    .bind(ids.iter().map(ChartsetId::to_string).collect::<Vec<_>>())
    .fetch_all(connection)
    .await?;
    let mut chartsets: BTreeMap<ChartsetId, Vec<_>> = BTreeMap::new();
    for row in rows {
        let (updated_at_ms, occurrence) = row.parse()?;
        chartsets.entry(occurrence.chartset_id).or_default().push((updated_at_ms, occurrence));
    }
    Ok(chartsets.into_iter().filter_map(|(id, charts)| record(id, charts)).collect())
}

/// The record of a chartset with these charts.
fn record(id: ChartsetId, charts: Vec<(i64, Occurrence)>) -> Option<CheckedRecord> {
    let (updated_at_ms, Occurrence { checked_at_ms, exact_source, .. }) = charts.first()?;
    let (updated_at_ms, checked_at_ms, exact_source) = (*updated_at_ms, *checked_at_ms, exact_source.clone());
    let members = charts.into_iter().map(|(_, occurrence)| occurrence.member).collect();
    let record = ChartsetRecord::new(id, updated_at_ms, exact_source, members)?;
    Some(CheckedRecord { checked_at_ms, record })
}
