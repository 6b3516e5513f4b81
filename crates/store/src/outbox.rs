//! The outbox `search_changes`: which chartsets changed, for search indexes outside of PostgreSQL.
//!
//! Every writer inserts a row in the transaction of its change. `chart-indexer sync` reads the rows that follow
//! the checkpoint of an index ([`Store::changes`]), updates the documents of those chartsets, and records the
//! next checkpoint in the index.
//!
//! # Glossary
//!
//! | Term | Meaning | Where |
//! |---|---|---|
//! | sequence | Number of a row, assigned when it is inserted. Rows become visible in the order of the commits, which may differ, so readers do not use it. | `search_changes.sequence` |
//! | transaction id | The transaction that inserted a row. Readers take whole transactions. | `search_changes.transaction_id` |
//! | watermark | The oldest transaction that is still running. No row can appear below it any more, so readers stop there. | `pg_snapshot_xmin` |
//! | checkpoint | Position of an index: it contains every change of a transaction below this id. | [`Checkpoint`] |
//! | pruned below | Rows of transactions below this id are deleted. An index with a lower checkpoint needs a rebuild. | `search_outbox.pruned_below` |
//! | epoch | Transaction ids belong to one PostgreSQL cluster. After a restore into another cluster the outbox starts the next epoch. It is the upper part of a checkpoint, so that a checkpoint of an earlier epoch is never valid. | `search_outbox.epoch` |
//! | token, history | Random value of a row; XOR of the tokens of the last 64 rows below a checkpoint. It identifies the changes that an index contains. | `search_changes.token`, [`HistoryDigest`] |
//!
//! # Timeline
//!
//! An index at checkpoint 705 takes rows 12 and 15. Row 16 is committed, but has to wait for transaction 712,
//! whose row 14 has a lower sequence and is not visible yet. The next checkpoint is 710: the last transaction
//! taken, plus one.
//!
//! ```text
//!             pruned below    checkpoint        next checkpoint   watermark
//!                  700            705                710             712
//!                   │              │                  │               │
//! transaction ──────┼──701───704───┼───706──────709───┼───────────────┼─712──────715───▶
//! sequence          │   11    13   │    12       15   │               │  14       16
//! row               │   applied    │   committed      │               │ running  committed
//!                   │              │                  │               │
//!        deleted ◀──┘              └── this pass ─────┘               └── a later pass
//! ```
//!
//! # Why a checkpoint is the last transaction plus one, and not the watermark
//!
//! Between the two there are no changes, so they are equivalent. But the id of a committed transaction is on
//! the disk of PostgreSQL. Ids that were only assigned may be assigned again after a crash, and a checkpoint
//! above them would skip the changes of the second transaction.
//!
//! # Why a checkpoint records its history
//!
//! A database that is rolled back (restored from a backup, or replaced by a standby that lacked the last
//! transactions) assigns the ids of the lost transactions again, and the sequence of their rows as well. Tokens
//! differ. One row would not be enough: of two transactions that overlap, the one with the higher id may commit
//! first, and only the other one be lost.

use async_trait::async_trait;
use chart_index_domain::search::{CatalogueChanges, Checkpoint, RecordedCheckpoint, UnappliedChanges};
use chart_index_domain::{ChartsetId, ReadError};

use crate::Store;
use crate::error::{corrupt, read_error};
use crate::outbox_state::{OutboxState, Position, RebuildReason, from_digest, history, with_outbox};
use crate::pooled_connection::PooledConnection;

/// The changes that follow a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// The changed chartsets, each once.
    pub chartsets: Vec<ChartsetId>,
    /// The checkpoint after these changes. Without changes, the previous one with its history.
    pub next: RecordedCheckpoint,
    /// Whether no more changes can be taken at the moment.
    pub is_last: bool,
    /// The checkpoint after every committed change, including those above the watermark, which cannot be taken
    /// yet.
    pub committed: Checkpoint,
    /// Whether transactions are running: more changes may follow soon without a notification.
    pub has_running_transactions: bool,
}

/// The changes after a checkpoint cannot be returned.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// The outbox does not continue from this checkpoint.
    #[error("checkpoint {checkpoint} is not valid ({reason}): the search index needs a rebuild")]
    RebuildNeeded {
        /// The checkpoint of the caller.
        checkpoint: Checkpoint,
        /// Why it is not valid.
        reason: RebuildReason,
    },
    /// The outbox cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

#[derive(sqlx::FromRow)]
struct ChangesRow {
    #[sqlx(flatten)]
    outbox: OutboxState,
    chartsets: Vec<String>,
    last_taken: Option<i64>,
    next_history: Option<i64>,
    last_committed: Option<i64>,
    row_count: i64,
    has_running_transactions: bool,
}

#[derive(sqlx::FromRow)]
struct UnappliedRow {
    #[sqlx(flatten)]
    outbox: OutboxState,
    oldest_ms: Option<i64>,
    count: i64,
}

#[derive(sqlx::FromRow)]
struct CurrentRow {
    epoch: i32,
    transaction_id: i64,
    history: Option<i64>,
    is_other_cluster: bool,
}

