//! Chartsets put together again from their charts, for removals and checks.

use std::collections::HashMap;

use chart_index_domain::{ChartsetId, ChartsetMember, PublicSource, assemble_chartset};
use sqlx::PgConnection;

use crate::columns::DerivedColumns;
use crate::error::corrupt;
use crate::rows::{MembershipRow, membership_columns, parse_source};

/// A chartset and the set or pack that its folder belongs to.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct SetRow {
    id: String,
    exact_kind: Option<String>,
    exact_ref: Option<String>,
}

impl SetRow {
    pub(crate) fn id(&self) -> Result<ChartsetId, sqlx::Error> {
        self.id.parse().map_err(corrupt)
    }

    fn exact(&self) -> Result<Option<PublicSource>, sqlx::Error> {
        parse_source(self.exact_kind.as_deref(), self.exact_ref.as_deref())
    }
}

/// The columns that follow from the charts of these sets that are not removed, in the order of the sets.
pub(crate) async fn derive(
    connection: &mut PgConnection,
    sets: &[SetRow],
) -> Result<Vec<DerivedColumns>, sqlx::Error> {
    let mut charts = visible_charts(connection, sets).await?;
    sets.iter()
        .map(|set| {
            let mut charts = charts.remove(&set.id).unwrap_or_default();
            Ok(DerivedColumns::new(assemble_chartset(set.id()?, set.exact()?.as_ref(), &mut charts)))
        })
        .collect()
}

async fn visible_charts(
    connection: &mut PgConnection,
    sets: &[SetRow],
) -> Result<HashMap<String, Vec<ChartsetMember>>, sqlx::Error> {
    let rows: Vec<MembershipRow> = sqlx::query_as(concat!(
        "SELECT ",
        membership_columns!(),
        " FROM chartset_charts AS member JOIN charts AS chart ON chart.hash = member.chart_hash
          WHERE member.chartset_id = ANY($1) AND chart.removed_at_ms IS NULL"
    ))
    .bind(sets.iter().map(|set| set.id.as_str()).collect::<Vec<_>>())
    .fetch_all(connection)
    .await?;
    let mut charts: HashMap<String, Vec<ChartsetMember>> = HashMap::new();
    for row in rows {
        charts.entry(row.chartset_id()?.to_string()).or_default().push(row.into_charted()?);
    }
    Ok(charts)
}
