//! The change feed: the latest change of each chart and chartset, in the order of sequences
//! (docs/formats/change-feed.md).
//!
//! Triggers on the tables of the catalogue record in `pending_changes` what may have changed, in the
//! transaction of the change. [`Store::assign_sequences`] takes the committed rows, compares the catalogue with
//! the feed, and writes the differences to `catalogue_changes` with the next sequences. Sequences are assigned
//! after the commit of a change, by one transaction at a time, so a reader that continues from a sequence never
//! misses a change that is committed late. Nothing is lost if a process ends at any point: the rows stay
//! pending.
//!
//! A failover or a restore may lose sequences that readers have seen. The feed records the origin of the last
//! one (the function `change_feed_origin`: cluster, start of the server, table). With another origin it
//! continues after a gap, at the milliseconds since 2020 times 1,024. This is above all lost sequences, since a
//! server assigns fewer than a million a second, and for 270 years below 2^53, up to which JSON numbers are
//! exact. A lost sequence is therefore in the gap, or above the last sequence. A gap of constant size would not
//! suffice: a server that is restored to a time before the gap would assign the same sequences again.

use chart_index_domain::ReadError;
use sqlx::Connection;

use crate::lookups::is_known;
use crate::pooled_connection::PooledConnection;
use crate::{Backlog, Store, StoreError};

/// Maximum number of pending rows that one transaction takes.
const BATCH_ROWS: i64 = 10_000;

/// Minimum size of a gap, for a server whose clock is behind.
const MIN_GAP: i64 = 1 << 32;

/// Waits for other processes that assign sequences. A statement after it sees theirs.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7105212083226935402)";

/// The result of a transaction of [`Store::assign_sequences`]: pending rows, and new entries of the feed.
#[derive(Debug, sqlx::FromRow)]
struct AssignedBatch {
    taken: i64,
    assigned: i64,
}

impl Store {
    /// Assigns sequences to all changes that were committed before the call. Returns the number of new entries
    /// of the feed.
    ///
    /// Several processes may call it at once. A call that fails or is cancelled has committed complete batches.
    pub async fn assign_sequences(&self) -> Result<u64, StoreError> {
        let mut assigned = 0;
        loop {
            let batch = self.run_once("assign sequences", Self::assign_batch).await?;
            assigned += batch.assigned.unsigned_abs();
            if batch.taken < BATCH_ROWS {
                return Ok(assigned);
            }
        }
    }

    async fn assign_batch(mut connection: PooledConnection) -> Result<AssignedBatch, sqlx::Error> {
        let mut transaction = connection.begin().await?;
        sqlx::query(LOCK).execute(&mut *transaction).await?;
        // One statement and therefore one snapshot: a change that it does not see stays pending.
        let batch = sqlx::query_as(concat!(
            "WITH taken AS (
                 DELETE FROM pending_changes
                 WHERE ctid = ANY (ARRAY(SELECT ctid FROM pending_changes LIMIT $1))
                 RETURNING entity, changed_at_ms
             ), changed AS (
                 SELECT entity, max(changed_at_ms) AS changed_at_ms FROM taken GROUP BY entity
             ), compared AS (
                 SELECT changed.entity, changed.changed_at_ms, previous.change AS previous,
                        CASE octet_length(changed.entity)
                            WHEN 32 THEN EXISTS (
                                SELECT FROM charts AS chart WHERE chart.hash = changed.entity AND ",
            is_known!(),
            "               )
                            ELSE EXISTS (
                                SELECT FROM chartsets WHERE id = encode(changed.entity, 'hex') AND shown
                            )
                        END AS is_known
                 FROM changed LEFT JOIN catalogue_changes AS previous ON previous.entity = changed.entity
             ), feed AS (
                 SELECT last_sequence,
                        CASE WHEN origin = change_feed_origin() THEN last_sequence
                             ELSE greatest(
                                 last_sequence + $2::bigint,
                                 ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1577836800000) * 1024
                             ) END AS base
                 FROM change_feed
             ), numbered AS (
                 SELECT feed.base + row_number() OVER (ORDER BY changed_at_ms, entity) AS sequence,
                        entity, changed_at_ms,
                        CASE WHEN NOT is_known THEN 'removed'
                             WHEN previous <> 'removed' THEN 'updated'
                             ELSE 'added' END AS change
                 FROM compared, feed
                 WHERE is_known OR previous <> 'removed'
             ), written AS (
                 INSERT INTO catalogue_changes AS entry (sequence, entity, changed_at_ms, change)
                 SELECT sequence, entity, changed_at_ms, change FROM numbered
                 ON CONFLICT (entity) DO UPDATE SET
                     sequence = excluded.sequence, changed_at_ms = excluded.changed_at_ms, change = excluded.change
             ), range AS (
                 SELECT min(sequence) AS first, max(sequence) AS last FROM numbered
             ), gap AS (
                 INSERT INTO change_feed_gaps (last_before, first_after)
                 SELECT feed.last_sequence, range.first FROM feed, range
                 WHERE range.first > feed.last_sequence + 1
             ), advanced AS (
                 UPDATE change_feed SET last_sequence = range.last, origin = change_feed_origin()
                 FROM range WHERE range.last IS NOT NULL
             )
             SELECT (SELECT count(*) FROM taken) AS taken, (SELECT count(*) FROM numbered) AS assigned"
        ))
        .bind(BATCH_ROWS)
        .bind(MIN_GAP)
        .fetch_one(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(batch)
    }

    /// Returns the sequence of the latest change; 0 before the first one.
    pub async fn last_sequence(&self) -> Result<u64, ReadError> {
        self.short_read("read the last sequence", |mut connection| async move {
            let last: i64 = sqlx::query_scalar("SELECT last_sequence FROM change_feed")
                .fetch_one(&mut *connection)
                .await?;
            Ok(last.unsigned_abs())
        })
        .await
    }

    /// Returns the backlog of changes without a sequence, for monitoring. A chart or chartset may have several.
    pub async fn pending_changes(&self) -> Result<Backlog, ReadError> {
        let (changes, oldest_ms): (i64, Option<i64>) = self
            .long_read("read pending changes", |mut connection| async move {
                sqlx::query_as(
                    "SELECT count(*), min(changed_at_ms)
                     FROM (SELECT changed_at_ms FROM pending_changes LIMIT $1) AS pending",
                )
                .bind(Backlog::MAX_CHANGES.cast_signed())
                .fetch_one(&mut *connection)
                .await
            })
            .await?;
        Ok(Backlog { changes: changes.unsigned_abs(), oldest_ms })
    }
}
