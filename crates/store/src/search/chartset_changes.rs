//! Changes of chartsets after a position, for search indexes outside of PostgreSQL.
//!
//! An index records the position up to which it has applied the [change feed](crate::feed::change_feed). It
//! needs a rebuild if the feed does not continue from there: the position is in a gap or above the last
//! sequence, or another origin assigned it.
//!
//! Entries are read with the current state of their chartsets, in one snapshot.

use async_trait::async_trait;
use chart_index_domain::search::{CatalogueChanges, IndexedChartset, UnappliedChanges};
use chart_index_domain::{ChartsetId, Position, ReadError};
use sqlx::{Connection, PgConnection};

use crate::Store;
use crate::connection::pooled_connection::{BEGIN_SNAPSHOT, PooledConnection};
use crate::feed::change_feed::position;
use crate::schema::column_values::parse_chartset_id;
use crate::search::indexed_chartsets::read_indexed;

/// The changes of chartsets that follow a position.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartsetChanges {
    /// The changed chartsets, each once.
    pub changed: Vec<ChartsetId>,
    /// Those of them that are shown, in the state of the feed.
    pub shown: Vec<IndexedChartset>,
    /// The position after these changes.
    pub next: Position,
    /// Whether there are no further changes.
    pub is_last: bool,
}

/// The changes after a position cannot be returned.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// The feed does not continue from this position.
    #[error(
        "position {0} is not in the change feed: it belongs to another database or to a time before a restore or a \
         failover"
    )]
    RebuildNeeded(Position),
    /// The feed cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

#[derive(sqlx::FromRow)]
struct ChangeRow {
    sequence: i64,
    origin: i64,
    id: String,
    is_removed: bool,
}

#[derive(sqlx::FromRow)]
struct UnappliedRow {
    is_lost: bool,
    origin: i64,
    oldest_ms: Option<i64>,
    asked_ms: i64,
    count: i64,
}

impl Store {
    /// Returns up to `limit` changes of chartsets after a position.
    ///
    /// # Errors
    /// [`ChangesError::RebuildNeeded`] if the feed does not continue from this position.
    pub async fn chartset_changes(
        &self,
        from: Position,
        limit: u32,
    ) -> Result<ChartsetChanges, ChangesError> {
        let changes = self.long_read("read changes of chartsets", |connection| {
            Self::changes_after(connection, from, limit)
        });
        changes.await?.ok_or(ChangesError::RebuildNeeded(from))
    }

    async fn changes_after(
        mut connection: PooledConnection,
        from: Position,
        limit: u32,
    ) -> Result<Option<ChartsetChanges>, sqlx::Error> {
        let mut snapshot = connection.begin_with(BEGIN_SNAPSHOT).await?;
        let Some(end) = end_of_feed(&mut snapshot, from).await? else { return Ok(None) };
        let rows: Vec<ChangeRow> = sqlx::query_as(
            "SELECT sequence, change_feed_origin_of(sequence) AS origin, encode(entity, 'hex') AS id,
                    change = 'removed' AS is_removed
             FROM catalogue_changes WHERE sequence > $1 AND octet_length(entity) = 8
             ORDER BY sequence LIMIT $2",
        )
        .bind(from.sequence.cast_signed())
        .bind(i64::from(limit))
        .fetch_all(&mut *snapshot)
        .await?;
        let is_last = rows.len() < limit as usize;
        let next = match rows.last() {
            Some(last) if !is_last => position(last.sequence, last.origin),
            _ => end,
        };
        let ids = |removed: bool| {
            let ids = rows.iter().filter(move |row| removed || !row.is_removed);
            ids.map(|row| parse_chartset_id(&row.id)).collect::<Result<Vec<_>, _>>()
        };
        let shown = read_indexed(&mut snapshot, &ids(false)?).await?;
        snapshot.commit().await?;
        connection.release();
        Ok(Some(ChartsetChanges { changed: ids(true)?, shown, next, is_last }))
    }

    async fn unapplied_row(
        mut connection: PooledConnection,
        position: Position,
    ) -> Result<UnappliedRow, sqlx::Error> {
        let row = sqlx::query_as(
            "WITH unapplied AS (
                 SELECT changed_at_ms FROM catalogue_changes
                 WHERE sequence > $1 AND octet_length(entity) = 8 ORDER BY sequence LIMIT $3
             )
             SELECT is_lost_sequence($1) OR change_feed_origin_of($1) <> $2 AS is_lost,
                    (SELECT origin FROM server_state) AS origin,
                    (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS asked_ms,
                    min(changed_at_ms) AS oldest_ms, count(*) AS count
             FROM unapplied",
        )
        .bind(position.sequence.cast_signed())
        .bind(position.origin.0.cast_signed())
        .bind(UnappliedChanges::MAX_COUNT.cast_signed())
        .fetch_one(&mut *connection)
        .await?;
        connection.release();
        Ok(row)
    }
}

/// The last position of the feed; `None` if the feed does not continue from this one.
async fn end_of_feed(connection: &mut PgConnection, from: Position) -> Result<Option<Position>, sqlx::Error> {
    let (is_lost, last, origin): (bool, i64, i64) = sqlx::query_as(
        "SELECT is_lost_sequence($1) OR change_feed_origin_of($1) <> $2, last_sequence, origin FROM change_feed",
    )
    .bind(from.sequence.cast_signed())
    .bind(from.origin.0.cast_signed())
    .fetch_one(connection)
    .await?;
    Ok((!is_lost).then(|| position(last, origin)))
}

#[async_trait]
impl CatalogueChanges for Store {
    async fn unapplied(&self, position: Position) -> Result<UnappliedChanges, ReadError> {
        let row =
            self.long_read("read unapplied changes", |connection| Self::unapplied_row(connection, position));
        let row = row.await?;
        Ok(UnappliedChanges {
            origin: crate::feed::change_feed::position(0, row.origin).origin,
            oldest_ms: if row.is_lost { Some(0) } else { row.oldest_ms },
            asked_ms: row.asked_ms,
            count: row.count.unsigned_abs().min(UnappliedChanges::MAX_COUNT),
        })
    }
}
