//! The change feed: the latest change of each chart and chartset, in the order of sequences
//! (docs/formats/change-feed.md, decision 0021).
//!
//! Triggers on the tables of the catalogue record in `pending_changes` what may have changed. When the
//! transaction commits, a deferred trigger moves the entries of these charts and chartsets in
//! `catalogue_changes` to the next sequences (the function `number_changes`), so a change is visible together
//! with its sequence. What is not known and was never in the feed gets a tombstone. One transaction at a time
//! takes sequences, until it has committed, so a reader that continues from a sequence never misses a change
//! that is committed late.
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

use chart_index_domain::{Lineage, Origin, Position, ReadError};

use crate::Store;

impl Store {
    /// Returns the position of the feed: the last sequence, and the origin that assigned it. What is read
    /// afterwards contains every change up to it.
    pub async fn feed_position(&self) -> Result<Position, ReadError> {
        self.short_read("read the position of the feed", |mut connection| async move {
            let query = sqlx::query_as("SELECT last_sequence, origin FROM change_feed");
            let (sequence, origin): (i64, i64) = query.fetch_one(&mut *connection).await?;
            connection.release();
            Ok(position(sequence, origin))
        })
        .await
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
