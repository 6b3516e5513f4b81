//! Where removed charts are, so that an ingest can report those that no file has any more.

use std::collections::{HashMap, HashSet};

use chart_index_domain::{ChartsetId, NoteHash};

use crate::schema::column_values::parse_chartset_id;
use crate::{Store, StoreError};

/// A removed chart in a chartset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedMember {
    /// The chart.
    pub chart: NoteHash,
    /// The chartset.
    pub chartset: ChartsetId,
    /// The path of the chartset below the library root.
    pub path: String,
}

impl Store {
    /// Returns the removed charts in chartsets, in the order of their hashes. Erased ones are in none.
    pub async fn removed_members(&self) -> Result<Vec<RemovedMember>, StoreError> {
        let query = sqlx::query_as(
            "SELECT chart_hash, chartset_id, path FROM removals
             JOIN chartset_charts ON chart_hash = entity JOIN chartsets ON id = chartset_id
             ORDER BY chart_hash, chartset_id",
        );
        let member = |(chart, chartset, path): (_, String, _)| {
            let (chart, chartset) = (NoteHash::from_bytes(chart), parse_chartset_id(&chartset)?);
            Ok(RemovedMember { chart, chartset, path })
        };
        self.fetch_rows("read removed charts in chartsets", query, member).await
    }

    /// Returns the erased charts.
    pub async fn erased_charts(&self) -> Result<HashSet<NoteHash>, StoreError> {
        let query = sqlx::query_as("SELECT entity FROM removals WHERE erased AND octet_length(entity) = 32");
        self.fetch_rows("read erased charts", query, |(hash,)| Ok(NoteHash::from_bytes(hash))).await
    }

    /// Returns those of the charts that are removed and in no chartset, each with whether it is erased.
    pub async fn removed_without_chartset(
        &self,
        charts: &[NoteHash],
    ) -> Result<HashMap<NoteHash, bool>, StoreError> {
        let hashes: Vec<_> = charts.iter().map(NoteHash::as_bytes).collect();
        let query = sqlx::query_as(
            "SELECT entity, erased FROM removals
             WHERE entity = ANY($1) AND NOT EXISTS (SELECT FROM chartset_charts WHERE chart_hash = entity)",
        );
        let parse = |(hash, is_erased): (_, bool)| Ok((NoteHash::from_bytes(hash), is_erased));
        self.fetch_rows("read removed charts without chartset", query.bind(hashes), parse).await
    }
}
