//! What a replica asks once a second: what has changed since it last asked.

use chart_index_domain::{CatalogueChange, CataloguePoll, ReadError};

use crate::Store;
use crate::connection::pooled_connection::PooledConnection;
use crate::connection::server_identity::ServerPosition;
use crate::error::corrupt;
use crate::feed::change_feed::{lineage, position};
use crate::schema::column_values::parse_entity;

/// Maximum number of changed entities that a poll returns. Of a program that has just started, the last ones
/// show which entries in Redis are current.
const MAX_CHANGES: usize = 10_000;
const INCOMPLETE: &str = "the changes of a poll are incomplete";

/// The changes, the last one first; `None` without any.
#[derive(Default, sqlx::FromRow)]
struct ChangeColumns {
    /// [`ENTITY_LENGTHS`] times the sequence, plus the length of the entity; 8 bytes each.
    sequences: Option<Vec<u8>>,
    /// The sequences of the last removals; 8 bytes each.
    removals: Option<Vec<u8>>,
    entities: Option<Vec<u8>>,
}

/// More than the 32 bytes of the longest entity. The statement of a poll has this number, too.
const ENTITY_LENGTHS: u64 = 64;

#[derive(sqlx::FromRow)]
struct PollRow {
    lineage: i64,
    last_sequence: i64,
    origin: i64,
    last_removal: i64,
    #[sqlx(flatten)]
    changes: ChangeColumns,
    system_identifier: i64,
    is_standby: bool,
    wal: i64,
}

/// A poll, and the server that it reached.
#[derive(Debug, Clone)]
pub(crate) struct ServerPoll {
    pub(crate) poll: CataloguePoll,
    /// The number of the cluster.
    pub(crate) system_identifier: i64,
    pub(crate) is_standby: bool,
    pub(crate) server: ServerPosition,
}

impl Store {
    /// Returns the position of the server, and what has changed after a sequence, up to the last 10,000
    /// entities.
    pub async fn poll_catalogue(&self, after: u64) -> Result<CataloguePoll, ReadError> {
        Ok(self.poll_server(after).await?.poll)
    }

    pub(crate) async fn poll_server(&self, after: u64) -> Result<ServerPoll, ReadError> {
        self.short_read("poll the catalogue", |connection| ServerPoll::read(connection, after)).await
    }
}

impl ServerPoll {
    pub(crate) async fn read(mut connection: PooledConnection, after: u64) -> Result<Self, sqlx::Error> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        // Concatenated columns take less than half the CPU time of arrays: many replicas read the same changes.
        let row: PollRow = sqlx::query_as(
            "SELECT feed.last_sequence, feed.last_removal, server.*, changes.*
             FROM change_feed AS feed, server_state AS server, (
                 SELECT string_agg(int8send(sequence * 64 + octet_length(entity)), '') AS sequences,
                        string_agg(int8send(last_removal), '') AS removals, string_agg(entity, '') AS entities
                 FROM (
                     SELECT sequence, entity, last_removal
                     FROM catalogue_changes WHERE sequence > $1 ORDER BY sequence DESC LIMIT $2
                 ) AS change
             ) AS changes",
        )
        .bind(after)
        .bind(i64::try_from(MAX_CHANGES).unwrap_or(i64::MAX))
        .fetch_one(&mut *connection)
        .await?;
        connection.release();
        row.parse(after)
    }
}

impl PollRow {
    fn parse(self, after: i64) -> Result<ServerPoll, sqlx::Error> {
        let (lineage, position) = (lineage(self.lineage), position(self.last_sequence, self.origin));
        let mut changes = self.changes.parse()?;
        changes.reverse();
        let oldest = changes.first().filter(|_| changes.len() == MAX_CHANGES);
        let complete_after = oldest.map_or(after.unsigned_abs(), |oldest| oldest.sequence - 1);
        let last_removal = self.last_removal.unsigned_abs();
        Ok(ServerPoll {
            poll: CataloguePoll { lineage, position, last_removal, changes, complete_after },
            system_identifier: self.system_identifier,
            is_standby: self.is_standby,
            server: ServerPosition { server: self.origin, wal: self.wal },
        })
    }
}

impl ChangeColumns {
    fn parse(self) -> Result<Vec<CatalogueChange>, sqlx::Error> {
        let [sequences, removals, entities] =
            [self.sequences, self.removals, self.entities].map(Option::unwrap_or_default);
        let (mut removals, mut entities) = (removals.as_chunks().0.iter(), &entities[..]);
        let change = |sequence: &[u8; 8]| {
            let sequence = u64::from_be_bytes(*sequence);
            let length = usize::try_from(sequence % ENTITY_LENGTHS).ok();
            let (entity, rest) = length
                .and_then(|length| entities.split_at_checked(length))
                .ok_or_else(|| corrupt(INCOMPLETE))?;
            entities = rest;
            let last_removal = u64::from_be_bytes(*removals.next().ok_or_else(|| corrupt(INCOMPLETE))?);
            Ok(CatalogueChange {
                sequence: sequence / ENTITY_LENGTHS,
                entity: parse_entity(entity)?,
                last_removal,
            })
        };
        sequences.as_chunks().0.iter().map(change).collect()
    }
}
