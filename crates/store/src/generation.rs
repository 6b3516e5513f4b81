//! The generation of the catalogue: a number that differs after every change.

use std::hash::{DefaultHasher, Hash, Hasher};

use chart_index_domain::ReadError;
use chart_index_domain::search::Generation;

use crate::Store;
use crate::outbox_state::MIN_RETAINED_ROWS;

/// The input of a generation: the highest sequence in the [outbox](crate::outbox), and the sum of the 4,096 highest.
///
/// With equal `newest` the range is the same, and rows in it are never deleted, so an equal sum means the same rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, sqlx::FromRow)]
pub(crate) struct GenerationRow {
    newest: i64,
    sum: i64,
}

impl GenerationRow {
    /// The digest. It only has to agree between replicas of one version.
    pub(crate) fn generation(self) -> Generation {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        Generation(hasher.finish())
    }
}

/// The subquery for a [`GenerationRow`]. It reads the rows that are never pruned ([`MIN_RETAINED_ROWS`]).
macro_rules! generation_row {
    () => {
        "(SELECT coalesce(max(seq), 0) AS newest, coalesce(sum(seq), 0)::bigint AS sum FROM search_changes
          WHERE seq > (SELECT coalesce(max(seq), 0) FROM search_changes) - 4096)"
    };
}
pub(crate) use generation_row;

const _: () = assert!(MIN_RETAINED_ROWS == 4_096, "generation_row! contains the number");

impl Store {
    /// Returns the current generation of the catalogue. It differs after every change of what lookups, lists and
    /// details return.
    ///
    /// More than the newest row is read, since a row may become visible after one with a higher sequence.
    pub async fn generation(&self) -> Result<Generation, ReadError> {
        self.short_read("read generation", |mut connection| async move {
            let row: GenerationRow =
                sqlx::query_as(concat!("SELECT * FROM ", generation_row!(), " AS generation"))
                    .fetch_one(&mut *connection)
                    .await?;
            Ok(row.generation())
        })
        .await
    }
}