impl Store {
    /// Returns the changes that follow a checkpoint: whole transactions, with about `limit` rows in total.
    ///
    /// # Errors
    /// [`ChangesError::RebuildNeeded`] if the outbox does not continue from this checkpoint.
    pub async fn changes(&self, from: RecordedCheckpoint, limit: u32) -> Result<Changes, ChangesError> {
        let operation = "read changes";
        let RecordedCheckpoint { checkpoint, history } = from;
        let position = Position::from(checkpoint);
        let row =
            self.long_read(operation, |connection| Self::changes_row(connection, position, limit)).await?;
        let decode_error = |error| read_error(operation, error);
        if let Some(reason) = row.outbox.rebuild_reason(position, history).map_err(decode_error)? {
            return Err(ChangesError::RebuildNeeded { checkpoint, reason });
        }
        let next = RecordedCheckpoint {
            checkpoint: position.after(row.last_taken).into(),
            history: row.next_history.or(row.outbox.history).map(from_digest),
        };
        let chartsets = row.chartsets.iter().map(|id| id.parse().map_err(corrupt));
        Ok(Changes {
            chartsets: chartsets.collect::<Result<_, _>>().map_err(decode_error)?,
            next,
            is_last: row.row_count < i64::from(limit),
            committed: position.after(row.last_committed).into(),
            has_running_transactions: row.has_running_transactions,
        })
    }

    async fn changes_row(
        mut connection: PooledConnection,
        position: Position,
        limit: u32,
    ) -> Result<ChangesRow, sqlx::Error> {
        sqlx::query_as(concat!(
            with_outbox!(),
            ", taken AS (
                 SELECT transaction_id, chartset_id FROM search_changes
                 WHERE transaction_id >= $1::text::xid8 AND transaction_id < (SELECT watermark FROM outbox)
                 ORDER BY transaction_id FETCH FIRST $2 ROWS WITH TIES
             )
             SELECT epoch, pruned_below::text::bigint, is_other_cluster,
                    next_transaction > watermark AS has_running_transactions,
                    EXISTS (SELECT FROM search_changes WHERE transaction_id = $3::text::xid8) AS has_previous, ",
            history!("< $1::text::xid8"),
            " AS history, ",
            history!("<= (SELECT max(transaction_id) FROM taken)"),
            " AS next_history,
                    (SELECT coalesce(array_agg(DISTINCT chartset_id), '{}') FROM taken) AS chartsets,
                    (SELECT max(transaction_id)::text::bigint FROM taken) AS last_taken,
                    (SELECT max(transaction_id)::text::bigint FROM search_changes
                     WHERE transaction_id >= $1::text::xid8) AS last_committed,
                    (SELECT count(*) FROM taken) AS row_count
             FROM outbox"
        ))
        .bind(position.transaction_id.to_string())
        .bind(i64::from(limit))
        .bind(position.previous_transaction_id())
        .fetch_one(&mut *connection)
        .await
    }

    /// Returns the checkpoint for an index that is about to be filled from the current catalogue: every change
    /// that the fill may miss follows it.
    ///
    /// # Errors
    /// [`ChangesError::RebuildNeeded`] while the outbox is that of another cluster
    /// ([`Store::start_outbox_epoch`]).
    pub async fn current_checkpoint(&self) -> Result<RecordedCheckpoint, ChangesError> {
        let current = self.long_read("read the current checkpoint", Self::current_row).await?;
        let (epoch, transaction_id) = (current.epoch.unsigned_abs(), current.transaction_id.unsigned_abs());
        let checkpoint = Position { epoch: epoch.into(), transaction_id }.into();
        if current.is_other_cluster {
            return Err(ChangesError::RebuildNeeded { checkpoint, reason: RebuildReason::OtherCluster });
        }
        Ok(RecordedCheckpoint { checkpoint, history: current.history.map(from_digest) })
    }

    async fn current_row(mut connection: PooledConnection) -> Result<CurrentRow, sqlx::Error> {
        sqlx::query_as(concat!(
            with_outbox!(),
            ", position AS MATERIALIZED (
                 SELECT greatest(pruned_below, (
                     SELECT (transaction_id::text::bigint + 1)::text::xid8 FROM search_changes
                     WHERE transaction_id < watermark ORDER BY transaction_id DESC LIMIT 1
                 )) AS transaction_id FROM outbox
             )
             SELECT epoch, position.transaction_id::text::bigint, is_other_cluster, ",
            history!("< (SELECT transaction_id FROM position)"),
            " AS history FROM outbox, position"
        ))
        .fetch_one(&mut *connection)
        .await
    }

    async fn unapplied_row(
        mut connection: PooledConnection,
        position: Position,
    ) -> Result<UnappliedRow, sqlx::Error> {
        sqlx::query_as(concat!(
            with_outbox!(),
            "SELECT epoch, pruned_below::text::bigint, is_other_cluster,
                    EXISTS (SELECT FROM search_changes WHERE transaction_id = $2::text::xid8) AS has_previous, ",
            history!("< $1::text::xid8"),
            " AS history,
                    (SELECT changed_at_ms FROM search_changes WHERE transaction_id >= $1::text::xid8
                     ORDER BY transaction_id LIMIT 1) AS oldest_ms,
                    (SELECT count(*) FROM (
                         SELECT FROM search_changes WHERE transaction_id >= $1::text::xid8 LIMIT $3
                     ) AS unapplied) AS count
             FROM outbox"
        ))
        .bind(position.transaction_id.to_string())
        .bind(position.previous_transaction_id())
        .bind(UnappliedChanges::MAX_COUNT.cast_signed())
        .fetch_one(&mut *connection)
        .await
    }
}

#[async_trait]
impl CatalogueChanges for Store {
    async fn unapplied(&self, recorded: RecordedCheckpoint) -> Result<UnappliedChanges, ReadError> {
        let operation = "read unapplied changes";
        let position = Position::from(recorded.checkpoint);
        let row = self.long_read(operation, |connection| Self::unapplied_row(connection, position)).await?;
        let reason = row.outbox.rebuild_reason(position, recorded.history);
        let reason = reason.map_err(|error| read_error(operation, error))?;
        let oldest_ms = if reason.is_some() { Some(0) } else { row.oldest_ms };
        let count = u64::try_from(row.count).map_err(|error| read_error(operation, corrupt(error)))?;
        Ok(UnappliedChanges { oldest_ms, count })
    }
}
