//! Reads of the [change feed](crate::feed::change_feed).

use std::collections::HashMap;

use chart_index_domain::{
    ChangeType, ChartMetadata, ChartsetId, ChartsetRecord, Entity, FileDigest, Lineage, NoteHash, ReadError,
};
use sqlx::{Connection, PgConnection};

use crate::Store;
use crate::connection::pooled_connection::{BEGIN_SNAPSHOT, PooledConnection};
use crate::error::corrupt;
use crate::feed::change_feed::lineage;
use crate::reads::chartset_records::read_records;
use crate::schema::column_values::parse_entity;

/// Size of the records of a page after which it ends, in bytes: it is exceeded by at most one chartset.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Number of chartsets whose records are read together.
const RECORDS_READ: usize = 128;
/// Size of the JSON of a chart in a record, without the values of its texts.
const CHART_BYTES: usize = 450;

/// What changed.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedEntity {
    /// A chart.
    Chart(NoteHash),
    /// A chartset, with its record unless it was removed.
    Chartset(ChartsetId, Option<ChartsetRecord>),
}

/// The latest change of a chart or chartset.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedEntry {
    /// The position in the feed, to continue from.
    pub sequence: u64,
    /// When it was made, in Unix epoch milliseconds by the clock of PostgreSQL.
    pub changed_at_ms: i64,
    /// What happened to the entity.
    pub change: ChangeType,
    /// The chart or chartset.
    pub entity: FeedEntity,
    /// The digest of the ROX file of a known chart, if it has replaced another one.
    pub replacement: Option<FileDigest>,
    /// Whether an operator has removed it, or a chart or chartset that responses about it showed.
    pub is_removal: bool,
}

/// A page of the change feed.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedPage {
    /// The database that numbered its entries.
    pub lineage: Lineage,
    /// In the order of their sequences.
    pub entries: Vec<FeedEntry>,
    /// Why it has no further entries.
    pub end: PageEnd,
}

/// Why a page has no further entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageEnd {
    /// It has as many entries as requested, or as fit. Later changes may move entries of the page to the end of
    /// the feed, but add none to it.
    Full,
    /// The feed has no further entries.
    EndOfFeed,
}

/// The feed does not continue from a sequence.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The sequence was assigned to a change that a failover or a restore has lost, or in another lineage.
    #[error("the change with this sequence was lost")]
    Lost,
    /// The feed cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// A row of `catalogue_changes`.
#[derive(Debug, sqlx::FromRow)]
struct FeedRow {
    sequence: i64,
    changed_at_ms: i64,
    change: String,
    entity: Vec<u8>,
    replacement: Option<[u8; 32]>,
    is_removal: bool,
}

impl Store {
    /// Returns up to `limit` entries after a sequence.
    ///
    /// The records of chartsets are read in the snapshot of the entries.
    ///
    /// # Errors
    /// [`FeedError::Lost`] if the change with this sequence was lost, or the lineage is another one.
    pub async fn feed_after(
        &self,
        after: u64,
        of: Option<Lineage>,
        limit: u32,
    ) -> Result<FeedPage, FeedError> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let read = async |store: &Self| {
            store.long_read("read the change feed", |connection| Self::page(connection, after, limit)).await
        };
        let page = match (read(self).await?, self.primary_of_standby()) {
            // Another replica may have read it from a server that is ahead of the standby of this one.
            (None, Some(primary)) => read(&primary).await?,
            (page, _) => page,
        };
        let is_continued = |page: &FeedPage| of.is_none_or(|lineage| lineage == page.lineage);
        page.filter(is_continued).ok_or(FeedError::Lost)
    }

    async fn page(
        mut connection: PooledConnection,
        after: i64,
        limit: u32,
    ) -> Result<Option<FeedPage>, sqlx::Error> {
        let mut snapshot = connection.begin_with(BEGIN_SNAPSHOT).await?;
        let page = read_page(&mut snapshot, after, limit).await?;
        snapshot.commit().await?;
        connection.release();
        Ok(page)
    }
}

