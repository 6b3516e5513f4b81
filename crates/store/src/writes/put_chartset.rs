//! Stores song folders, several in one transaction.

use std::collections::{HashMap, HashSet};

use chart_index_domain::{
    ChartDraft, ChartMetadata, ChartValues, ChartsetDraft, ChartsetId, ChartsetMember, Entity, NoteHash,
    assemble_chartset,
};
use chart_index_objects::Objects;
use sqlx::{Connection, PgConnection};

use crate::connection::pooled_connection::PooledConnection;
use crate::connection::removal_lock;
use crate::schema::column_values::parse_chartset_id;
use crate::schema::derived_columns::DerivedColumns;
use crate::schema::sql_text::replace_nul;
use crate::schema::stored_times::StoredTimes;
use crate::writes::content_fingerprint::{charts_by_hash, fingerprint};
use crate::writes::incremental_ingest::{ExpectedChartset, UnchangedChartset, record_unchanged};
use crate::writes::put_chartset_sql::{self as sql, CanonicalChart, NewChartset};
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
    /// The outcomes of the chartsets that were stored; see [`Store::put_folders`] for the others.
    Stored(HashMap<ChartsetId, PutOutcome>),
    /// Nothing: these charts and chartsets were erased, and are not to be stored.
    Erased(HashSet<Entity>),
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
    /// Stores a song folder: its new charts with their ROX files, and the chartset with the metadata from
    /// this folder.
    ///
    /// The first file ingested with a note hash decides the numbers and the ROX bytes. A folder with unchanged
    /// content only updates the path and the time of the last check. Charts that the folder no longer contains
    /// leave the chartset. Removed charts and chartsets stay removed, and erased ones are not stored.
    pub async fn put_chartset(&self, draft: &ChartsetDraft, now_ms: i64) -> Result<PutOutcome, StoreError> {
        let outcomes = self.put_chartsets(&[draft], now_ms).await?;
        outcomes.get(&draft.id).copied().ok_or_else(|| StoreError::new(OPERATION, sqlx::Error::RowNotFound))
    }

    /// The same for song folders with different ids, of which those that changed are stored in one transaction.
    ///
    /// # Errors
    /// None of those that changed is stored, also if PostgreSQL rejects a single one.
    pub async fn put_chartsets(
        &self,
        drafts: &[&ChartsetDraft],
        now_ms: i64,
    ) -> Result<HashMap<ChartsetId, PutOutcome>, StoreError> {
        let mut outcomes = HashMap::new();
        for _ in 0..MAX_ATTEMPTS {
            let is_missing = |draft: &&&ChartsetDraft| !outcomes.contains_key(&draft.id);
            let missing = drafts.iter().filter(is_missing);
            let missing: Vec<_> = missing.map(|draft| (*draft, StoredTimes::now(now_ms))).collect();
            if missing.is_empty() {
                return Ok(outcomes);
            }
            outcomes.extend(self.put_folders(&missing).await?);
        }
        Err(StoreError::new(OPERATION, sqlx::Error::RowNotFound))
    }

    /// Stores song folders with different ids. The result lacks chartsets that must not be replaced: another
    /// process has stored the same content since this one checked it or, in an import, the stored one is newer.
    pub(crate) async fn put_folders(
        &self,
        drafts: &[(&ChartsetDraft, StoredTimes)],
    ) -> Result<HashMap<ChartsetId, PutOutcome>, StoreError> {
        let mut erased = HashSet::new();
        loop {
            let is_erased = |id| erased.contains(&Entity::Chartset(id));
            let (without, stored): (Vec<_>, Vec<_>) =
                drafts.iter().partition(|(draft, _)| is_erased(draft.id));
            let mut folders: Vec<_> =
                stored.iter().map(|(draft, times)| Folder::new(draft, *times, &erased)).collect();
            // As all transactions that write several chartsets.
            folders.sort_by_key(|folder| folder.draft.id);
            match self.put(&folders).await? {
                Put::Erased(more) => erased.extend(more),
                Put::Stored(mut outcomes) => {
                    let outcome = PutOutcome { effect: PutEffect::Unchanged, removed: true };
                    outcomes.extend(without.iter().map(|(draft, _)| (draft.id, outcome)));
                    return Ok(outcomes);
                }
            }
        }
    }

    async fn put(&self, folders: &[Folder<'_>]) -> Result<Put, StoreError> {
        let mut attempt = 1;
        loop {
            let put =
                self.run_once(OPERATION, |connection| Self::try_put(folders, self.objects(), connection));
            match put.await {
                Err(error) if error.is_transaction_conflict() && attempt < MAX_ATTEMPTS => attempt += 1,
                put => return put,
            }
        }
    }

    async fn try_put(
        folders: &[Folder<'_>],
        objects: Option<&Objects>,
        mut connection: PooledConnection,
    ) -> Result<Put, sqlx::Error> {
        let mut outcomes = record_if_unchanged(&mut connection, folders).await?;
        let is_changed = |folder: &&Folder<'_>| !outcomes.contains_key(&folder.draft.id);
        let folders: Vec<&Folder<'_>> = folders.iter().filter(is_changed).collect();
        let Some(StoredTimes { now_ms, .. }) = folders.first().map(|folder| folder.times) else {
            connection.release();
            return Ok(Put::Stored(outcomes));
        };
        let ids = folders.iter().map(|folder| folder.draft.id);
        let mut transaction = connection.begin_with(removal_lock::begin_ingest(ids)).await?;
        let canonical = store_charts(&mut transaction, objects, &folders, now_ms).await?;
        let missing = |chart: &&ChartDraft| !canonical.contains_key(&chart.hash);
        let charts = folders.iter().flat_map(|folder| &folder.charts).copied();
        let erased: HashSet<Entity> = charts.filter(missing).map(|chart| Entity::Chart(chart.hash)).collect();
        if !erased.is_empty() {
            return Ok(Put::Erased(erased));
        }
        let chartsets: Vec<_> = folders.iter().map(|folder| folder.derive(&canonical)).collect();
        let upserted = sql::upsert_chartsets(&mut transaction, &chartsets).await?;
        let removed = upserted.iter().filter(|row| row.removed).map(|row| parse_chartset_id(&row.id));
        let removed = removed.collect::<Result<Vec<_>, _>>()?;
        if !removed.is_empty() {
            let ids: Vec<&[u8]> = removed.iter().map(|id| &id.as_bytes()[..]).collect();
            let erased = sql::erased(&mut transaction, &ids).await?;
            if !erased.is_empty() {
                return Ok(Put::Erased(erased));
            }
        }
        transaction.commit().await?;
        connection.release();
        for row in upserted {
            let effect = if row.added { PutEffect::Added } else { PutEffect::Updated };
            outcomes.insert(parse_chartset_id(&row.id)?, PutOutcome { effect, removed: row.removed });
        }
        Ok(Put::Stored(outcomes))
    }
}

impl<'a> Folder<'a> {
    /// The folder without what was erased.
    fn new(draft: &'a ChartsetDraft, times: StoredTimes, erased: &HashSet<Entity>) -> Self {
        let mut charts = charts_by_hash(draft);
        charts.retain(|chart| !erased.contains(&Entity::Chart(chart.hash)));
        let fingerprint = fingerprint(draft, &charts);
        Self { draft, charts, fingerprint, times }
    }

    fn expected(&self) -> ExpectedChartset {
        let (id, path) = (self.draft.id, self.draft.path.clone());
        ExpectedChartset { id, fingerprint: self.fingerprint, path }
    }

    /// The rows of the chartset, whose charts are stored.
    fn derive(&self, canonical: &HashMap<NoteHash, CanonicalChart>) -> NewChartset<'_> {
        let members: Vec<ChartsetMember> =
            self.charts.iter().filter_map(|chart| Some(member(chart, canonical.get(&chart.hash)?))).collect();
        let is_visible =
            |member: &&ChartsetMember| canonical.get(&member.hash).is_some_and(|chart| !chart.removed);
        let mut visible: Vec<ChartsetMember> = members.iter().filter(is_visible).cloned().collect();
        let Self { draft, fingerprint, times, .. } = self;
        let exact_source = draft.exact_source.as_ref();
        let derived = DerivedColumns::new(assemble_chartset(draft.id, exact_source, &mut visible));
        NewChartset { draft, fingerprint, times: *times, members, derived }
    }
}

