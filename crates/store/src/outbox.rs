//! The outbox `search_changes`: which chartsets changed, for engines that keep documents of their own.
//!
//! Rows become visible out of the order of their numbers, so a reader goes by transactions. It takes whole
//! transactions, and only those older than every transaction still running: nothing can appear below them any
//! more. Its position is a [`Checkpoint`]: the transaction that it took last, plus one. That is at most the
//! horizon, and says the same, and it is the id of a transaction that PostgreSQL has on its disk: ids that were
//! handed out and left no trace may be handed out again after a crash, and a position above them would pass over
//! what they then change.
//!
//! A database that goes back to an earlier state (restored, or replaced by a standby that lacked the last transactions)
//! gives the ids of lost transactions to other ones, and the numbers of their rows as well. So every row has a random
//! token, and an index records beside its position a digest of the tokens of the last 64 rows before it
//! ([`RecordedCheckpoint`]). The outbox leads on only from a digest that it still gives. One row would not do: of two
//! transactions that overlap, the one with the higher id may commit first, and the other one alone be lost.

use async_trait::async_trait;
use chart_index_domain::search::{CatalogueChanges, Checkpoint, HistoryDigest, RecordedCheckpoint};
use chart_index_domain::{ChartsetId, ReadError};

use crate::error::{corrupt, read_error};
use crate::lease::Lease;
use crate::{Store, StoreError};

/// How many rows of the outbox, by number, are never pruned: the generation of the catalogue is their digest.
pub(crate) const ROWS_KEPT: i64 = 4_096;

/// How many bits of a checkpoint the transaction id takes; above them is the number of the outbox's beginning.
/// At a million transactions a second, that many last for nine years.
const TRANSACTION_BITS: u32 = 48;

/// Changes that follow a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// The sets that changed, each once.
    pub chartsets: Vec<ChartsetId>,
    /// The position after these changes; the one before where there are none, with its history.
    pub next: RecordedCheckpoint,
    /// Whether no changes follow that can be taken now.
    pub is_last: bool,
    /// The position after every change that is committed now, also those that cannot be taken yet because an older
    /// transaction is still running.
    pub committed: Checkpoint,
    /// Whether transactions are under way: there may soon be more, of which nobody will be notified.
    pub has_running_transactions: bool,
}

/// Changes that cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// What follows that checkpoint cannot be known: an index at it has to be rebuilt.
    #[error("the outbox does not lead on from checkpoint {checkpoint} ({reason}): a rebuild is needed")]
    RebuildNeeded {
        /// The position.
        checkpoint: Checkpoint,
        /// Why.
        reason: RebuildReason,
    },
    /// PostgreSQL did not tell.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why what follows a checkpoint is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RebuildReason {
    /// Changes after it were pruned.
    #[error("changes after it are pruned")]
    Pruned,
    /// The database was restored into another cluster, whose transaction ids are others.
    #[error("the database was restored from another server")]
    OtherCluster,
    /// The checkpoint names no transaction of the outbox: it is that of another database, or of a time before a
    /// restore.
    #[error("it belongs to another database or to a time before a restore")]
    UnknownCheckpoint,
    /// Other changes stand before the checkpoint than those that the index holds.
    #[error("the database went back to an earlier state by a restore or a failover, and has changed since")]
    HistoryDiverged,
}

/// A position, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    beginning: u64,
    transaction: u64,
}

impl From<Checkpoint> for Position {
    fn from(Checkpoint(number): Checkpoint) -> Self {
        let transaction = number & ((1 << TRANSACTION_BITS) - 1);
        Self { beginning: number >> TRANSACTION_BITS, transaction }
    }
}

impl From<Position> for Checkpoint {
    fn from(position: Position) -> Self {
        Self(position.beginning << TRANSACTION_BITS | position.transaction)
    }
}

/// The transaction that a checkpoint lies before.
pub(crate) fn transaction_of(checkpoint: Checkpoint) -> u64 {
    Position::from(checkpoint).transaction
}

