//! How far a CDN is purged (docs/operations/cdn.md).

use chart_index_domain::{Position, ReadError};

use crate::connection::server::ReadLength;
use crate::feed::change_feed::position;
use crate::{Store, StoreError};

impl Store {
    /// The position in the change feed up to which a CDN is purged; `None` before the first.
    pub async fn purge_position(&self) -> Result<Option<Position>, ReadError> {
        let query = || sqlx::query_as("SELECT sequence, origin FROM cdn_purges");
        let parse = |(sequence, origin)| Ok(position(sequence, origin));
        self.read_row("read the position of purges", ReadLength::Short, query, parse).await
    }

    /// Records that a CDN is purged up to this position.
    pub async fn set_purge_position(&self, position: Position) -> Result<(), StoreError> {
        let query = sqlx::query(
            "INSERT INTO cdn_purges (sequence, origin) VALUES ($1, $2)
             ON CONFLICT (only_row) DO UPDATE SET sequence = excluded.sequence, origin = excluded.origin",
        );
        let query = query.bind(position.sequence.cast_signed()).bind(position.origin.0.cast_signed());
        self.execute("write the position of purges", query).await
    }
}
