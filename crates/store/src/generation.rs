//! The generation of the catalogue: a number that differs after every change.

use std::hash::{DefaultHasher, Hash, Hasher};

use chart_index_domain::ReadError;
use chart_index_domain::search::{DatabaseIdentity, Generation};

use crate::Store;
use crate::outbox_state::MIN_RETAINED_ROWS;

/// The input of a generation: the highest sequence in the [outbox](crate::outbox), the sum of the 4,096
/// highest, and the token of the newest row.
///
/// With equal `newest` the range is the same, and rows in it are never deleted, so an equal sum means the same
/// sequences. A database that was restored to an earlier state assigns lost sequences again, to rows with other
/// tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, sqlx::FromRow)]
pub(crate) struct GenerationRow {
    newest: i64,
    sum: i64,
    token: i64,
}

/// A generation, and the input of the identity of its database.
#[derive(Debug, sqlx::FromRow)]
struct CatalogueRow {
    #[sqlx(flatten)]
    generation: GenerationRow,
    #[sqlx(flatten)]
    database: DatabaseRow,
}

/// What tells a database from those that are restored from its backups.
#[derive(Debug, Hash, sqlx::FromRow)]
struct DatabaseRow {
    /// Identifies a cluster and its physical copies.
    system_identifier: i64,
    /// Increases with a restore to a point in time and with the promotion of a standby. `None` on a standby.
    timeline: Option<String>,
    /// The object id of a table. It differs in other databases of the cluster, and if the table was restored.
    table_id: i64,
}

impl GenerationRow {
    /// A digest. It only has to be the same in replicas of one version.
    pub(crate) fn generation(self) -> Generation {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        Generation(hasher.finish())
    }
}

impl DatabaseRow {
    /// A digest. It only has to be the same in replicas of one version.
    fn identity(&self) -> DatabaseIdentity {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        DatabaseIdentity(hasher.finish())
    }
}

/// The subquery for a [`GenerationRow`]. It reads the rows that are never pruned ([`MIN_RETAINED_ROWS`]).
macro_rules! generation_row {
    () => {
        "(SELECT coalesce(max(sequence), 0) AS newest, coalesce(sum(sequence), 0)::bigint AS sum,
                 coalesce((SELECT token FROM search_changes ORDER BY sequence DESC LIMIT 1), 0) AS token
          FROM search_changes WHERE sequence > (SELECT coalesce(max(sequence), 0) FROM search_changes) - 4096)"
    };
}
pub(crate) use generation_row;

const _: () = assert!(MIN_RETAINED_ROWS == 4_096, "generation_row! contains the number");

impl Store {
    /// Returns the current generation of the catalogue. It differs after every change of what lookups, lists
    /// and details return.
    ///
    /// More than the newest row is read, since a row may become visible after one with a higher sequence.
    pub async fn generation(&self) -> Result<Generation, ReadError> {
        self.generation_and_database().await.map(|(generation, _)| generation)
    }

    /// Returns the current generation of the catalogue, and the identity of its database.
    pub async fn generation_and_database(&self) -> Result<(Generation, DatabaseIdentity), ReadError> {
        self.short_read("read generation", |mut connection| async move {
            let row: CatalogueRow = sqlx::query_as(concat!(
                "SELECT generation.*, system_identifier, 'search_changes'::regclass::oid::bigint AS table_id,
                        CASE WHEN NOT pg_is_in_recovery()
                             THEN left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END AS timeline
                 FROM pg_control_system(), ",
                generation_row!(),
                " AS generation"
            ))
            .fetch_one(&mut *connection)
            .await?;
            Ok((row.generation.generation(), row.database.identity()))
        })
        .await
    }
}
