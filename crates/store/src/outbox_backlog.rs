//! The number of changes of the [outbox](crate::outbox) that an index lacks.

use chart_index_domain::ReadError;
use chart_index_domain::search::Checkpoint;

use crate::Store;
use crate::outbox_state::Position;

/// The changes that follow a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Their number, up to [`Backlog::MAX_CHANGES`].
    pub changes: u64,
    /// When the first of them was made, in Unix epoch milliseconds; `None` without changes.
    pub oldest_ms: Option<i64>,
}

impl Backlog {
    /// The number up to which changes are counted, which bounds the time of the query.
    pub const MAX_CHANGES: u64 = 1_000_000;
}

impl Store {
    /// Returns the backlog of an index at this checkpoint, for monitoring. It includes changes that cannot be
    /// taken yet because a transaction is running. The checkpoint is not validated.
    pub async fn backlog(&self, from: Checkpoint) -> Result<Backlog, ReadError> {
        let first = Position::from(from).transaction_id;
        let (changes, oldest_ms): (i64, Option<i64>) = self
            .long_read("read the backlog", |mut connection| async move {
                sqlx::query_as(
                    "SELECT (SELECT count(*) FROM (
                                 SELECT FROM search_changes WHERE transaction_id >= $1::text::xid8 LIMIT $2
                             ) AS pending),
                            (SELECT changed_at_ms FROM search_changes WHERE transaction_id >= $1::text::xid8
                             ORDER BY transaction_id LIMIT 1)",
                )
                .bind(first.to_string())
                .bind(Backlog::MAX_CHANGES.cast_signed())
                .fetch_one(&mut *connection)
                .await
            })
            .await?;
        Ok(Backlog { changes: changes.unsigned_abs(), oldest_ms })
    }
}
