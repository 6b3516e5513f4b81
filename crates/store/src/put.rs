//! Ingest: one folder, one transaction.

use std::collections::HashMap;

use chart_index_domain::{
    ChartDraft, ChartMetadata, ChartNumbers, ChartsetDraft, ChartsetMember, NoteHash, assemble_chartset,
};
use sqlx::{Connection, PgConnection, Postgres, Transaction};

use crate::columns::DerivedColumns;
use crate::error::is_lost_race;
use crate::fingerprint::fingerprint;
use crate::lease::Lease;
use crate::put_sql::{self, Upserted};
use crate::reingest::{CheckedChartset, ExpectedChartset, check_each};
use crate::removal_lock;
use crate::text_columns::storable;
use crate::{Store, StoreError};

/// How often a transaction that lost a race is run again. Each time, somebody else got ahead.
const MAX_ATTEMPTS: u32 = 8;

/// What an ingest did to a chartset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutOutcome {
    /// What changed.
    pub effect: PutEffect,
    /// Whether the set is removed from the index: it was kept up to date, and stays hidden.
    pub removed: bool,
    /// The charts that left it.
    pub dropped_charts: Vec<NoteHash>,
}

/// What changed in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutEffect {
    /// The chartset is new.
    Added,
    /// It was there with the same content: only the time of its last check moved.
    Unchanged,
    /// It was there and its content changed.
    Updated,
}

/// What is stored with a note hash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CanonicalChart {
    pub(crate) numbers: ChartNumbers,
    pub(crate) rox_bytes: u64,
    pub(crate) removed: bool,
}

/// A folder ready to be stored: its charts by hash, so that transactions that run at the same time touch the
/// same charts in the same order and never wait for each other in a circle.
struct Folder<'a> {
    draft: &'a ChartsetDraft,
    charts: Vec<&'a ChartDraft>,
    fingerprint: [u8; 32],
    now_ms: i64,
}

impl Store {
    /// Stores a folder: its charts that are new to the index with their ROX files, and the chartset with what
    /// this folder says of its charts.
    ///
    /// The first file of a note hash decides numbers and ROX bytes. A folder that says nothing new only moves
    /// the time of its last check. Charts that left the folder leave the set. What was removed stays removed.
    /// Every change is in the outbox `search_changes`, in the same transaction.
    pub async fn put_chartset(&self, draft: &ChartsetDraft, now_ms: i64) -> Result<PutOutcome, StoreError> {
        let folder = Folder::new(draft, now_ms);
        let mut attempt = 1;
        loop {
            match self.try_run_once(|lease| Self::try_put(&folder, lease)).await {
                Ok(Some(outcome)) => return Ok(outcome),
                Ok(None) if attempt < MAX_ATTEMPTS => (),
                Err(error) if is_lost_race(&error) && attempt < MAX_ATTEMPTS => (),
                Ok(None) => return Err(put_error(sqlx::Error::RowNotFound)),
                Err(error) => return Err(put_error(error)),
            }
            attempt += 1;
        }
    }

    /// `None` when another process stored the very same content meanwhile.
    async fn try_put(folder: &Folder<'_>, mut lease: Lease) -> Result<Option<PutOutcome>, sqlx::Error> {
        let connection = lease.connection();
        let id = folder.draft.id;
        // Most folders that are put are new or changed, and the check is the larger statement.
        if put_sql::has_content(connection, id, &folder.fingerprint).await? {
            let checked = check_each(connection, &[folder.expected()], folder.now_ms).await?;
            if let Some(CheckedChartset { removed, .. }) = checked.first().copied() {
                return Ok(Some(PutOutcome {
                    effect: PutEffect::Unchanged,
                    removed,
                    dropped_charts: Vec::new(),
                }));
            }
        }
        let mut transaction = connection.begin_with(removal_lock::begin_ingest(id)).await?;
        let Some(upserted) = folder.write(&mut transaction).await? else { return Ok(None) };
        transaction.commit().await?;
        let effect = if upserted.added { PutEffect::Added } else { PutEffect::Updated };
        let dropped_charts = upserted.dropped_charts()?;
        Ok(Some(PutOutcome { effect, removed: upserted.removed, dropped_charts }))
    }
}

/// A digest of all that a folder decides about its chartset: [`Store::put_chartset`] leaves a chartset that has it as
/// it is.
#[must_use]
pub fn content_fingerprint(draft: &ChartsetDraft) -> [u8; 32] {
    fingerprint(draft, &charts_by_hash(draft))
}

