//! Stores what another index has: charts with their ROX files first, then the chartsets that contain them.

use std::collections::HashMap;

use chart_index_domain::{ChartDraft, ChartValues, ChartsetDraft, ChartsetId, FileAliases, NoteHash};
use sqlx::Connection;

use crate::connection::removal_lock;
use crate::schema::column_values::parse_chartset_id;
use crate::schema::stored_times::StoredTimes;
use crate::writes::put_chartset_sql as sql;
use crate::{ExpectedChartset, PutEffect, PutOutcome, Store, StoreError};

/// A chartset of another index. Its charts are stored already.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedChartset {
    /// The content of the chartset. The path applies only to a new one.
    pub draft: ChartsetDraft,
    /// When it last changed in that index.
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

/// What [`Store::import_chartsets`] did with a chartset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    /// The chartset is stored: it was written, or was the same before.
    Stored(PutOutcome),
    /// The stored chartset changed after the imported one, and stays as it is.
    Newer,
}

#[derive(sqlx::FromRow)]
struct StoredChartset {
    id: String,
    content_fingerprint: [u8; 32],
    updated_at_ms: i64,
    checked_at_ms: i64,
    removed: bool,
}

impl Store {
    /// Stores new charts with their ROX files, and leaves stored ones as they are. Charts become known when
    /// a chartset contains them.
    pub async fn put_charts(&self, charts: &[ChartDraft], now_ms: i64) -> Result<(), StoreError> {
        let mut charts: Vec<&ChartDraft> = charts.iter().collect();
        charts.sort_by_key(|chart| chart.hash);
        let objects = self.objects();
        self.run_once("put charts", |mut connection| async move {
            let mut transaction = connection.begin_with(removal_lock::BEGIN_INSERT).await?;
            sql::insert_charts(&mut transaction, objects, &charts, now_ms).await?;
            transaction.commit().await
        })
        .await
    }

    /// Returns the stored values of these charts, removed or not. Charts that are not stored are left out.
    pub async fn stored_values(
        &self,
        hashes: &[NoteHash],
    ) -> Result<HashMap<NoteHash, ChartValues>, StoreError> {
        let hashes: Vec<&[u8]> = hashes.iter().map(|hash| &hash.as_bytes()[..]).collect();
        self.run_once("read stored values", |mut connection| async move {
            let stored = sql::stored_charts(&mut connection, &hashes).await?;
            Ok(stored.into_iter().map(|(hash, chart)| (hash, chart.values)).collect())
        })
        .await
    }

    /// Stores chartsets of another index with their times in one transaction, except those that changed later
    /// here and take precedence. A chartset that is stored keeps its path, and stays removed if it is. Returns
    /// an outcome for each, in no particular order.
    ///
    /// Their ids must be different.
    pub async fn import_chartsets(
        &self,
        chartsets: &[ImportedChartset],
        precedence: Precedence,
        now_ms: i64,
    ) -> Result<Vec<ImportOutcome>, StoreError> {
        let stored = self.stored_chartsets(chartsets).await?;
        let (mut outcomes, mut unchanged, mut changed) = (Vec::new(), Vec::new(), Vec::new());
        for chartset in chartsets {
            let ImportedChartset { draft, updated_at_ms, checked_at_ms } = chartset;
            let (updated_at_ms, checked_at_ms) = (*updated_at_ms, *checked_at_ms);
            let stored = stored.get(&draft.id);
            let is_newer = stored.is_some_and(|stored| stored.updated_at_ms > updated_at_ms);
            if is_newer && precedence == Precedence::Stored {
                outcomes.push(ImportOutcome::Newer);
                continue;
            }
            let fingerprint = crate::content_fingerprint(draft);
            if let Some(stored) = stored
                && stored.updated_at_ms == updated_at_ms
                && stored.content_fingerprint == fingerprint
            {
                let (effect, removed) = (PutEffect::Unchanged, stored.removed);
                unchanged.push(draft);
                outcomes.push(ImportOutcome::Stored(PutOutcome { effect, removed }));
                if stored.checked_at_ms < checked_at_ms {
                    let expected = ExpectedChartset { id: draft.id, fingerprint, path: String::new() };
                    self.record_unchanged_chartsets(&[expected], checked_at_ms).await?;
                }
                continue;
            }
            let times = StoredTimes { updated_at_ms, checked_at_ms, now_ms, imported: Some(precedence) };
            changed.push((draft, times));
        }
        self.add_aliases(&unchanged).await?;
        let put = self.put_folders(&changed).await?;
        if precedence == Precedence::Imported {
            self.delete_other_aliases(chartsets).await?;
        }
        let outcome = |(draft, _): &(&ChartsetDraft, _)| {
            put.get(&draft.id).map_or(ImportOutcome::Newer, |put| ImportOutcome::Stored(*put))
        };
        outcomes.extend(changed.iter().map(outcome));
        Ok(outcomes)
    }

