//! Stores a song folder in one transaction.

use std::collections::{HashMap, HashSet};

use chart_index_domain::{
    ChartDraft, ChartMetadata, ChartsetDraft, ChartsetMember, NoteHash, assemble_chartset,
};
use sqlx::{Connection, PgConnection, Postgres, Transaction};

use crate::content_fingerprint::{charts_by_hash, fingerprint};
use crate::derived_columns::DerivedColumns;
use crate::error::is_transaction_conflict;
use crate::incremental_ingest::{ExpectedChartset, UnchangedChartset, record_unchanged};
use crate::pooled_connection::PooledConnection;
use crate::put_chartset_sql::{self as sql, CanonicalChart, Upserted};
use crate::removal_lock;
use crate::sql_text::replace_nul;
use crate::stored_times::StoredTimes;
use crate::{Store, StoreError};

const OPERATION: &str = "put chartset";
/// Maximum number of attempts of a transaction that conflicts with others. In each conflict another transaction
/// succeeds.
const MAX_ATTEMPTS: u32 = 8;

/// The result of [`Store::put_chartset`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PutOutcome {
    /// What changed in the database.
    pub effect: PutEffect,
    /// Whether the chartset is removed from the index: its rows are up to date, but it is not shown.
    pub removed: bool,
}

/// What [`Store::put_chartset`] changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutEffect {
    /// The chartset is new.
    Added,
    /// The stored content was the same. Only the time of the last check and the path were updated.
    Unchanged,
    /// The stored content was different, and was replaced.
    Updated,
}

/// What an attempt did.
enum Put {
    Stored(PutOutcome),
    /// See [`Store::put_folder`].
    NotReplaced,
    /// Nothing: these charts were erased, and are not to be stored.
    Erased(HashSet<NoteHash>),
}

/// A song folder to store. Its charts are in the order of their hashes, so that concurrent transactions lock
/// the same charts in the same order and cannot deadlock.
struct Folder<'a> {
    draft: &'a ChartsetDraft,
    charts: Vec<&'a ChartDraft>,
    fingerprint: [u8; 32],
    times: StoredTimes,
}

impl Store {
    /// Stores a song folder: its new charts with their ROX files and previews, and the chartset with the
    /// metadata from this folder.
    ///
    /// The first file ingested with a note hash decides the numbers and the ROX bytes. A folder with unchanged
    /// content only updates the path and the time of the last check. Charts that the folder no longer contains
    /// leave the chartset. Removed charts and chartsets stay removed, and erased ones are not stored.
    pub async fn put_chartset(&self, draft: &ChartsetDraft, now_ms: i64) -> Result<PutOutcome, StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            if let Some(outcome) = self.put_folder(draft, StoredTimes::now(now_ms)).await? {
                return Ok(outcome);
            }
        }
        Err(put_error(sqlx::Error::RowNotFound))
    }

    /// Returns `None` if the stored chartset must not be replaced: another process has stored the same content
    /// since this one checked it or, in an import, the stored one is newer.
    pub(crate) async fn put_folder(
        &self,
        draft: &ChartsetDraft,
        times: StoredTimes,
    ) -> Result<Option<PutOutcome>, StoreError> {
        let mut put = self.put(&Folder::new(draft, times)).await?;
        if let Put::Erased(erased) = &put {
            let charts = draft.charts.iter().filter(|chart| !erased.contains(&chart.hash)).cloned();
            let others = ChartsetDraft { charts: charts.collect(), ..draft.clone() };
            put = self.put(&Folder::new(&others, times)).await?;
        }
        Ok(if let Put::Stored(outcome) = put { Some(outcome) } else { None })
    }

    async fn put(&self, folder: &Folder<'_>) -> Result<Put, StoreError> {
        let mut attempt = 1;
        loop {
            match self.try_run_once(OPERATION, |connection| Self::try_put(folder, connection)).await {
                Err(error) if is_transaction_conflict(&error) && attempt < MAX_ATTEMPTS => attempt += 1,
                put => return put.map_err(put_error),
            }
        }
    }

    async fn try_put(folder: &Folder<'_>, mut connection: PooledConnection) -> Result<Put, sqlx::Error> {
        let id = folder.draft.id;
        // Most folders are new or changed here, so the cheaper statement comes first.
        if folder.times.imported.is_none()
            && sql::has_content(&mut connection, id, &folder.fingerprint).await?
        {
            let now_ms = folder.times.now_ms;
            let checked = record_unchanged(&mut connection, &[folder.expected()], now_ms).await?;
            if let Some(UnchangedChartset { removed, .. }) = checked.first().copied() {
                return Ok(Put::Stored(PutOutcome { effect: PutEffect::Unchanged, removed }));
            }
        }
        let mut transaction = connection.begin_with(removal_lock::begin_ingest_statement(id)).await?;
        let canonical = folder.store_charts(&mut transaction).await?;
        if canonical.len() < folder.charts.len() {
            let erased = folder.charts.iter().map(|chart| chart.hash);
            return Ok(Put::Erased(erased.filter(|hash| !canonical.contains_key(hash)).collect()));
        }
        let upserted = folder.write(&mut transaction, &canonical).await?;
        let Some(Upserted { added, removed, erased }) = upserted else { return Ok(Put::NotReplaced) };
        if erased {
            return Ok(Put::Stored(PutOutcome { effect: PutEffect::Unchanged, removed }));
        }
        transaction.commit().await?;
        let effect = if added { PutEffect::Added } else { PutEffect::Updated };
        Ok(Put::Stored(PutOutcome { effect, removed }))
    }
}

