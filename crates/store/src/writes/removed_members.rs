//! Where removed charts are, so that an ingest can report those that no file has any more.

use std::collections::{HashMap, HashSet};

use chart_index_domain::{ChartsetId, NoteHash};

use crate::schema::column_values::{parse_chartset_id, parse_hash};
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
        self.run_once("read removed charts in chartsets", |mut connection| async move {
            let rows: Vec<(Vec<u8>, String, String)> = sqlx::query_as(
                "SELECT chart_hash, chartset_id, path FROM removals
                 JOIN chartset_charts ON chart_hash = entity JOIN chartsets ON id = chartset_id
                 ORDER BY chart_hash, chartset_id",
            )
            .fetch_all(&mut *connection)
            .await?;
            let member = |(chart, chartset, path): (Vec<u8>, String, String)| {
                let (chart, chartset) = (parse_hash(&chart)?, parse_chartset_id(&chartset)?);
                Ok(RemovedMember { chart, chartset, path })
            };
            rows.into_iter().map(member).collect()
        })
        .await
    }

    /// Returns the erased charts.
    pub async fn erased_charts(&self) -> Result<HashSet<NoteHash>, StoreError> {
        self.run_once("read erased charts", |mut connection| async move {
            let rows: Vec<Vec<u8>> =
                sqlx::query_scalar("SELECT entity FROM removals WHERE erased AND octet_length(entity) = 32")
                    .fetch_all(&mut *connection)
                    .await?;
            rows.iter().map(|hash| parse_hash(hash)).collect()
        })
        .await
    }

    /// Returns those of the charts that are removed and in no chartset, each with whether it is erased.
    pub async fn removed_without_chartset(
        &self,
        charts: &[NoteHash],
    ) -> Result<HashMap<NoteHash, bool>, StoreError> {
        let hashes: &Vec<&[u8]> = &charts.iter().map(|hash| &hash.as_bytes()[..]).collect();
        self.run_once("read removed charts without chartset", |mut connection| async move {
            let rows: Vec<(Vec<u8>, bool)> = sqlx::query_as(
                "SELECT entity, erased FROM removals
                 WHERE entity = ANY($1) AND NOT EXISTS (SELECT FROM chartset_charts WHERE chart_hash = entity)",
            )
            .bind(hashes)
            .fetch_all(&mut *connection)
            .await?;
            rows.into_iter().map(|(hash, is_erased)| Ok((parse_hash(&hash)?, is_erased))).collect()
        })
        .await
    }
}
