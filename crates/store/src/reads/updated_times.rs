//! Reads when chartsets last changed, for feeds.

use chart_index_domain::{ChartsetId, ReadError};

use crate::Store;
use crate::schema::column_values::parse_chartset_id;

impl Store {
    /// Returns when each of these chartsets last changed, in Unix epoch milliseconds. Chartsets that are not
    /// shown are left out.
    pub async fn updated_times(&self, ids: &[ChartsetId]) -> Result<Vec<(ChartsetId, i64)>, ReadError> {
        let texts: &Vec<String> = &ids.iter().map(ChartsetId::to_string).collect();
        self.short_read("read times of changes", |mut connection| async move {
            let rows: Vec<(String, i64)> =
                sqlx::query_as("SELECT id, updated_at_ms FROM chartsets WHERE id = ANY($1) AND shown")
                    .bind(texts)
                    .fetch_all(&mut *connection)
                    .await?;
            connection.release();
            rows.iter().map(|(id, updated)| Ok((parse_chartset_id(id)?, *updated))).collect()
        })
        .await
    }
}
