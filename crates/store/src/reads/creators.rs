//! Reads the charts of a creator, for their page.

use chart_index_domain::{CreatorChart, ReadError};

use crate::Store;
use crate::connection::server::ReadLength;
use crate::schema::member_rows::{ListedChartRow, listed_chart_columns};
use crate::schema::sql_text::replace_nul;

#[derive(sqlx::FromRow)]
struct CreatorRow {
    first_seen_ms: i64,
    #[sqlx(flatten)]
    listed: ListedChartRow,
}

/// Reads up to a number of the charts in chartsets that name a creator, in no order. Each is found by its keys
/// whatever PostgreSQL expects of the name.
pub(crate) const CHARTS_OF_CREATOR: &str = concat!(
    "SELECT occurrence.* FROM (
         SELECT * FROM chartset_charts
         WHERE creator = $1 AND octet_length(creator) BETWEEN 1 AND 800 LIMIT $2
     ) AS member CROSS JOIN LATERAL (
         SELECT chart.first_seen_ms, ",
    listed_chart_columns!(),
    "    FROM charts AS chart JOIN chartsets AS chartset ON chartset.id = member.chartset_id
         WHERE chart.hash = member.chart_hash AND chart.removed_at_ms IS NULL AND chartset.shown
     OFFSET 0) AS occurrence"
);

impl Store {
    /// Returns the shown charts of up to this number of charts in chartsets that name this creator, exactly as
    /// their files spell it: those that came into the index last are first. A chart may be in several
    /// chartsets.
    pub async fn charts_of_creator(&self, name: &str, limit: u32) -> Result<Vec<CreatorChart>, ReadError> {
        let name = replace_nul(name);
        let query = || sqlx::query_as(CHARTS_OF_CREATOR).bind(&*name).bind(i64::from(limit));
        let read = self.read_rows("read charts of creator", ReadLength::Short, query, CreatorRow::parse);
        let mut charts: Vec<CreatorChart> = read.await?;
        charts.sort_by_cached_key(|chart| {
            (std::cmp::Reverse(chart.first_seen_ms), chart.listed.chart.hash, chart.chartset_id)
        });
        Ok(charts)
    }
}

impl CreatorRow {
    fn parse(self) -> Result<CreatorChart, sqlx::Error> {
        let chartset_id = self.listed.chartset_id()?;
        Ok(CreatorChart { listed: self.listed.into_chart()?, chartset_id, first_seen_ms: self.first_seen_ms })
    }
}
