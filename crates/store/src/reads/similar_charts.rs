//! Finds charts that play like another one: the nearest of its neighbours in a B-tree.
//!
//! PostgreSQL has no index by distance in ten dimensions that stays fast, and a list for each chart would be
//! out of date with every ingest. With 1,000,000 charts this takes an index of 10 MB and 3.5 ms; a `GiST` index
//! of rating and share of long notes took 85 MB and 24 ms, since many charts share a point. Where many charts
//! have the same rating, one that is a tenth of a level harder, with nearer patterns, may be missed.

use chart_index_domain::{ListedChart, NoteHash, ReadError, SimilarChart};

use crate::Store;
use crate::connection::server::ReadLength;
use crate::schema::member_rows::{ListedChartRow, listed_chart_columns};

impl Store {
    /// Returns charts with the same number of keys, a similar rating and similar patterns: the nearest first,
    /// at most 12, each in another chartset. Charts of the chartsets that contain the chart itself are left
    /// out. Empty if the chart is removed, not stored, or has no rating.
    pub async fn similar_charts(&self, hash: NoteHash) -> Result<Vec<SimilarChart>, ReadError> {
        let query = || {
            sqlx::query_as(concat!(
                "SELECT ",
                listed_chart_columns!(),
                " FROM similar_charts($1) AS similar_chart
                  JOIN chartset_charts AS member ON member.chartset_id = similar_chart.chartset_id
                                                AND member.chart_hash = similar_chart.hash
                  JOIN charts AS chart ON chart.hash = similar_chart.hash
                  ORDER BY similar_chart.distance, similar_chart.hash"
            ))
            .bind(hash.as_bytes())
        };
        self.read_rows("read similar charts", ReadLength::Short, query, similar_chart).await
    }
}

fn similar_chart(row: ListedChartRow) -> Result<SimilarChart, sqlx::Error> {
    let chartset_id = row.chartset_id()?;
    let ListedChart { chart, curve } = row.into_chart()?;
    Ok(SimilarChart { chart, curve, chartset_id })
}
