//! The change feed: the latest change of each chart and chartset, in the order of sequences
//! (docs/formats/change-feed.md, decision 0021).
//!
//! Triggers on the tables of the catalogue record in `pending_changes` what may have changed, in the
//! transaction of the change. [`Store::assign_sequences`] takes the committed rows and moves the entries of
//! these charts and chartsets in `catalogue_changes` to the next sequences. What is not known and was never
//! in the feed gets a tombstone: it may have been read between two changes that have no sequence. Sequences
//! are assigned after the commit of a change, by one transaction at a time, so a reader that continues from a
//! sequence never misses a change that is committed late. Nothing is lost if a process ends at any point: the
//! rows stay pending.
//!
//! Deleted rows stay in table and index until a vacuum. No one reads them: an assignment records in
//! `change_feed.pending_from` a transaction id below which no pending row can appear any more, and reads begin
//! there, in the same cluster (the function `pending_changes_from`). It is the oldest transaction that was
//! running, or that of the last row that was taken.
//!
//! A failover or a restore may lose sequences that readers have seen. The feed records the origin of the last
//! one ([`Origin`]; the function `change_feed_origin`: cluster, start of the server, table). With another
//! origin it continues after a gap, at the milliseconds since 2020 times 1,024. This is above all lost
//! sequences, since a server assigns fewer than a million a second, and for 270 years below 2^53, up to which
//! JSON numbers are exact. A lost sequence is therefore in the gap, or above the last sequence. A gap of
//! constant size would not suffice: a server that is restored to a time before the gap would assign the same
//! sequences again.
//!
//! A new database, and one to which a dump is restored, has another [`Lineage`] (the function
//! `change_feed_lineage`): by its numbers alone it might seem to continue the feed of the earlier one.

use std::time::Duration;

use chart_index_domain::{Lineage, Origin, Position, ReadError};
use sqlx::Connection;

use crate::connection::pooled_connection::PooledConnection;
use crate::reads::lookups::is_known;
use crate::{Store, StoreError};

/// Maximum number of pending rows that one transaction takes.
const BATCH_ROWS: i64 = 10_000;

/// Minimum size of a gap, for a server whose clock is behind.
const MIN_GAP: i64 = 1 << 32;

/// Begins a transaction that waits for other processes that assign sequences. A statement after it sees theirs.
///
/// A process that stops, or that PostgreSQL cannot reach, must not keep the others from it.
const BEGIN: &str = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '1s';
                     SELECT pg_advisory_xact_lock(7105212083226935402)";

/// The changes that have no sequence yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Their number, up to [`Backlog::MAX_CHANGES`].
    pub changes: u64,
    /// The age of the first of them, by the clock of PostgreSQL; `None` without changes.
    pub oldest_age: Option<Duration>,
}

