//! The state of the [outbox](crate::outbox), and whether a checkpoint is valid in it.

use chart_index_domain::search::{Checkpoint, HistoryDigest};

use crate::error::corrupt;

/// Number of rows with the highest sequences that are never pruned: the generation of the catalogue is their
/// digest.
pub(crate) const MIN_RETAINED_ROWS: i64 = 4_096;

/// Number of bits that the transaction id takes in a checkpoint; the epoch is above them. At a million
/// transactions a second they last for nine years.
const TRANSACTION_BITS: u32 = 48;

/// The parts of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) epoch: u64,
    pub(crate) transaction_id: u64,
}

impl From<Checkpoint> for Position {
    fn from(Checkpoint(number): Checkpoint) -> Self {
        let transaction_id = number & ((1 << TRANSACTION_BITS) - 1);
        Self { epoch: number >> TRANSACTION_BITS, transaction_id }
    }
}

impl From<Position> for Checkpoint {
    fn from(position: Position) -> Self {
        Self(position.epoch << TRANSACTION_BITS | position.transaction_id)
    }
}

impl Position {
    /// The position after a transaction; this one if there is none.
    pub(crate) fn after(self, last_transaction_id: Option<i64>) -> Self {
        match last_transaction_id {
            Some(last) => Self { transaction_id: last.unsigned_abs() + 1, ..self },
            None => self,
        }
    }

    /// The id just below, as text for a cast to `xid8`.
    pub(crate) fn previous_transaction_id(self) -> String {
        self.transaction_id.saturating_sub(1).to_string()
    }
}

/// Why the outbox does not continue from a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RebuildReason {
    /// Changes after the checkpoint were pruned.
    #[error("later changes were pruned")]
    Pruned,
    /// The transaction ids in the outbox are those of another cluster; see
    /// [`Store::start_outbox_epoch`](crate::Store::start_outbox_epoch).
    #[error("the database was restored into another PostgreSQL cluster")]
    OtherCluster,
    /// The outbox contains no such transaction, or the checkpoint is of an earlier epoch.
    #[error("it belongs to another database or to a time before a restore")]
    UnknownCheckpoint,
    /// The index contains other changes than the outbox below the checkpoint.
    #[error("the database was rolled back by a restore or a failover and has changed since")]
    HistoryDiverged,
}

/// The beginning of a statement on the outbox: its state in the snapshot of the statement.
///
/// `is_other_cluster`: the identifier of the cluster differs, or transaction ids lie in the future.
macro_rules! with_outbox {
    () => {
        "WITH snapshot AS MATERIALIZED (
             SELECT pg_snapshot_xmin(pg_current_snapshot()) AS watermark,
                    pg_snapshot_xmax(pg_current_snapshot()) AS next_transaction
         ), outbox AS MATERIALIZED (
             SELECT epoch, pruned_below, watermark, next_transaction,
                    cluster <> (SELECT system_identifier FROM pg_control_system())
                        OR pruned_below > next_transaction
                        OR EXISTS (SELECT FROM search_changes WHERE transaction_id >= next_transaction)
                        AS is_other_cluster
             FROM search_outbox, snapshot
         )"
    };
}
pub(crate) use with_outbox;

/// The rows whose tokens are the history of a position: the last 64 rows whose transaction id meets the
/// condition. Fewer transactions than that overlap.
macro_rules! history_rows {
    ($condition:literal) => {
        concat!(
            "SELECT transaction_id, token FROM search_changes WHERE transaction_id ",
            $condition,
            " ORDER BY transaction_id DESC, sequence DESC LIMIT 64"
        )
    };
}
pub(crate) use history_rows;

/// The digest of [`history_rows`], `NULL` without rows.
macro_rules! history {
    ($condition:literal) => {
        concat!(
            "(SELECT bit_xor(token) FROM (",
            crate::outbox_state::history_rows!($condition),
            ") AS last_rows)"
        )
    };
}
pub(crate) use history;

/// What decides whether a checkpoint is valid.
#[derive(sqlx::FromRow)]
pub(crate) struct OutboxState {
    epoch: i32,
    pruned_below: i64,
    is_other_cluster: bool,
    /// Whether the outbox contains the transaction just below the checkpoint.
    has_previous: bool,
    /// The digest of the last rows below the checkpoint; `None` without rows.
    pub(crate) history: Option<i64>,
}

impl OutboxState {
    /// Why the outbox does not continue from a position with this history; `None` if it does. Without a
    /// recorded history only the transaction id is compared.
    pub(crate) fn rebuild_reason(
        &self,
        position: Position,
        history: Option<HistoryDigest>,
    ) -> Result<Option<RebuildReason>, sqlx::Error> {
        let pruned_below = u64::try_from(self.pruned_below).map_err(corrupt)?;
        let epoch = u64::try_from(self.epoch).map_err(corrupt)?;
        Ok(if self.is_other_cluster {
            Some(RebuildReason::OtherCluster)
        } else if position.epoch != epoch {
            Some(RebuildReason::UnknownCheckpoint)
        } else if position.transaction_id < pruned_below {
            Some(RebuildReason::Pruned)
        } else if position.transaction_id > pruned_below && !self.has_previous {
            Some(RebuildReason::UnknownCheckpoint)
        } else if history.is_some() && history != self.history.map(from_digest) {
            // Directly above the pruned rows none are left to compare the history with.
            let is_pruned = position.transaction_id == pruned_below;
            Some(if is_pruned { RebuildReason::Pruned } else { RebuildReason::HistoryDiverged })
        } else {
            None
        })
    }
}

/// Converts a digest from PostgreSQL, which has signed numbers only.
pub(crate) const fn from_digest(number: i64) -> HistoryDigest {
    HistoryDigest(number.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_epochs_have_higher_checkpoints() {
        let checkpoint = |epoch, transaction_id| Checkpoint::from(Position { epoch, transaction_id });
        assert!(checkpoint(0, 1) < checkpoint(0, 2));
        assert!(checkpoint(0, (1 << TRANSACTION_BITS) - 1) < checkpoint(1, 0));
        assert_eq!(checkpoint(0, 7), Checkpoint(7));
        assert_eq!(Position::from(checkpoint(3, 7)), Position { epoch: 3, transaction_id: 7 });
    }
}
