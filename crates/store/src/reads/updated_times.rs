//! Reads when chartsets and charts last changed, for feeds.

use chart_index_domain::{ChartsetId, NoteHash, ReadError};

use crate::Store;
use crate::connection::server::ReadLength;
use crate::schema::column_values::parse_chartset_id;

impl Store {
    /// Returns when each of these chartsets last changed, in Unix epoch milliseconds. Chartsets that are not
    /// shown are left out.
    pub async fn updated_times(&self, ids: &[ChartsetId]) -> Result<Vec<(ChartsetId, i64)>, ReadError> {
        let ids: Vec<String> = ids.iter().map(ChartsetId::to_string).collect();
        let query = || {
            sqlx::query_as("SELECT id, updated_at_ms FROM chartsets WHERE id = ANY($1) AND shown").bind(&ids)
        };
        let parse = |(id, updated): (String, i64)| Ok((parse_chartset_id(&id)?, updated));
        self.read_rows("read times of changes", ReadLength::Short, query, parse).await
    }

    /// Returns when each of these charts last changed, in Unix epoch milliseconds: its metadata, its sources,
    /// or whether it is known. Charts that never were known are left out.
    pub async fn changed_times(&self, hashes: &[NoteHash]) -> Result<Vec<(NoteHash, i64)>, ReadError> {
        let hashes: Vec<_> = hashes.iter().map(NoteHash::as_bytes).collect();
        let query = || {
            sqlx::query_as("SELECT entity, changed_at_ms FROM catalogue_changes WHERE entity = ANY($1)")
                .bind(&hashes)
        };
        let parse = |(hash, changed): (_, i64)| Ok((NoteHash::from_bytes(hash), changed));
        self.read_rows("read times of changes of charts", ReadLength::Short, query, parse).await
    }
}