/// What every statement here begins with: the outbox as it stands in the snapshot of the statement.
///
/// `restored`: transaction ids of another cluster, by its identifier, or because they lie in the future.
macro_rules! with_outbox {
    () => {
        "WITH now AS MATERIALIZED (
             SELECT pg_snapshot_xmin(pg_current_snapshot()) AS horizon,
                    pg_snapshot_xmax(pg_current_snapshot()) AS future
         ), outbox AS MATERIALIZED (
             SELECT beginning, pruned_below, horizon, future,
                    cluster <> (SELECT system_identifier FROM pg_control_system())
                        OR pruned_below > future
                        OR EXISTS (SELECT FROM search_changes WHERE transaction_id >= future) AS restored
             FROM search_outbox, now
         )"
    };
}

/// The rows before a position whose tokens are its history: the last 64 of those that the condition names. Transactions
/// that overlap are fewer.
macro_rules! history_rows {
    ($condition:literal) => {
        concat!(
            "SELECT transaction_id, token FROM search_changes WHERE transaction_id ",
            $condition,
            " ORDER BY transaction_id DESC, seq DESC LIMIT 64"
        )
    };
}

/// The digest of those rows.
macro_rules! history {
    ($condition:literal) => {
        concat!("(SELECT bit_xor(token) FROM (", history_rows!($condition), ") AS before)")
    };
}

#[derive(sqlx::FromRow)]
struct OutboxRow {
    beginning: i32,
    pruned_below: i64,
    restored: bool,
    /// Whether a change of the transaction just below the position is there.
    known: bool,
    /// The digest of the last changes below the position; `None` without any.
    history: Option<i64>,
}

#[derive(sqlx::FromRow)]
struct ChangesRow {
    #[sqlx(flatten)]
    outbox: OutboxRow,
    chartsets: Vec<String>,
    last: Option<i64>,
    next_history: Option<i64>,
    newest: Option<i64>,
    taken: i64,
    unsettled: bool,
}

impl OutboxRow {
    /// Why the outbox does not lead on from that position in that history. Where none was recorded, only the
    /// transaction itself can be looked for.
    fn objection(
        &self,
        position: Position,
        history: Option<HistoryDigest>,
    ) -> Result<Option<RebuildReason>, sqlx::Error> {
        let pruned_below = u64::try_from(self.pruned_below).map_err(corrupt)?;
        let beginning = u64::try_from(self.beginning).map_err(corrupt)?;
        Ok(if self.restored {
            Some(RebuildReason::OtherCluster)
        } else if position.beginning != beginning {
            Some(RebuildReason::UnknownCheckpoint)
        } else if position.transaction < pruned_below {
            Some(RebuildReason::Pruned)
        } else if position.transaction > pruned_below && !self.known {
            Some(RebuildReason::UnknownCheckpoint)
        } else if history.is_some() && history != self.history.map(digest) {
            // Just behind what was pruned nothing is left to recognise the history by.
            let is_pruned = position.transaction == pruned_below;
            Some(if is_pruned { RebuildReason::Pruned } else { RebuildReason::HistoryDiverged })
        } else {
            None
        })
    }
}

/// A digest as PostgreSQL gives it: it has signed numbers only.
const fn digest(number: i64) -> HistoryDigest {
    HistoryDigest(number.cast_unsigned())
}

impl Store {
    /// The changes that follow a checkpoint: about so many rows of the outbox at most, always whole transactions.
    ///
    /// # Errors
    /// [`ChangesError::RebuildNeeded`] where the outbox does not lead on from that checkpoint.
    pub async fn changes(&self, from: RecordedCheckpoint, limit: u32) -> Result<Changes, ChangesError> {
        let RecordedCheckpoint { checkpoint, history } = from;
        let position = Position::from(checkpoint);
        let row = self.read("read changes", |lease| Self::changes_row(lease, position, limit)).await?;
        let decode = |error| read_error("read changes", error);
        if let Some(reason) = row.outbox.objection(position, history).map_err(decode)? {
            return Err(ChangesError::RebuildNeeded { checkpoint, reason });
        }
        let after = |transaction: Option<i64>| match transaction {
            Some(last) => Position { transaction: last.unsigned_abs() + 1, ..position },
            None => position,
        };
        let next = RecordedCheckpoint {
            checkpoint: after(row.last).into(),
            history: row.next_history.or(row.outbox.history).map(digest),
        };
        let chartsets = row.chartsets.iter().map(|id| id.parse().map_err(corrupt));
        Ok(Changes {
            chartsets: chartsets.collect::<Result<_, _>>().map_err(decode)?,
            next,
            is_last: row.taken < i64::from(limit),
            committed: after(row.newest).into(),
            has_running_transactions: row.unsettled,
        })
    }

