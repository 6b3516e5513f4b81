//! How far a mirror has followed the change feed of another index (docs/operations/mirrors.md).

use std::collections::HashMap;

use chart_index_domain::{ChartsetId, Entity, FileDigest, Lineage, NoteHash};

use crate::feed::change_feed;
use crate::schema::column_values::{parse_entity, parse_hash};
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
        self.run_once("open mirror", |mut connection| async move {
            sqlx::query(
                "INSERT INTO mirror (upstream) SELECT $1 WHERE NOT EXISTS (SELECT FROM chartsets)
                 ON CONFLICT DO NOTHING",
            )
            .bind(upstream)
            .execute(&mut *connection)
            .await
            .map(drop)
        })
        .await?;
        self.mirror_state().await
    }

    /// Returns the state of the mirror; `None` if the index is none.
    pub async fn mirror_state(&self) -> Result<Option<MirrorState>, StoreError> {
        self.run_once("read the state of the mirror", |mut connection| async move {
            let row: Option<MirrorRow> =
                sqlx::query_as("SELECT upstream, sequence, lineage, restarts, is_starting FROM mirror")
                    .fetch_optional(&mut *connection)
                    .await?;
            Ok(row.map(|MirrorRow { upstream, sequence, lineage, restarts, is_starting }| MirrorState {
                upstream,
                sequence: sequence.map(i64::unsigned_abs),
                lineage: lineage.map(change_feed::lineage),
                restarts: restarts.unsigned_abs(),
                is_starting,
            }))
        })
        .await
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
        self.run_once("confirm chartsets", |mut connection| async move {
            let confirm = sqlx::query("DELETE FROM mirror_unconfirmed WHERE chartset_id = ANY($1)").bind(ids);
            confirm.execute(&mut *connection).await.map(drop)
        })
        .await
    }

    /// Returns when each of these charts was stored first, in Unix epoch milliseconds. Charts that are not
    /// stored are left out.
    pub async fn first_seen(&self, hashes: &[NoteHash]) -> Result<HashMap<NoteHash, i64>, StoreError> {
        let hashes: Vec<&[u8]> = hashes.iter().map(|hash| &hash.as_bytes()[..]).collect();
        self.run_once("read when charts were stored", |mut connection| async move {
            let rows: Vec<(Vec<u8>, i64)> =
                sqlx::query_as("SELECT hash, first_seen_ms FROM charts WHERE hash = ANY($1)")
                    .bind(hashes)
                    .fetch_all(&mut *connection)
                    .await?;
            rows.into_iter().map(|(hash, first_seen_ms)| Ok((parse_hash(&hash)?, first_seen_ms))).collect()
        })
        .await
    }

    /// Records the digests of ROX files that have replaced others, of charts that are not stored yet, and
    /// forgets those of charts that are.
    pub async fn record_replacements(
        &self,
        replacements: &[(NoteHash, FileDigest)],
        stored: &[NoteHash],
    ) -> Result<(), StoreError> {
        let hashes: Vec<&[u8]> = replacements.iter().map(|(hash, _)| &hash.as_bytes()[..]).collect();
        let digests: Vec<&[u8]> = replacements.iter().map(|(_, digest)| &digest.as_bytes()[..]).collect();
        let stored: Vec<&[u8]> = stored.iter().map(|hash| &hash.as_bytes()[..]).collect();
        self.run_once("record replaced files", |mut connection| async move {
            let record = sqlx::query(
                "WITH forgotten AS (DELETE FROM mirror_replacements WHERE hash = ANY($3))
                 INSERT INTO mirror_replacements (hash, digest) SELECT * FROM unnest($1::bytea[], $2::bytea[])
                 ON CONFLICT (hash) DO UPDATE SET digest = excluded.digest",
            );
            record.bind(hashes).bind(digests).bind(stored).execute(&mut *connection).await.map(drop)
        })
        .await
    }

    /// Returns the recorded digests of the ROX files of these charts.
    pub async fn replacements(
        &self,
        hashes: &[NoteHash],
    ) -> Result<HashMap<NoteHash, FileDigest>, StoreError> {
        let hashes: Vec<&[u8]> = hashes.iter().map(|hash| &hash.as_bytes()[..]).collect();
        self.run_once("read replaced files", |mut connection| async move {
            let rows: Vec<(Vec<u8>, [u8; 32])> =
                sqlx::query_as("SELECT hash, digest FROM mirror_replacements WHERE hash = ANY($1)")
                    .bind(hashes)
                    .fetch_all(&mut *connection)
                    .await?;
            rows.into_iter()
                .map(|(hash, digest)| Ok((parse_hash(&hash)?, FileDigest::from_bytes(digest))))
                .collect()
        })
        .await
    }

    /// Returns up to `limit` chartsets that are unconfirmed, and charts that no chartset contains.
    pub async fn unconfirmed(&self, limit: u32) -> Result<Vec<Entity>, StoreError> {
        self.run_once("read what is unconfirmed", |mut connection| async move {
            let rows: Vec<Vec<u8>> = sqlx::query_scalar(
                "SELECT decode(chartset_id, 'hex') FROM mirror_unconfirmed
                 UNION ALL
                 SELECT hash FROM charts
                 WHERE NOT EXISTS (SELECT FROM chartset_charts WHERE chart_hash = hash)
                 LIMIT $1",
            )
            .bind(i64::from(limit))
            .fetch_all(&mut *connection)
            .await?;
            rows.iter().map(|entity| parse_entity(entity)).collect()
        })
        .await
    }

    /// Records that everything up to this sequence of the feed is applied, unless the sequence is another one
    /// than before: then a [`restore`](Self::restore) has set it back.
    pub async fn advance_mirror(
        &self,
        before: Option<u64>,
        sequence: u64,
        lineage: Option<Lineage>,
    ) -> Result<(), StoreError> {
        let [before, sequence] = [before, Some(sequence)].map(|sequence| sequence.map(column_of));
        let lineage = lineage.map(|lineage| i64::from_be_bytes(*lineage.as_bytes()));
        self.run_once("advance mirror", |mut connection| async move {
            let advance = sqlx::query(
                "UPDATE mirror SET sequence = $2, lineage = coalesce($3, lineage)
                 WHERE sequence IS NOT DISTINCT FROM $1",
            );
            let advance = advance.bind(before).bind(sequence).bind(lineage);
            advance.execute(&mut *connection).await.map(drop)
        })
        .await
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
        self.run_once("write the state of the mirror", |mut connection| async move {
            sqlx::query(statement).execute(&mut *connection).await.map(drop)
        })
        .await
    }
}

const fn column_of(sequence: u64) -> i64 {
    // Sequences are below 2^53.
    sequence.cast_signed()
}
