//! Stores what an export contains: charts with their ROX files first, then the chartsets that contain them.

use std::collections::HashMap;

use chart_index_domain::{ChartDraft, ChartNumbers, ChartsetDraft, NoteHash};
use sqlx::Connection;

use crate::put_chartset_sql as sql;
use crate::removal_lock;
use crate::rows::checked_at_ms;
use crate::stored_times::StoredTimes;
use crate::{ExpectedChartset, PutEffect, PutOutcome, Store, StoreError};

/// A chartset of an export. Its charts are stored already.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedChartset {
    /// The content of the chartset. The path applies only to a new one.
    pub draft: ChartsetDraft,
    /// When it last changed in the index that was exported.
    pub updated_at_ms: i64,
    /// When it was last checked there.
    pub checked_at_ms: i64,
}

/// What stays of a chart or chartset that is stored and imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// What is stored, if it is a chartset that changed later, or a ROX file.
    Stored,
    /// What is imported: this index mirrors the other one.
    Imported,
}

/// What [`Store::import_chartset`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    /// The chartset is stored: it was written, or was the same before.
    Stored(PutOutcome),
    /// The stored chartset changed after the imported one, and stays as it is.
    Newer,
}

/// The stored values of a chart that an import compares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoredNumbers {
    /// Those of the first file that was ingested with this hash.
    pub numbers: ChartNumbers,
    /// The size of its ROX file.
    pub rox_bytes: u64,
}

#[derive(sqlx::FromRow)]
struct StoredChartset {
    content_fingerprint: Vec<u8>,
    updated_at_ms: i64,
    checked_at_ms: i64,
    removed: bool,
}

impl Store {
    /// Stores new charts with their ROX files and previews, and leaves stored ones as they are. Charts become
    /// known when a chartset contains them.
    pub async fn put_charts(&self, charts: &[ChartDraft], now_ms: i64) -> Result<(), StoreError> {
        let mut charts: Vec<&ChartDraft> = charts.iter().collect();
        charts.sort_by_key(|chart| chart.hash);
        self.run_once("put charts", |mut connection| async move {
            let mut transaction = connection.begin_with(removal_lock::BEGIN_INSERT).await?;
            sql::insert_charts(&mut transaction, &charts, now_ms).await?;
            transaction.commit().await
        })
        .await
    }

    /// Returns the stored values of these charts, removed or not. Charts that are not stored are left out.
    pub async fn stored_numbers(
        &self,
        hashes: &[NoteHash],
    ) -> Result<HashMap<NoteHash, StoredNumbers>, StoreError> {
        let hashes: Vec<&[u8]> = hashes.iter().map(|hash| &hash.as_bytes()[..]).collect();
        self.run_once("read stored numbers", |mut connection| async move {
            let stored = sql::stored_charts(&mut connection, &hashes).await?;
            let numbers = |chart: sql::CanonicalChart| StoredNumbers {
                numbers: chart.numbers,
                rox_bytes: chart.rox_bytes,
            };
            Ok(stored.into_iter().map(|(hash, chart)| (hash, numbers(chart))).collect())
        })
        .await
    }

    /// Stores a chartset of another index with its times, unless the stored one changed later and takes
    /// precedence. A chartset that is stored keeps its path, and stays removed if it is.
    pub async fn import_chartset(
        &self,
        chartset: &ImportedChartset,
        precedence: Precedence,
        now_ms: i64,
    ) -> Result<ImportOutcome, StoreError> {
        let fingerprint = crate::content_fingerprint(&chartset.draft);
        if let Some(stored) = self.stored_chartset(chartset).await? {
            if stored.updated_at_ms > chartset.updated_at_ms && precedence == Precedence::Stored {
                return Ok(ImportOutcome::Newer);
            }
            if stored.updated_at_ms == chartset.updated_at_ms && stored.content_fingerprint == fingerprint {
                let removed = stored.removed;
                if stored.checked_at_ms < chartset.checked_at_ms {
                    self.record_check(chartset, fingerprint).await?;
                }
                return Ok(ImportOutcome::Stored(PutOutcome { effect: PutEffect::Unchanged, removed }));
            }
        }
        let times = StoredTimes {
            updated_at_ms: chartset.updated_at_ms,
            checked_at_ms: chartset.checked_at_ms,
            now_ms,
            imported: Some(precedence),
        };
        let outcome = self.put_folder(&chartset.draft, times).await?;
        Ok(outcome.map_or(ImportOutcome::Newer, ImportOutcome::Stored))
    }

    async fn stored_chartset(
        &self,
        chartset: &ImportedChartset,
    ) -> Result<Option<StoredChartset>, StoreError> {
        let id = chartset.draft.id.to_string();
        self.run_once("read stored chartset", |mut connection| async move {
            sqlx::query_as(concat!(
                "SELECT chartset.content_fingerprint, chartset.updated_at_ms, ",
                checked_at_ms!(),
                ", chartset.removed_at_ms IS NOT NULL AS removed FROM chartsets AS chartset WHERE chartset.id = $1"
            ))
            .bind(id)
            .fetch_optional(&mut *connection)
            .await
        })
        .await
    }

    async fn record_check(
        &self,
        chartset: &ImportedChartset,
        fingerprint: [u8; 32],
    ) -> Result<(), StoreError> {
        let expected = ExpectedChartset { id: chartset.draft.id, fingerprint, path: String::new() };
        self.record_unchanged_chartsets(&[expected], chartset.checked_at_ms).await.map(drop)
    }
}
