//! How far a mirror has followed the change feed of another index (docs/operations/mirrors.md).

use std::collections::HashMap;

use chart_index_domain::{ChartsetId, Entity, FileDigest, Lineage, NoteHash};

use crate::feed::change_feed;
use crate::schema::column_values::parse_entity;
use crate::{Store, StoreError};

/// The state of a mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorState {
    /// The base address of the index that this one mirrors.
    pub upstream: String,
    /// The last sequence of its change feed that is applied; `None` until an export is imported or the feed is
    /// followed from 0.
    pub sequence: Option<u64>,
    /// The database there that numbered it; `None` until a page or an export has named it.
    pub lineage: Option<Lineage>,
    /// How often the mirror has started again, since changes were lost there.
    pub restarts: u32,
    /// Whether it has not reached the end of the feed since it started (again).
    pub is_starting: bool,
}

#[derive(sqlx::FromRow)]
struct MirrorRow {
    upstream: String,
    sequence: Option<i64>,
    lineage: Option<i64>,
    restarts: i32,
    is_starting: bool,
}

impl Store {
    /// Makes this index a mirror of the one at this address, if it is none and has no chartset. Returns the
    /// state of the mirror, which may be that of another address; `None` if the index has chartsets and is no
    /// mirror.
    pub async fn open_mirror(&self, upstream: &str) -> Result<Option<MirrorState>, StoreError> {
        let open = sqlx::query(
            "INSERT INTO mirror (upstream) SELECT $1 WHERE NOT EXISTS (SELECT FROM chartsets)
             ON CONFLICT DO NOTHING",
        );
        self.execute("open mirror", open.bind(upstream)).await?;
        self.mirror_state().await
    }

    /// Returns the state of the mirror; `None` if the index is none.
    pub async fn mirror_state(&self) -> Result<Option<MirrorState>, StoreError> {
        let query = sqlx::query_as("SELECT upstream, sequence, lineage, restarts, is_starting FROM mirror");
        let state = |MirrorRow { upstream, sequence, lineage, restarts, is_starting }| {
            Ok(MirrorState {
                upstream,
                sequence: sequence.map(i64::unsigned_abs),
                lineage: lineage.map(change_feed::lineage),
                restarts: restarts.unsigned_abs(),
                is_starting,
            })
        };
        self.fetch_row("read the state of the mirror", query, state).await
    }

    /// Begins to fill the mirror: what is stored is unconfirmed from now on.
    pub async fn unconfirm_chartsets(&self) -> Result<(), StoreError> {
        self.execute_for_mirror(
            "INSERT INTO mirror_unconfirmed SELECT id FROM chartsets ON CONFLICT DO NOTHING",
        )
        .await
    }

    /// Records that these chartsets are in the index that this one mirrors.
    pub async fn confirm_chartsets(&self, ids: &[ChartsetId]) -> Result<(), StoreError> {
        let ids: Vec<String> = ids.iter().map(ChartsetId::to_string).collect();
        let confirm = sqlx::query("DELETE FROM mirror_unconfirmed WHERE chartset_id = ANY($1)").bind(ids);
        self.execute("confirm chartsets", confirm).await
    }

    /// Returns when each of these charts was stored first, in Unix epoch milliseconds. Charts that are not
    /// stored are left out.
    pub async fn first_seen(&self, hashes: &[NoteHash]) -> Result<HashMap<NoteHash, i64>, StoreError> {
        let hashes: Vec<_> = hashes.iter().map(NoteHash::as_bytes).collect();
        let query =
            sqlx::query_as("SELECT hash, first_seen_ms FROM charts WHERE hash = ANY($1)").bind(hashes);
        let parse = |(hash, first_seen_ms): (_, i64)| Ok((NoteHash::from_bytes(hash), first_seen_ms));
        self.fetch_rows("read when charts were stored", query, parse).await
    }