fn put_error(error: sqlx::Error) -> StoreError {
    StoreError::new(OPERATION, error)
}

impl<'a> Folder<'a> {
    fn new(draft: &'a ChartsetDraft, times: StoredTimes) -> Self {
        let charts = charts_by_hash(draft);
        let fingerprint = fingerprint(draft, &charts);
        Self { draft, charts, fingerprint, times }
    }

    fn expected(&self) -> ExpectedChartset {
        let (id, path) = (self.draft.id, self.draft.path.clone());
        ExpectedChartset { id, fingerprint: self.fingerprint, path }
    }

    async fn write(
        &self,
        transaction: &mut Transaction<'_, Postgres>,
        canonical: &HashMap<NoteHash, CanonicalChart>,
    ) -> Result<Option<Upserted>, sqlx::Error> {
        let members: Vec<ChartsetMember> =
            self.charts.iter().filter_map(|chart| Some(member(chart, canonical.get(&chart.hash)?))).collect();
        let is_visible =
            |member: &&ChartsetMember| canonical.get(&member.hash).is_some_and(|chart| !chart.removed);
        let mut visible: Vec<ChartsetMember> = members.iter().filter(is_visible).cloned().collect();
        let (id, exact_source) = (self.draft.id, self.draft.exact_source.as_ref());
        let derived = DerivedColumns::new(assemble_chartset(id, exact_source, &mut visible));
        sql::upsert_chartset(transaction, self.draft, &self.fingerprint, &derived, &members, self.times).await
    }

    /// Stores the new charts. Returns what is stored for every hash of the folder, except those that were
    /// erased.
    async fn store_charts(
        &self,
        connection: &mut PgConnection,
    ) -> Result<HashMap<NoteHash, CanonicalChart>, sqlx::Error> {
        let hashes: Vec<&[u8]> = self.charts.iter().map(|chart| &chart.hash.as_bytes()[..]).collect();
        let mut stored = sql::stored_charts(connection, &hashes).await?;
        let missing: Vec<&ChartDraft> =
            self.charts.iter().copied().filter(|chart| !stored.contains_key(&chart.hash)).collect();
        if missing.is_empty() {
            return Ok(stored);
        }
        // Those of an import have no ROX file here, and an erased one is not stored before.
        if missing.iter().any(|chart| chart.rox.is_none()) {
            let hashes: Vec<&[u8]> = missing.iter().map(|chart| &chart.hash.as_bytes()[..]).collect();
            let erased = sql::erased_charts(connection, &hashes).await?;
            if !erased.is_empty() {
                return Ok(stored);
            }
        }
        let inserted = sql::insert_charts(connection, &missing, self.times.now_ms).await?;
        if inserted < missing.len() {
            // Some are removed or erased, or another transaction has stored them first, with its own numbers.
            return sql::stored_charts(connection, &hashes).await;
        }
        stored.extend(missing.iter().map(|chart| (chart.hash, canonical(chart))));
        Ok(stored)
    }
}

fn member(draft: &ChartDraft, canonical: &CanonicalChart) -> ChartsetMember {
    ChartsetMember {
        hash: draft.hash,
        numbers: canonical.numbers,
        rox_bytes: canonical.rox_bytes,
        curve: canonical.curve,
        metadata: storable(&draft.metadata),
        declared_source: draft.declared_source.clone(),
        alpha_beatmap_id: draft.alpha_beatmap_id,
    }
}

fn canonical(draft: &ChartDraft) -> CanonicalChart {
    CanonicalChart {
        numbers: draft.numbers,
        rox_bytes: draft.rox.as_ref().map_or(0, |rox| rox.len() as u64),
        curve: draft.preview.as_ref().map(|preview| preview.curve),
        removed: false,
    }
}

/// The metadata without the characters that PostgreSQL cannot store.
fn storable(metadata: &ChartMetadata) -> ChartMetadata {
    let owned = |text: &String| replace_nul(text).into_owned();
    ChartMetadata {
        title: owned(&metadata.title),
        artist: owned(&metadata.artist),
        title_romanised: metadata.title_romanised.as_ref().map(owned),
        artist_romanised: metadata.artist_romanised.as_ref().map(owned),
        creator: owned(&metadata.creator),
        difficulty: owned(&metadata.difficulty),
        tags: metadata.tags.iter().map(owned).collect(),
    }
}
