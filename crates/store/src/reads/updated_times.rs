//! Reads when chartsets and charts last changed, for feeds.

use chart_index_domain::{ChartsetId, NoteHash, ReadError};

use crate::Store;
use crate::schema::column_values::{parse_chartset_id, parse_hash};

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

    /// Returns when each of these charts last changed, in Unix epoch milliseconds: its metadata, its sources,
    /// or whether it is known. Charts that never were known are left out.
    pub async fn changed_times(&self, hashes: &[NoteHash]) -> Result<Vec<(NoteHash, i64)>, ReadError> {
        let hashes: &Vec<&[u8]> = &hashes.iter().map(|hash| &hash.as_bytes()[..]).collect();
        self.short_read("read times of changes of charts", |mut connection| async move {
            let rows: Vec<(Vec<u8>, i64)> =
                sqlx::query_as("SELECT entity, changed_at_ms FROM catalogue_changes WHERE entity = ANY($1)")
                    .bind(hashes)
                    .fetch_all(&mut *connection)
                    .await?;
            connection.release();
            rows.iter().map(|(hash, changed)| Ok((parse_hash(hash)?, *changed))).collect()
        })
        .await
    }
}
