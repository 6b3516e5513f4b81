//! Hash filters: the known hashes from which `chart-indexer` builds them, and the stored filters.

use chart_index_domain::{NoteHash, ReadError};
use futures_util::TryStreamExt;
use sqlx::Connection;

use crate::connection::pooled_connection::{BEGIN_SNAPSHOT, PooledConnection};
use crate::connection::server::ReadLength;
use crate::{Store, StoreError};

/// Maximum number of charts of the feed in a page.
const PAGE: i64 = 20_000;

/// The last hash filter, and the charts that changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashFilterState {
    /// Number of hashes that it contains.
    pub hashes: u64,
    /// When it was built, in milliseconds since the Unix epoch.
    pub built_at_ms: i64,
    /// Number of charts that changed after its sequence, up to the limit of the caller.
    pub changed_charts: u64,
}

/// A hash filter to store.
#[derive(Debug, Clone)]
pub struct NewHashFilter {
    /// The sequence of the change feed at which it contains every known chart.
    pub sequence: u64,
    /// Number of hashes that it contains.
    pub hashes: u64,
    /// When it was built, in milliseconds since the Unix epoch.
    pub built_at_ms: i64,
    /// The filter as it is served (docs/api.md, "Hash filter").
    pub bytes: Vec<u8>,
}

impl Store {
    /// Passes every known hash to `take`, in no particular order, and returns the last sequence of the change
    /// feed. Both are read from one snapshot: a change has its sequence when it is visible, so every chart that
    /// is known at this sequence is among the hashes.
    pub async fn known_hashes(&self, take: impl FnMut(NoteHash) + Send) -> Result<u64, StoreError> {
        self.run_once("read known hashes", |connection| read_known_hashes(connection, take)).await
    }

    /// Returns the state of the last hash filter, if one is built. Counts changed charts up to `limit`.
    pub async fn hash_filter_state(&self, limit: u64) -> Result<Option<HashFilterState>, StoreError> {
        let query = sqlx::query_as(
            "SELECT hashes, built_at_ms, (
                 SELECT count(*) FROM (
                     SELECT 1 FROM catalogue_changes AS change
                     WHERE change.sequence > filter.sequence AND octet_length(change.entity) = 32 LIMIT $1
                 ) AS changed
             )
             FROM hash_filters AS filter ORDER BY filter.sequence DESC LIMIT 1",
        );
        let parse = |(hashes, built_at_ms, changed_charts): (i64, i64, i64)| {
            let [hashes, changed_charts] = [hashes, changed_charts].map(i64::unsigned_abs);
            Ok(HashFilterState { hashes, built_at_ms, changed_charts })
        };
        self.fetch_row("read the state of the hash filter", query.bind(limit.cast_signed()), parse).await
    }

    /// Returns the next charts of the change feed that are not removed, with their sequences: those after
    /// `after`, up to `last`. Empty after the last.
    pub async fn charts_of_feed(&self, after: u64, last: u64) -> Result<Vec<(u64, NoteHash)>, StoreError> {
        let query = sqlx::query_as(
            "SELECT sequence, entity FROM catalogue_changes
             WHERE sequence > $1 AND sequence <= $2 AND octet_length(entity) = 32 AND change <> 'removed'
             ORDER BY sequence LIMIT $3",
        );
        let query = query.bind(after.cast_signed()).bind(last.cast_signed()).bind(PAGE);
        let parse = |(sequence, hash): (i64, _)| Ok((sequence.unsigned_abs(), NoteHash::from_bytes(hash)));
        self.fetch_rows("read charts of the feed", query, parse).await
    }

    /// Stores a hash filter, unless one with its sequence is stored, and deletes all but the last two.
    pub async fn put_hash_filter(&self, filter: &NewHashFilter) -> Result<(), StoreError> {
        self.run_once("write hash filter", |mut connection| async move {
            let mut transaction = connection.begin().await?;
            sqlx::query(
                "INSERT INTO hash_filters (sequence, hashes, built_at_ms, bytes) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (sequence) DO NOTHING",
            )
            .bind(filter.sequence.cast_signed())
            .bind(filter.hashes.cast_signed())
            .bind(filter.built_at_ms)
            .bind(&filter.bytes)
            .execute(&mut *transaction)
            .await?;
            sqlx::query(
                "DELETE FROM hash_filters WHERE sequence < (
                     SELECT min(sequence) FROM (
                         SELECT sequence FROM hash_filters ORDER BY sequence DESC LIMIT 2
                     ) AS last
                 )",
            )
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await
        })
        .await
    }

    /// Returns the sequence of the last hash filter, if one is built.
    pub async fn last_hash_filter(&self) -> Result<Option<u64>, ReadError> {
        let query = || sqlx::query_as("SELECT max(sequence) FROM hash_filters");
        let parse = |(sequence,): (Option<i64>,)| Ok(sequence.map(i64::unsigned_abs));
        let last = self.read_row("read the last hash filter", ReadLength::Short, query, parse).await?;
        Ok(last.flatten())
    }

    /// Returns the bytes of the hash filter of a sequence, if it is stored.
    pub async fn hash_filter(&self, sequence: u64) -> Result<Option<Vec<u8>>, ReadError> {
        let Ok(sequence) = i64::try_from(sequence) else { return Ok(None) };
        let read = async |store: &Self| {
            let query =
                || sqlx::query_as("SELECT bytes FROM hash_filters WHERE sequence = $1").bind(sequence);
            store.read_row("read hash filter", ReadLength::Long, query, |(bytes,)| Ok(bytes)).await
        };
        match (read(self).await?, self.primary_of_standby()) {
            // Another replica may redirect to a filter that the standby of this one lacks.
            (None, Some(primary)) => read(&primary).await,
            (bytes, _) => Ok(bytes),
        }
    }
}

async fn read_known_hashes(
    mut connection: PooledConnection,
    mut take: impl FnMut(NoteHash),
) -> Result<u64, sqlx::Error> {
    let mut snapshot = connection.begin_with(BEGIN_SNAPSHOT).await?;
    let sequence: i64 =
        sqlx::query_scalar("SELECT last_sequence FROM change_feed").fetch_one(&mut *snapshot).await?;
    // One scan, whose rows are streamed: for pages by hash, the tables would be joined again for each page.
    let mut hashes = sqlx::query_scalar::<_, [u8; 32]>("SELECT hash FROM known_charts").fetch(&mut *snapshot);
    while let Some(hash) = hashes.try_next().await? {
        take(NoteHash::from_bytes(hash));
    }
    drop(hashes);
    snapshot.commit().await?;
    Ok(sequence.unsigned_abs())
}