/// Reads a page in the snapshot of a transaction; `None` if the change with the sequence `after` was lost.
async fn read_page(
    connection: &mut PgConnection,
    after: i64,
    limit: u32,
) -> Result<Option<FeedPage>, sqlx::Error> {
    let feed = sqlx::query_as("SELECT lineage, is_lost_sequence($1) FROM server_state").bind(after);
    let (lineage_of_feed, is_lost): (i64, bool) = feed.fetch_one(&mut *connection).await?;
    if is_lost {
        return Ok(None);
    }
    let rows: Vec<FeedRow> = sqlx::query_as(
            "SELECT sequence, changed_at_ms, change, entity,
                    change = 'removed' AND last_removal > 0 AS is_removal,
                    (SELECT replacement_digest FROM rox_files
                     WHERE hash = entity AND replacement_digest IS NOT NULL AND change <> 'removed') AS replacement
             FROM catalogue_changes WHERE sequence > $1 ORDER BY sequence LIMIT $2",
        )
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(&mut *connection)
        .await?;
    let end = if rows.len() >= limit as usize { PageEnd::Full } else { PageEnd::EndOfFeed };
    let (entries, is_cut) = entries(connection, rows).await?;
    let end = if is_cut { PageEnd::Full } else { end };
    Ok(Some(FeedPage { lineage: lineage(lineage_of_feed), entries, end }))
}

/// Converts rows to entries, up to the maximum size of a page. Returns whether rows were left out.
async fn entries(
    connection: &mut PgConnection,
    rows: Vec<FeedRow>,
) -> Result<(Vec<FeedEntry>, bool), sqlx::Error> {
    let shown = rows.iter().filter(|row| row.change != "removed");
    let ids: Vec<ChartsetId> = shown.filter_map(FeedRow::chartset_id).collect();
    let mut unread = ids.chunks(RECORDS_READ);
    let (mut records, mut bytes) = (HashMap::new(), 0);
    let mut entries = Vec::with_capacity(rows.len());
    for row in rows {
        if bytes >= PAGE_BYTES {
            return Ok((entries, true));
        }
        let id = row.chartset_id();
        if let Some(id) = id
            && row.change != "removed"
            && !records.contains_key(&id)
            && let Some(chunk) = unread.next()
        {
            records.extend(chunk.iter().map(|&id| (id, None)));
            let read = read_records(connection, chunk).await?;
            records.extend(read.into_iter().map(|checked| (checked.record.id, Some(checked.record))));
        }
        let record = id.and_then(|id| records.remove(&id).flatten());
        bytes += record.as_ref().map_or(0, json_bytes);
        entries.push(row.into_entry(record)?);
    }
    Ok((entries, false))
}

/// The approximate size of the JSON of a record.
fn json_bytes(record: &ChartsetRecord) -> usize {
    record.charts.iter().map(|chart| CHART_BYTES + text_bytes(&chart.metadata)).sum()
}

fn text_bytes(metadata: &ChartMetadata) -> usize {
    let ChartMetadata { title, artist, title_romanised, artist_romanised, creator, difficulty, tags } =
        metadata;
    let names =
        [title, artist, creator, difficulty].into_iter().chain(title_romanised).chain(artist_romanised);
    names.chain(tags).map(|text| text.len() + 3).sum()
}

impl FeedRow {
    /// The id of the chartset; `None` for a chart.
    fn chartset_id(&self) -> Option<ChartsetId> {
        self.entity.as_slice().try_into().ok().map(ChartsetId::from_bytes)
    }

    fn into_entry(self, record: Option<ChartsetRecord>) -> Result<FeedEntry, sqlx::Error> {
        let entity = match parse_entity(&self.entity)? {
            Entity::Chart(hash) => FeedEntity::Chart(hash),
            Entity::Chartset(id) => FeedEntity::Chartset(id, record),
        };
        let change = match &*self.change {
            "removed" => ChangeType::Removed,
            _ if matches!(entity, FeedEntity::Chartset(_, None)) => {
                return Err(corrupt("an entry of a chartset without a record"));
            }
            "added" => ChangeType::Added,
            "updated" => ChangeType::Updated,
            other => return Err(corrupt(format!("unknown change {other:?}"))),
        };
        Ok(FeedEntry {
            sequence: self.sequence.unsigned_abs(),
            changed_at_ms: self.changed_at_ms,
            change,
            entity,
            replacement: self.replacement.map(FileDigest::from_bytes),
            is_removal: self.is_removal,
        })
    }
}