/// Records those folders of an ingest that are unchanged, and returns their outcomes. An import has compared
/// its own.
///
/// Most folders of an ingest are new or changed here, so the cheaper statement comes first.
async fn record_if_unchanged(
    connection: &mut PgConnection,
    folders: &[Folder<'_>],
) -> Result<HashMap<ChartsetId, PutOutcome>, sqlx::Error> {
    let Some(Folder { times: StoredTimes { imported: None, now_ms, .. }, .. }) = folders.first() else {
        return Ok(HashMap::new());
    };
    let expected: Vec<_> = folders.iter().map(Folder::expected).collect();
    let expected = sql::with_content(connection, expected).await?;
    if expected.is_empty() {
        return Ok(HashMap::new());
    }
    let unchanged = record_unchanged(connection, &expected, *now_ms).await?;
    let outcome = |&UnchangedChartset { id, removed, .. }: &_| {
        (id, PutOutcome { effect: PutEffect::Unchanged, removed })
    };
    let outcomes: HashMap<_, _> = unchanged.iter().map(outcome).collect();
    let mut charts = Vec::new();
    for folder in folders.iter().filter(|folder| outcomes.contains_key(&folder.draft.id)) {
        charts.extend(folder.charts.iter().map(|chart| (folder.draft.id, chart.hash, &chart.aliases)));
    }
    sql::insert_aliases(connection, charts.into_iter()).await?;
    Ok(outcomes)
}

/// Stores the new charts. Returns what is stored for every hash of the folders, except those that were erased.
async fn store_charts(
    connection: &mut PgConnection,
    objects: Option<&Objects>,
    folders: &[&Folder<'_>],
    now_ms: i64,
) -> Result<HashMap<NoteHash, CanonicalChart>, sqlx::Error> {
    let mut charts: Vec<&ChartDraft> = folders.iter().flat_map(|folder| &folder.charts).copied().collect();
    charts.sort_by_key(|chart| chart.hash);
    charts.dedup_by_key(|chart| chart.hash);
    let hashes: Vec<&[u8]> = charts.iter().map(|chart| &chart.hash.as_bytes()[..]).collect();
    let mut stored = sql::stored_charts(connection, &hashes).await?;
    charts.retain(|chart| !stored.contains_key(&chart.hash));
    if charts.iter().any(|chart| chart.rox.is_none()) {
        // They were stored when they were read or, in an import, before: only an erasure has deleted them.
        let hashes: Vec<&[u8]> = charts.iter().map(|chart| &chart.hash.as_bytes()[..]).collect();
        let erased = sql::erased(connection, &hashes).await?;
        charts.retain(|chart| !erased.contains(&Entity::Chart(chart.hash)));
    }
    if charts.is_empty() {
        return Ok(stored);
    }
    let inserted = sql::insert_charts(connection, objects, &charts, now_ms).await?;
    if inserted < charts.len() {
        // Some are removed or erased, or another transaction has stored them first, with its own numbers.
        return sql::stored_charts(connection, &hashes).await;
    }
    stored.extend(charts.iter().map(|chart| (chart.hash, canonical(chart))));
    Ok(stored)
}

fn member(draft: &ChartDraft, canonical: &CanonicalChart) -> ChartsetMember {
    ChartsetMember {
        hash: draft.hash,
        values: canonical.values,
        metadata: storable(&draft.metadata),
        declared_source: draft.declared_source.clone(),
        alpha_beatmap_id: draft.alpha_beatmap_id,
        aliases: draft.aliases.clone(),
    }
}

fn canonical(draft: &ChartDraft) -> CanonicalChart {
    let ChartDraft { numbers, variant, analysis, curve, .. } = *draft;
    let rox_bytes = draft.rox.as_ref().map_or(0, |rox| rox.len() as u64);
    CanonicalChart { values: ChartValues { numbers, variant, analysis, rox_bytes, curve }, removed: false }
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

#[cfg(test)]
mod tests {
    use chart_index_tests::TestDatabase;

    use super::*;
    use crate::StoreConfig;

    /// Otherwise PostgreSQL plans the statement in each ingest of a chartset, which takes half as long as it
    /// runs.
    #[tokio::test]
    async fn statement_for_one_chartset_is_planned_once() {
        let database = TestDatabase::migrated().await;
        let config = StoreConfig::new(database.url().parse().unwrap());
        let store = Store::new(&StoreConfig { max_connections: 1, ..config });
        for number in 1..=20_u64 {
            let id = ChartsetId::from_bytes(number.to_be_bytes());
            let draft =
                ChartsetDraft { id, path: number.to_string(), exact_source: None, charts: Vec::new() };
            store.put_chartset(&draft, 1).await.unwrap();
        }
        let plans: (i64, i64) = store
            .run_once("read plans", |mut connection| async move {
                sqlx::query_as(
                    "SELECT generic_plans, custom_plans FROM pg_prepared_statements
                     WHERE statement LIKE 'WITH written%'",
                )
                .fetch_one(&mut *connection)
                .await
            })
            .await
            .unwrap();
        assert_eq!(plans, (20, 0));
    }
}