    async fn changes_row(
        mut lease: Lease,
        position: Position,
        limit: u32,
    ) -> Result<ChangesRow, sqlx::Error> {
        sqlx::query_as(concat!(
            with_outbox!(),
            ", taken AS (
                 SELECT transaction_id, chartset_id FROM search_changes
                 WHERE transaction_id >= $1::text::xid8 AND transaction_id < (SELECT horizon FROM outbox)
                 ORDER BY transaction_id FETCH FIRST $2 ROWS WITH TIES
             )
             SELECT beginning, pruned_below::text::bigint, restored, future > horizon AS unsettled,
                    EXISTS (SELECT FROM search_changes WHERE transaction_id = $3::text::xid8) AS known, ",
            history!("< $1::text::xid8"),
            " AS history, ",
            history!("<= (SELECT max(transaction_id) FROM taken)"),
            " AS next_history,
                    (SELECT coalesce(array_agg(DISTINCT chartset_id), '{}') FROM taken) AS chartsets,
                    (SELECT max(transaction_id)::text::bigint FROM taken) AS last,
                    (SELECT max(transaction_id)::text::bigint FROM search_changes
                     WHERE transaction_id >= $1::text::xid8) AS newest,
                    (SELECT count(*) FROM taken) AS taken
             FROM outbox"
        ))
        .bind(position.transaction.to_string())
        .bind(i64::from(limit))
        .bind(position.transaction.saturating_sub(1).to_string())
        .fetch_one(lease.connection())
        .await
    }

    /// The position of an index that is filled from the catalogue as it is now: changes that it may not see follow
    /// this checkpoint.
    ///
    /// # Errors
    /// [`ChangesError::RebuildNeeded`] while the outbox is that of another cluster
    /// ([`Store::start_outbox_epoch`]).
    pub async fn current_checkpoint(&self) -> Result<RecordedCheckpoint, ChangesError> {
        let (beginning, transaction, history, restored): (i32, i64, Option<i64>, bool) = self
            .read("read the position of the outbox", |mut lease| async move {
                sqlx::query_as(concat!(
                    with_outbox!(),
                    ", position AS MATERIALIZED (
                         SELECT greatest(pruned_below, (
                             SELECT (transaction_id::text::bigint + 1)::text::xid8 FROM search_changes
                             WHERE transaction_id < horizon ORDER BY transaction_id DESC LIMIT 1
                         )) AS transaction FROM outbox
                     )
                     SELECT beginning, transaction::text::bigint, ",
                    history!("< (SELECT transaction FROM position)"),
                    ", restored FROM outbox, position"
                ))
                .fetch_one(lease.connection())
                .await
            })
            .await?;
        let (beginning, transaction) = (beginning.unsigned_abs().into(), transaction.unsigned_abs());
        let checkpoint = Position { beginning, transaction }.into();
        if restored {
            return Err(ChangesError::RebuildNeeded { checkpoint, reason: RebuildReason::OtherCluster });
        }
        Ok(RecordedCheckpoint { checkpoint, history: history.map(digest) })
    }

    /// Makes an outbox that was restored from another cluster usable, and tells whether it was one. No checkpoint
    /// of before leads on after it: every index has to be rebuilt.
    ///
    /// The rows stay, as changes before the beginning: the generation of the catalogue is counted in them.
    pub async fn start_outbox_epoch(&self) -> Result<bool, StoreError> {
        let statement = concat!(
            with_outbox!(),
            ", changed AS (
                 UPDATE search_outbox SET
                     cluster = (SELECT system_identifier FROM pg_control_system()),
                     beginning = search_outbox.beginning + 1, pruned_below = outbox.horizon
                 FROM outbox WHERE outbox.restored AND search_outbox.beginning = outbox.beginning
                 RETURNING true
             ), before AS (
                 UPDATE search_changes SET transaction_id = '0' WHERE EXISTS (SELECT FROM changed)
             )
             SELECT count(*) > 0 FROM changed"
        );
        self.run_once("begin the outbox anew", |mut lease| async move {
            sqlx::query_scalar(statement).fetch_one(lease.connection()).await
        })
        .await
    }

    /// Deletes rows of the outbox that every index has applied, by the lowest of their checkpoints, and that were
    /// written before a time. The newest 4,096 stay in any case, and so do those that the history of the lowest
    /// checkpoint is recognised by. Gives how many went.
    pub async fn prune_changes(&self, applied: Checkpoint, before_ms: i64) -> Result<u64, StoreError> {
        let position = Position::from(applied);
        // Rows go from the lowest transaction up to the first that has to stay, so that pruned_below tells it all.
        let statement = concat!(
            "WITH kept AS (
                 SELECT min(transaction_id) AS first FROM search_changes
                 WHERE transaction_id >= $1::text::xid8 OR changed_at_ms >= $2
                    OR seq > (SELECT max(seq) FROM search_changes) - $3
                    OR transaction_id >= (SELECT min(transaction_id) FROM (",
            history_rows!("< $1::text::xid8"),
            ") AS before)
             ), gone AS (
                 DELETE FROM search_changes WHERE transaction_id < (SELECT first FROM kept)
                     AND $4 = (SELECT beginning FROM search_outbox)
                 RETURNING transaction_id
             ), last AS (
                 SELECT count(*) AS count, (max(transaction_id)::text::bigint + 1)::text::xid8 AS next FROM gone
             ), pruned AS (
                 UPDATE search_outbox SET pruned_below = greatest(pruned_below, last.next) FROM last
                 WHERE last.next IS NOT NULL
             )
             SELECT count FROM last"
        );
        let count: i64 = self
            .run_once("prune the outbox", |mut lease| async move {
                sqlx::query_scalar(statement)
                    .bind(position.transaction.to_string())
                    .bind(before_ms)
                    .bind(ROWS_KEPT)
                    .bind(i32::try_from(position.beginning).unwrap_or(-1))
                    .fetch_one(lease.connection())
                    .await
            })
            .await?;
        Ok(count.unsigned_abs())
    }
}

