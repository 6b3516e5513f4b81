//! Maintenance of the [outbox](crate::outbox): starting an epoch after a restore, and pruning.

use chart_index_domain::search::Checkpoint;

use crate::outbox_state::{MIN_RETAINED_ROWS, Position, history_rows, with_outbox};
use crate::{Store, StoreError};

impl Store {
    /// Starts a new epoch if the database was restored into another cluster. Returns whether it was: if so, no
    /// earlier checkpoint is valid, and every search index needs a rebuild.
    ///
    /// The rows are retained, below every checkpoint of the new epoch, since the generation depends on them.
    pub async fn start_outbox_epoch(&self) -> Result<bool, StoreError> {
        self.run_once("start an epoch of the outbox", |mut connection| async move {
            sqlx::query_scalar(concat!(
                with_outbox!(),
                ", started AS (
                     UPDATE search_outbox SET
                         cluster = (SELECT system_identifier FROM pg_control_system()),
                         epoch = search_outbox.epoch + 1, pruned_below = outbox.watermark
                     FROM outbox WHERE outbox.is_other_cluster AND search_outbox.epoch = outbox.epoch
                     RETURNING true
                 ), earlier AS (
                     UPDATE search_changes SET transaction_id = '0' WHERE EXISTS (SELECT FROM started)
                 )
                 SELECT count(*) > 0 FROM started"
            ))
            .fetch_one(&mut *connection)
            .await
        })
        .await
    }

    /// Deletes outbox rows that every search index has applied and that were written before `before_ms` (Unix
    /// epoch milliseconds). Returns the number of deleted rows.
    ///
    /// `applied` is the lowest checkpoint of all indexes. The newest 4,096 rows are always retained, and so is
    /// the history of `applied`.
    pub async fn prune_changes(&self, applied: Checkpoint, before_ms: i64) -> Result<u64, StoreError> {
        let position = Position::from(applied);
        let count: i64 = self
            .run_once("prune the outbox", |mut connection| async move {
                // Deletes from the lowest transaction up to the first retained one, so that pruned_below
                // describes it.
                sqlx::query_scalar(concat!(
                    "WITH retained AS (
                         SELECT min(transaction_id) AS first FROM search_changes
                         WHERE transaction_id >= $1::text::xid8 OR changed_at_ms >= $2
                            OR sequence > (SELECT max(sequence) FROM search_changes) - $3
                            OR transaction_id >= (SELECT min(transaction_id) FROM (",
                    history_rows!("< $1::text::xid8"),
                    ") AS last_rows)
                     ), deleted AS (
                         DELETE FROM search_changes WHERE transaction_id < (SELECT first FROM retained)
                             AND $4 = (SELECT epoch FROM search_outbox)
                         RETURNING transaction_id
                     ), summary AS (
                         SELECT count(*) AS row_count, (max(transaction_id)::text::bigint + 1)::text::xid8 AS next
                         FROM deleted
                     ), updated AS (
                         UPDATE search_outbox SET pruned_below = greatest(pruned_below, summary.next) FROM summary
                         WHERE summary.next IS NOT NULL
                     )
                     SELECT row_count FROM summary"
                ))
                .bind(position.transaction_id.to_string())
                .bind(before_ms)
                .bind(MIN_RETAINED_ROWS)
                .bind(i32::try_from(position.epoch).unwrap_or(-1))
                .fetch_one(&mut *connection)
                .await
            })
            .await?;
        Ok(count.unsigned_abs())
    }
}