impl Backlog {
    /// The number up to which changes are counted, which bounds the time of the query.
    pub const MAX_CHANGES: u64 = 1_000_000;
}

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
        let (mut assigned, mut is_first) = (0, true);
        loop {
            let batch =
                self.run_once("assign sequences", |connection| Self::assign_batch(connection, is_first));
            let batch = batch.await?;
            is_first = false;
            assigned += batch.assigned.unsigned_abs();
            if batch.taken < BATCH_ROWS {
                return Ok(assigned);
            }
        }
    }

    /// The first of several batches writes nothing if there is nothing to take.
    async fn assign_batch(
        mut connection: PooledConnection,
        is_first: bool,
    ) -> Result<AssignedBatch, sqlx::Error> {
        let mut transaction = connection.begin_with(BEGIN).await?;
        // One statement and therefore one snapshot: a change that it does not see stays pending.
        let batch = sqlx::query_as(concat!(
            "WITH taken AS (
                 DELETE FROM pending_changes
                 WHERE ctid = ANY (ARRAY(
                     SELECT ctid FROM pending_changes WHERE transaction_id >= pending_changes_from()
                     ORDER BY transaction_id LIMIT $1
                 ))
                 RETURNING entity, changed_at_ms, transaction_id, is_removal
             ), changed AS (
                 SELECT entity, max(changed_at_ms) AS changed_at_ms, bool_or(is_removal) AS is_removal
                 FROM taken GROUP BY entity
             ), compared AS (
                 SELECT changed.*, previous.change AS previous,
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
                 SELECT last_sequence, origin,
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
                             ELSE 'added' END AS change,
                        is_removal
                 FROM compared, feed
             ), written AS (
                 INSERT INTO catalogue_changes AS entry (sequence, entity, changed_at_ms, change, last_removal)
                 SELECT sequence, entity, changed_at_ms, change, CASE WHEN is_removal THEN sequence ELSE 0 END
                 FROM numbered
                 ON CONFLICT (entity) DO UPDATE SET
                     sequence = excluded.sequence, changed_at_ms = excluded.changed_at_ms,
                     change = excluded.change,
                     last_removal = greatest(excluded.last_removal, entry.last_removal)
             ), range AS (
                 SELECT min(sequence) AS first, max(sequence) AS last,
                        max(sequence) FILTER (WHERE is_removal) AS last_removal
                 FROM numbered
             ), gap AS (
                 INSERT INTO change_feed_gaps (last_before, first_after, origin)
                 SELECT feed.last_sequence, range.first, feed.origin FROM feed, range
                 WHERE range.first > feed.last_sequence + 1
             ), below AS (
                 SELECT count(*) AS taken, CASE
                            WHEN count(*) < $1 THEN pg_snapshot_xmin(pg_current_snapshot())
                            ELSE least(pg_snapshot_xmin(pg_current_snapshot()), max(transaction_id))
                        END AS pending_from
                 FROM taken
             ), advanced AS (
                 UPDATE change_feed SET
                     last_sequence = coalesce(range.last, change_feed.last_sequence),
                     origin = CASE WHEN range.last IS NULL THEN change_feed.origin ELSE change_feed_origin() END,
                     pending_from = below.pending_from,
                     system_identifier = (SELECT system_identifier FROM pg_control_system()),
                     last_removal = greatest(change_feed.last_removal, range.last_removal)
                 FROM range, below WHERE below.taken > 0 OR NOT $3
             )
             SELECT below.taken, (SELECT count(*) FROM numbered) AS assigned FROM below"
        ))
        .bind(BATCH_ROWS)
        .bind(MIN_GAP)
        .bind(is_first)
        .fetch_one(&mut *transaction)
        .await?;
        transaction.commit().await?;
        connection.release();
        Ok(batch)
    }

    /// Returns the position of the server: the last sequence, and the origin of those that it assigns.
    pub async fn position(&self) -> Result<Position, ReadError> {
        self.read_position("SELECT last_sequence, change_feed_origin() FROM change_feed").await
    }

    /// Returns the position of the feed: the last sequence, and the origin that assigned it. What is read
    /// afterwards contains every change up to it.
    pub async fn feed_position(&self) -> Result<Position, ReadError> {
        self.read_position("SELECT last_sequence, origin FROM change_feed").await
    }

    async fn read_position(&self, statement: &'static str) -> Result<Position, ReadError> {
        let row: (i64, i64) = self
            .short_read("read the position of the feed", |mut connection| async move {
                let row = sqlx::query_as(statement).fetch_one(&mut *connection).await?;
                connection.release();
                Ok(row)
            })
            .await?;
        Ok(position(row.0, row.1))
    }

    /// Returns the changes without a sequence, for monitoring. A chart or chartset may have several.
    pub async fn pending_changes(&self) -> Result<Backlog, ReadError> {
        let (changes, age_ms): (i64, Option<i64>) = self
            .long_read("read pending changes", |mut connection| async move {
                let row = sqlx::query_as(
                    "SELECT count(*), (extract(epoch FROM clock_timestamp()) * 1000)::bigint - min(changed_at_ms) FROM (
                         SELECT changed_at_ms FROM pending_changes WHERE transaction_id >= pending_changes_from()
                         LIMIT $1
                     ) AS pending",
                )
                .bind(Backlog::MAX_CHANGES.cast_signed())
                .fetch_one(&mut *connection)
                .await?;
                connection.release();
                Ok(row)
            })
            .await?;
        let age = |ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        Ok(Backlog { changes: changes.unsigned_abs(), oldest_age: age_ms.map(age) })
    }
}

/// A lineage from the function of PostgreSQL, which has signed numbers only.
pub(crate) const fn lineage(lineage: i64) -> Lineage {
    Lineage::from_bytes(lineage.to_be_bytes())
}

/// A position from the columns of PostgreSQL, which has signed numbers only.
pub(crate) const fn position(sequence: i64, origin: i64) -> Position {
    Position { origin: Origin(origin.cast_unsigned()), sequence: sequence.unsigned_abs() }
}