#[async_trait]
impl CatalogueChanges for Store {
    /// Of a checkpoint that the outbox does not lead on from, changes of all times may be missing: 0.
    async fn oldest_unapplied_ms(&self, recorded: RecordedCheckpoint) -> Result<Option<i64>, ReadError> {
        let position = Position::from(recorded.checkpoint);
        let operation = "read the oldest change";
        let (outbox, oldest) = self
            .read(operation, |mut lease| async move {
                let row = sqlx::query(concat!(
                    with_outbox!(),
                    "SELECT beginning, pruned_below::text::bigint, restored,
                            EXISTS (SELECT FROM search_changes WHERE transaction_id = $2::text::xid8) AS known, ",
                    history!("< $1::text::xid8"),
                    " AS history,
                            (SELECT changed_at_ms FROM search_changes WHERE transaction_id >= $1::text::xid8
                             ORDER BY transaction_id LIMIT 1) AS oldest
                     FROM outbox"
                ))
                .bind(position.transaction.to_string())
                .bind(position.transaction.saturating_sub(1).to_string())
                .fetch_one(lease.connection())
                .await?;
                let oldest: Option<i64> = sqlx::Row::try_get(&row, "oldest")?;
                Ok((<OutboxRow as sqlx::FromRow<_>>::from_row(&row)?, oldest))
            })
            .await?;
        let objection = outbox.objection(position, recorded.history);
        let objection = objection.map_err(|error| read_error(operation, error))?;
        Ok(if objection.is_some() { Some(0) } else { oldest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_beginning_is_a_later_checkpoint() {
        let checkpoint = |beginning, transaction| Checkpoint::from(Position { beginning, transaction });
        assert!(checkpoint(0, 1) < checkpoint(0, 2));
        assert!(checkpoint(0, (1 << TRANSACTION_BITS) - 1) < checkpoint(1, 0));
        assert_eq!(checkpoint(0, 7), Checkpoint(7));
        assert_eq!(Position::from(checkpoint(3, 7)), Position { beginning: 3, transaction: 7 });
    }
}
