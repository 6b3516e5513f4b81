//! What a replica asks once a second: what has changed since it last asked.

use std::time::Duration;

use chart_index_domain::{CatalogueChange, CataloguePoll, ReadError};

use crate::Store;
use crate::change_feed::position;
use crate::column_values::parse_entity;
use crate::pooled_connection::PooledConnection;

/// Maximum number of changed entities that a poll returns. Of a program that has just started, the last ones
/// show which entries in Redis are current.
const MAX_CHANGES: usize = 10_000;

#[derive(sqlx::FromRow)]
struct PollRow {
    last_sequence: i64,
    origin: i64,
    oldest_pending_ms: Option<i64>,
    /// The columns of the changes; `None` without any.
    sequences: Option<Vec<i64>>,
    entities: Option<Vec<Vec<u8>>>,
    removals: Option<Vec<i64>>,
}

impl Store {
    /// Returns the position of the server, the age of the oldest change without a sequence, and what has
    /// changed after a sequence, up to the last 10,000 entities.
    ///
    /// The age is that of the first pending change by its transaction: one that was committed before it counts
    /// as older, so every change that was committed longer ago is numbered.
    pub async fn poll_catalogue(&self, after: u64) -> Result<CataloguePoll, ReadError> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        self.short_read("poll the catalogue", |mut connection| async move {
            Self::poll_row(&mut connection, after).await?.parse(after)
        })
        .await
    }

    async fn poll_row(connection: &mut PooledConnection, after: i64) -> Result<PollRow, sqlx::Error> {
        // Aggregates take half as long as arrays of subqueries.
        sqlx::query_as(
            "WITH server AS MATERIALIZED (
                 SELECT change_feed_origin() AS origin
             )
             SELECT feed.last_sequence, server.origin, (
                        SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint - changed_at_ms
                        FROM pending_changes
                        WHERE transaction_id
                              >= CASE WHEN feed.origin = server.origin THEN feed.pending_from ELSE '0' END
                        ORDER BY transaction_id LIMIT 1
                    ) AS oldest_pending_ms,
                    changed.*
             FROM change_feed AS feed, server, (
                 SELECT array_agg(sequence) AS sequences, array_agg(entity) AS entities,
                        array_agg(last_removal) AS removals
                 FROM (
                     SELECT sequence, entity, last_removal
                     FROM catalogue_changes WHERE sequence > $1 ORDER BY sequence DESC LIMIT $2
                 ) AS change
             ) AS changed",
        )
        .bind(after)
        .bind(i64::try_from(MAX_CHANGES).unwrap_or(i64::MAX))
        .fetch_one(&mut **connection)
        .await
    }
}

impl PollRow {
    fn parse(self, after: i64) -> Result<CataloguePoll, sqlx::Error> {
        let position = position(self.last_sequence, self.origin);
        // A clock that was set back makes a change look younger than none.
        let age = |ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        let oldest_pending = self.oldest_pending_ms.map(age);
        let sequences = self.sequences.unwrap_or_default();
        let oldest = sequences.last().filter(|_| sequences.len() == MAX_CHANGES);
        let complete_after = oldest.map_or(after, |oldest| oldest - 1).unsigned_abs();
        let (entities, removals) = (self.entities.unwrap_or_default(), self.removals.unwrap_or_default());
        let rows = sequences.iter().zip(&entities).zip(removals).rev();
        let changes = rows.map(|((sequence, entity), last_removal)| {
            Ok(CatalogueChange {
                sequence: sequence.unsigned_abs(),
                entity: parse_entity(entity)?,
                last_removal: last_removal.unsigned_abs(),
            })
        });
        let changes = changes.collect::<Result<_, sqlx::Error>>()?;
        Ok(CataloguePoll { position, oldest_pending, changes, complete_after })
    }
}