fn charts_by_hash(draft: &ChartsetDraft) -> Vec<&ChartDraft> {
    let mut charts: Vec<&ChartDraft> = draft.charts.iter().collect();
    charts.sort_by_key(|chart| chart.hash);
    charts.dedup_by_key(|chart| chart.hash);
    charts
}

fn put_error(error: sqlx::Error) -> StoreError {
    StoreError::new("put chartset", error)
}

impl<'a> Folder<'a> {
    fn new(draft: &'a ChartsetDraft, now_ms: i64) -> Self {
        let charts = charts_by_hash(draft);
        let fingerprint = fingerprint(draft, &charts);
        Self { draft, charts, fingerprint, now_ms }
    }

    /// The chartset, if it has this very content already.
    fn expected(&self) -> ExpectedChartset {
        let (id, path) = (self.draft.id, self.draft.path.clone());
        ExpectedChartset { id, fingerprint: self.fingerprint, path }
    }

    async fn write(
        &self,
        transaction: &mut Transaction<'_, Postgres>,
    ) -> Result<Option<Upserted>, sqlx::Error> {
        let canonical = self.store_charts(transaction).await?;
        let members: Vec<(ChartsetMember, bool)> =
            self.charts.iter().filter_map(|chart| Some(member(chart, canonical.get(&chart.hash)?))).collect();
        self.upsert(transaction, &members).await
    }

    /// Stores the charts that are new and gives what is stored with every hash of the folder.
    async fn store_charts(
        &self,
        connection: &mut PgConnection,
    ) -> Result<HashMap<NoteHash, CanonicalChart>, sqlx::Error> {
        let hashes: Vec<&[u8]> = self.charts.iter().map(|chart| &chart.hash.as_bytes()[..]).collect();
        let mut stored = put_sql::stored_charts(connection, &hashes).await?;
        let missing: Vec<&ChartDraft> =
            self.charts.iter().copied().filter(|chart| !stored.contains_key(&chart.hash)).collect();
        if missing.is_empty() {
            return Ok(stored);
        }
        let inserted = put_sql::insert_charts(connection, &missing, self.now_ms).await?;
        if inserted < missing.len() {
            // Another transaction was first with some of them: its numbers count.
            return put_sql::stored_charts(connection, &hashes).await;
        }
        stored.extend(missing.iter().map(|chart| (chart.hash, canonical(chart))));
        Ok(stored)
    }

    async fn upsert(
        &self,
        connection: &mut PgConnection,
        members: &[(ChartsetMember, bool)],
    ) -> Result<Option<Upserted>, sqlx::Error> {
        let mut visible: Vec<ChartsetMember> =
            members.iter().filter(|(_, removed)| !removed).map(|(charted, _)| charted.clone()).collect();
        let columns = DerivedColumns::new(assemble_chartset(
            self.draft.id,
            self.draft.exact_source.as_ref(),
            &mut visible,
        ));
        let fingerprint = &self.fingerprint;
        put_sql::upsert_chartset(connection, self.draft, fingerprint, &columns, members, self.now_ms).await
    }
}

/// The chart as it stands in the folder, and whether it is removed.
fn member(draft: &ChartDraft, canonical: &CanonicalChart) -> (ChartsetMember, bool) {
    let charted = ChartsetMember {
        hash: draft.hash,
        numbers: canonical.numbers,
        rox_bytes: canonical.rox_bytes,
        metadata: storable_text(&draft.metadata),
        declared_source: draft.declared_source.clone(),
        alpha_beatmap_id: draft.alpha_beatmap_id,
    };
    (charted, canonical.removed)
}

fn canonical(draft: &ChartDraft) -> CanonicalChart {
    CanonicalChart {
        numbers: draft.numbers,
        rox_bytes: draft.rox.as_ref().map_or(0, |rox| rox.len() as u64),
        removed: false,
    }
}

fn storable_text(text: &ChartMetadata) -> ChartMetadata {
    let owned = |text: &String| storable(text).into_owned();
    ChartMetadata {
        title: owned(&text.title),
        artist: owned(&text.artist),
        title_romanised: text.title_romanised.as_ref().map(owned),
        artist_romanised: text.artist_romanised.as_ref().map(owned),
        creator: owned(&text.creator),
        difficulty: owned(&text.difficulty),
        tags: text.tags.iter().map(owned).collect(),
    }
}