    /// Stores the aliases in these drafts of stored chartsets that are not stored yet.
    async fn add_aliases(&self, drafts: &[&ChartsetDraft]) -> Result<(), StoreError> {
        if drafts.is_empty() {
            return Ok(());
        }
        self.run_once("store aliases", |mut connection| async move {
            let charts = drafts.iter().flat_map(|draft| draft.charts.iter().map(|chart| (draft.id, chart)));
            sql::insert_aliases(&mut connection, charts.map(|(id, chart)| (id, chart.hash, &chart.aliases)))
                .await
        })
        .await
    }

    /// Deletes the aliases of charts in these chartsets that the other index does not have. It may have lost
    /// them, as in a restore or a failover. A list that is full may not be complete.
    async fn delete_other_aliases(&self, chartsets: &[ImportedChartset]) -> Result<(), StoreError> {
        let drafts = chartsets.iter().map(|chartset| &chartset.draft);
        let charts = drafts.flat_map(|draft| draft.charts.iter().map(|chart| (draft.id.to_string(), chart)));
        let (mut hashes, mut ids, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        let (mut listed_hashes, mut listed_ids, mut listed) = (Vec::new(), Vec::new(), Vec::new());
        for (id, chart) in charts {
            let FileAliases { md5s, roll_variants } = &chart.aliases;
            let md5s: Vec<&[u8]> = md5s.iter().map(|md5| &md5.as_bytes()[..]).collect();
            let roll_variants = roll_variants.iter().map(|variant| &variant.as_bytes()[..]).collect();
            for (length, aliases) in [(16, md5s), (32, roll_variants)] {
                if aliases.len() < FileAliases::MAX_VALUES {
                    hashes.push(&chart.hash.as_bytes()[..]);
                    ids.push(id.clone());
                    lengths.push(length);
                }
                listed_hashes.extend(aliases.iter().map(|_| &chart.hash.as_bytes()[..]));
                listed_ids.extend(aliases.iter().map(|_| id.clone()));
                listed.extend(aliases);
            }
        }
        let delete = sqlx::query(
            "WITH deleted AS (
                 DELETE FROM chart_aliases AS stored
                 USING unnest($1::bytea[], $2::text[], $3::integer[]) AS complete (hash, id, length)
                 WHERE stored.chart_hash = complete.hash AND stored.chartset_id = complete.id
                       AND octet_length(stored.alias) = complete.length AND NOT EXISTS (
                           SELECT FROM unnest($4::bytea[], $5::text[], $6::bytea[]) AS listed (hash, id, alias)
                           WHERE listed.hash = stored.chart_hash AND listed.id = stored.chartset_id
                                 AND listed.alias = stored.alias)
                 RETURNING stored.chartset_id
             )
             INSERT INTO pending_changes (entity) SELECT DISTINCT decode(chartset_id, 'hex') FROM deleted",
        );
        let delete = delete.bind(hashes).bind(ids).bind(lengths);
        let delete = delete.bind(listed_hashes).bind(listed_ids).bind(listed);
        self.execute("delete aliases", delete).await
    }

    async fn stored_chartsets(
        &self,
        chartsets: &[ImportedChartset],
    ) -> Result<HashMap<ChartsetId, StoredChartset>, StoreError> {
        let ids: Vec<String> = chartsets.iter().map(|chartset| chartset.draft.id.to_string()).collect();
        let query = sqlx::query_as(
            "SELECT id, content_fingerprint, updated_at_ms, checked_at_ms, removed_at_ms IS NOT NULL AS removed
             FROM checked_chartsets WHERE id = ANY($1)",
        );
        let parse = |row: StoredChartset| Ok((parse_chartset_id(&row.id)?, row));
        self.fetch_rows("read stored chartsets", query.bind(ids), parse).await
    }
}
