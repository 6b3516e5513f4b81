//! Reads an example for the documentation of the API: a chart of the newest chartset.

use chart_index_domain::{ChartsetId, NoteHash, ReadError};

use crate::Store;
use crate::connection::server::ReadLength;
use crate::schema::column_values::parse_chartset_id;

impl Store {
    /// Returns the newest chartset with a public source, and one of its charts. `None` without one.
    pub async fn newest_chart(&self) -> Result<Option<(ChartsetId, NoteHash)>, ReadError> {
        let query = || {
            sqlx::query_as(
                "SELECT newest.id, chart.hash
                 FROM (SELECT id FROM shown_chartsets WHERE source_kind IS NOT NULL
                       ORDER BY updated_at_ms DESC, id LIMIT 1) AS newest
                 JOIN chartset_charts AS member ON member.chartset_id = newest.id
                 JOIN charts AS chart ON chart.hash = member.chart_hash
                 WHERE chart.removed_at_ms IS NULL
                 ORDER BY chart.hash LIMIT 1",
            )
        };
        let parse = |(id, hash): (String, _)| Ok((parse_chartset_id(&id)?, NoteHash::from_bytes(hash)));
        self.read_row("read newest chart", ReadLength::Short, query, parse).await
    }
}
