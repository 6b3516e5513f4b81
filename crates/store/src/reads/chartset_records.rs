//! Reads records of chartsets, for the change feed and for exports.

use std::collections::BTreeMap;

use chart_index_domain::{ChartsetId, ChartsetMember, ChartsetRecord, PublicSource, ReadError};
use sqlx::PgConnection;

use crate::Store;
use crate::schema::column_values::parse_source;
use crate::schema::member_rows::{MemberRow, member_columns};

/// A shown chartset with the time of its last check.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedRecord {
    /// When the chartset was last checked, in Unix epoch milliseconds: `checkedAtMs` of its sources.
    pub checked_at_ms: i64,
    /// The chartset with its charts and sources.
    pub record: ChartsetRecord,
}

#[derive(sqlx::FromRow)]
struct RecordRow {
    exact_kind: Option<String>,
    exact_ref: Option<String>,
    updated_at_ms: i64,
    checked_at_ms: i64,
    #[sqlx(flatten)]
    member: MemberRow,
}

/// A chartset, while the rows of its charts are collected.
struct Members {
    exact_source: Option<PublicSource>,
    updated_at_ms: i64,
    checked_at_ms: i64,
    charts: Vec<ChartsetMember>,
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
    let rows: Vec<RecordRow> = sqlx::query_as(concat!(
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
    let mut chartsets = BTreeMap::new();
    for row in rows {
        row.add_to(&mut chartsets)?;
    }
    Ok(chartsets.into_iter().filter_map(|(id, members)| members.into_record(id)).collect())
}

impl RecordRow {
    fn add_to(self, chartsets: &mut BTreeMap<ChartsetId, Members>) -> Result<(), sqlx::Error> {
        let id = self.member.chartset_id()?;
        let exact_source = parse_source(self.exact_kind.as_deref(), self.exact_ref.as_deref())?;
        let (updated_at_ms, checked_at_ms) = (self.updated_at_ms, self.checked_at_ms);
        let members = chartsets.entry(id).or_insert_with(|| Members {
            exact_source,
            updated_at_ms,
            checked_at_ms,
            charts: Vec::new(),
        });
        members.charts.push(self.member.into_member()?);
        Ok(())
    }
}

impl Members {
    fn into_record(self, id: ChartsetId) -> Option<CheckedRecord> {
        let record = ChartsetRecord::new(id, self.updated_at_ms, self.exact_source, self.charts)?;
        Some(CheckedRecord { checked_at_ms: self.checked_at_ms, record })
    }
}
