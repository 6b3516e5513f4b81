//! How far a CDN is purged (docs/operations/cdn.md).

use chart_index_domain::{Position, ReadError};

use crate::feed::change_feed::position;
use crate::{Store, StoreError};

impl Store {
    /// The position in the change feed up to which a CDN is purged; `None` before the first.
    pub async fn purge_position(&self) -> Result<Option<Position>, ReadError> {
        self.short_read("read the position of purges", |mut connection| async move {
            let row: Option<(i64, i64)> = sqlx::query_as("SELECT sequence, origin FROM cdn_purges")
                .fetch_optional(&mut *connection)
                .await?;
            connection.release();
            Ok(row.map(|(sequence, origin)| position(sequence, origin)))
        })
        .await
    }

    /// Records that a CDN is purged up to this position.
    pub async fn set_purge_position(&self, position: Position) -> Result<(), StoreError> {
        self.run_once("write the position of purges", |mut connection| async move {
            sqlx::query(
                "INSERT INTO cdn_purges (sequence, origin) VALUES ($1, $2)
                 ON CONFLICT (only_row) DO UPDATE SET sequence = excluded.sequence, origin = excluded.origin",
            )
            .bind(position.sequence.cast_signed())
            .bind(position.origin.0.cast_signed())
            .execute(&mut *connection)
            .await
            .map(drop)
        })
        .await
    }
}
