//! Reads the derived columns of stored chartsets, or derives them from their charts again.

use std::collections::HashMap;

use chart_index_domain::{ChartsetId, ChartsetMember, assemble_chartset};
use sqlx::PgConnection;

use crate::schema::column_values::{parse_chartset_id, parse_source};
use crate::schema::derived_columns::DerivedColumns;
use crate::schema::member_rows::{MemberRow, member_columns};

/// The columns of `chartsets` that are not derived but needed for the derivation.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct ChartsetRow {
    pub(crate) id: String,
    exact_kind: Option<String>,
    exact_ref: Option<String>,
}

impl ChartsetRow {
    pub(crate) fn id(&self) -> Result<ChartsetId, sqlx::Error> {
        parse_chartset_id(&self.id)
    }
}

#[derive(sqlx::FromRow)]
struct StoredRow {
    #[sqlx(flatten)]
    set: ChartsetRow,
    #[sqlx(flatten)]
    columns: DerivedColumns,
}

/// Reads the next chartsets in the order of their ids, and their derived columns as they are stored.
pub(crate) async fn stored_columns(
    connection: &mut PgConnection,
    after: &str,
    limit: i64,
) -> Result<(Vec<ChartsetRow>, Vec<DerivedColumns>), sqlx::Error> {
    let mut rows: Vec<StoredRow> = sqlx::query_as(
        "SELECT *, tsvector_to_array(search_words) AS lexemes FROM chartsets WHERE id > $1 ORDER BY id LIMIT $2",
    )
    .bind(after)
    .bind(limit)
    .fetch_all(connection)
    .await?;
    for row in &mut rows {
        // PostgreSQL sorts lexemes by length first.
        row.columns.search.lexemes.sort_unstable();
    }
    Ok(rows.into_iter().map(|row| (row.set, row.columns)).unzip())
}

/// Derives the columns of these chartsets from their charts that are not removed. Returns them in the same
/// order.
pub(crate) async fn derive_columns(
    connection: &mut PgConnection,
    sets: &[ChartsetRow],
) -> Result<Vec<DerivedColumns>, sqlx::Error> {
    let mut members = visible_members(connection, sets).await?;
    sets.iter()
        .map(|set| {
            let mut members = members.remove(&set.id).unwrap_or_default();
            let exact_source = parse_source(set.exact_kind.as_deref(), set.exact_ref.as_deref())?;
            Ok(DerivedColumns::new(assemble_chartset(set.id()?, exact_source.as_ref(), &mut members)))
        })
        .collect()
}

async fn visible_members(
    connection: &mut PgConnection,
    sets: &[ChartsetRow],
) -> Result<HashMap<String, Vec<ChartsetMember>>, sqlx::Error> {
    let rows: Vec<MemberRow> = sqlx::query_as(concat!(
        "SELECT ",
        member_columns!(),
        " FROM chartset_charts AS member JOIN charts AS chart ON chart.hash = member.chart_hash
          WHERE member.chartset_id = ANY($1) AND chart.removed_at_ms IS NULL"
    ))
    .bind(sets.iter().map(|set| set.id.as_str()).collect::<Vec<_>>())
    .fetch_all(connection)
    .await?;
    let mut members: HashMap<String, Vec<ChartsetMember>> = HashMap::new();
    for row in rows {
        members.entry(row.chartset_id()?.to_string()).or_default().push(row.into_member()?);
    }
    Ok(members)
}