    /// Records the digests of ROX files that have replaced others, of charts that are not stored yet, and
    /// forgets those of charts that are.
    pub async fn record_replacements(
        &self,
        replacements: &[(NoteHash, FileDigest)],
        stored: &[NoteHash],
    ) -> Result<(), StoreError> {
        let hashes: Vec<_> = replacements.iter().map(|(hash, _)| hash.as_bytes()).collect();
        let digests: Vec<_> = replacements.iter().map(|(_, digest)| digest.as_bytes()).collect();
        let stored: Vec<_> = stored.iter().map(NoteHash::as_bytes).collect();
        let record = sqlx::query(
            "WITH forgotten AS (DELETE FROM mirror_replacements WHERE hash = ANY($3))
             INSERT INTO mirror_replacements (hash, digest) SELECT * FROM unnest($1::bytea[], $2::bytea[])
             ON CONFLICT (hash) DO UPDATE SET digest = excluded.digest",
        );
        self.execute("record replaced files", record.bind(hashes).bind(digests).bind(stored)).await
    }

    /// Returns the recorded digests of the ROX files of these charts.
    pub async fn replacements(
        &self,
        hashes: &[NoteHash],
    ) -> Result<HashMap<NoteHash, FileDigest>, StoreError> {
        let hashes: Vec<_> = hashes.iter().map(NoteHash::as_bytes).collect();
        let query = sqlx::query_as("SELECT hash, digest FROM mirror_replacements WHERE hash = ANY($1)");
        let parse = |(hash, digest)| Ok((NoteHash::from_bytes(hash), FileDigest::from_bytes(digest)));
        self.fetch_rows("read replaced files", query.bind(hashes), parse).await
    }

    /// Returns up to `limit` chartsets that are unconfirmed, and charts that no chartset contains.
    pub async fn unconfirmed(&self, limit: u32) -> Result<Vec<Entity>, StoreError> {
        let query = sqlx::query_as(
            "SELECT decode(chartset_id, 'hex') FROM mirror_unconfirmed
             UNION ALL
             SELECT hash FROM charts
             WHERE NOT EXISTS (SELECT FROM chartset_charts WHERE chart_hash = hash)
             LIMIT $1",
        );
        let parse = |(entity,): (Vec<u8>,)| parse_entity(&entity);
        self.fetch_rows("read what is unconfirmed", query.bind(i64::from(limit)), parse).await
    }

    /// Records that everything up to this sequence of the feed is applied, unless the sequence is another one
    /// than before: then a [`restore`](Self::restore) has set it back.
    pub async fn advance_mirror(
        &self,
        before: Option<u64>,
        sequence: u64,
        lineage: Option<Lineage>,
    ) -> Result<(), StoreError> {
        let [before, sequence] = [before, Some(sequence)].map(|sequence| sequence.map(u64::cast_signed));
        let lineage = lineage.map(|lineage| i64::from_be_bytes(*lineage.as_bytes()));
        let advance = sqlx::query(
            "UPDATE mirror SET sequence = $2, lineage = coalesce($3, lineage)
             WHERE sequence IS NOT DISTINCT FROM $1",
        );
        self.execute("advance mirror", advance.bind(before).bind(sequence).bind(lineage)).await
    }

    /// Records that the mirror has reached the end of the feed, and that nothing is unconfirmed.
    pub async fn complete_mirror(&self) -> Result<(), StoreError> {
        self.execute_for_mirror("UPDATE mirror SET is_starting = false").await
    }

    /// Begins again, after the feed has lost changes or has another lineage.
    pub async fn restart_mirror(&self) -> Result<(), StoreError> {
        self.execute_for_mirror(
            "WITH replacements AS (DELETE FROM mirror_replacements), refusals AS (DELETE FROM mirror_refusals)
             UPDATE mirror SET sequence = NULL, lineage = NULL, restarts = restarts + 1, is_starting = true",
        )
        .await
    }

    pub(crate) async fn execute_for_mirror(&self, statement: &'static str) -> Result<(), StoreError> {
        self.execute("write the state of the mirror", sqlx::query(statement)).await
    }
}
