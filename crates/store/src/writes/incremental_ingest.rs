//! Incremental ingest: recognises folders and archives that have not changed since they were last read.
//! Ingesting a library again should take about as long as listing it.

use std::collections::HashSet;

use chart_index_domain::{ChartsetId, NoteHash};
use sqlx::PgConnection;

use crate::schema::column_values::parse_chartset_id;
use crate::schema::sql_text::replace_nul;
use crate::{Store, StoreError};

/// The state of an input (a folder or archive) when it was last read, and the result of the ingest.
///
/// It identifies the files; [`content_fingerprint`](crate::content_fingerprint) identifies a chartset as it is
/// stored.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct InputFingerprint {
    /// The key of the folder or archive: a digest of its path in the library.
    pub input_key: [u8; 32],
    /// Digest of the names, sizes, times and inodes of its files; `None` if they are not reliable.
    pub file_metadata_digest: Option<[u8; 32]>,
    /// Digest of the content of its files.
    pub content_digest: [u8; 32],
    /// The result, in a format of the caller.
    pub outcome: String,
}

/// A chartset that an ingest expects to be unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedChartset {
    /// The id of the chartset.
    pub id: ChartsetId,
    /// Its last [`content_fingerprint`](crate::content_fingerprint).
    pub fingerprint: [u8; 32],
    /// Its path below the library root.
    pub path: String,
}

/// A chartset whose content is as expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnchangedChartset {
    /// The id of the chartset.
    pub id: ChartsetId,
    /// Its content fingerprint, as expected.
    pub fingerprint: [u8; 32],
    /// Whether it is removed from the index, and therefore not shown.
    pub removed: bool,
}

impl Store {
    /// Returns the recorded fingerprints of these folders and archives, in no particular order.
    pub async fn input_fingerprints(&self, inputs: &[[u8; 32]]) -> Result<Vec<InputFingerprint>, StoreError> {
        let query = sqlx::query_as(
            "SELECT input_key, metadata_digest AS file_metadata_digest, content_digest, outcome
             FROM ingest_fingerprints WHERE input_key = ANY($1)",
        );
        self.fetch_rows("read input fingerprints", query.bind(inputs), Ok).await
    }

    /// Records the fingerprints of folders and archives. Each `input_key` must occur once.
    pub async fn put_input_fingerprints(&self, fingerprints: &[InputFingerprint]) -> Result<(), StoreError> {
        let mut ordered: Vec<&InputFingerprint> = fingerprints.iter().collect();
        ordered.sort_by_key(|fingerprint| fingerprint.input_key);
        let query = sqlx::query(
            "INSERT INTO ingest_fingerprints (input_key, metadata_digest, content_digest, outcome)
             SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::text[])
             ON CONFLICT (input_key) DO UPDATE SET
                 metadata_digest = excluded.metadata_digest, content_digest = excluded.content_digest,
                 outcome = excluded.outcome",
        )
        .bind(ordered.iter().map(|row| row.input_key).collect::<Vec<_>>())
        .bind(ordered.iter().map(|row| row.file_metadata_digest).collect::<Vec<_>>())
        .bind(ordered.iter().map(|row| row.content_digest).collect::<Vec<_>>())
        .bind(ordered.iter().map(|row| replace_nul(&row.outcome)).collect::<Vec<_>>());
        self.execute("write input fingerprints", query).await
    }

    /// Records that chartsets are unchanged: stores the time of the check and the path of those that have the
    /// expected content, and returns these in no particular order. The others do not change.
    pub async fn record_unchanged_chartsets(
        &self,
        expected: &[ExpectedChartset],
        now_ms: i64,
    ) -> Result<Vec<UnchangedChartset>, StoreError> {
        self.run_once("record unchanged chartsets", |mut connection| async move {
            record_unchanged(&mut connection, expected, now_ms).await
        })
        .await
    }

    /// Returns the hashes of all charts in these chartsets, including removed ones.
    pub async fn chart_hashes_in(&self, chartsets: &[ChartsetId]) -> Result<HashSet<NoteHash>, StoreError> {
        let ids: Vec<String> = chartsets.iter().map(ToString::to_string).collect();
        let query = sqlx::query_as("SELECT chart_hash FROM chartset_charts WHERE chartset_id = ANY($1)");
        let parse = |(hash,)| Ok(NoteHash::from_bytes(hash));
        self.fetch_rows("read charts of chartsets", query.bind(ids), parse).await
    }
}

/// The statement of [`record_unchanged`]. `LATERAL` with `OFFSET 0` makes the planner look up each id in the
/// index: up to 40,000 chartsets it would read the whole table each time.
pub(crate) const RECORD_UNCHANGED: &str = "WITH unchanged AS MATERIALIZED (
     SELECT chartset.id, expected.fingerprint, chartset.removed_at_ms IS NOT NULL AS removed,
            -- An import has no paths.
            nullif(nullif(expected.path, ''), chartset.path) AS moved_to
     FROM unnest($1::text[], $2::bytea[], $3::text[]) AS expected (id, fingerprint, path),
     LATERAL (
         SELECT id, path, removed_at_ms FROM chartsets
         WHERE id = expected.id AND content_fingerprint = expected.fingerprint OFFSET 0
     ) AS chartset
 ), moved AS (
     UPDATE chartsets AS chartset SET path = unchanged.moved_to
     FROM unchanged WHERE chartset.id = unchanged.id AND unchanged.moved_to IS NOT NULL
 ), checked AS (
     INSERT INTO chartset_checks AS checks (chartset_id, checked_at_ms)
     SELECT DISTINCT id, $4::bigint FROM unchanged ORDER BY id
     ON CONFLICT (chartset_id) DO UPDATE
     SET checked_at_ms = greatest(checks.checked_at_ms, excluded.checked_at_ms)
 )
 SELECT id, fingerprint, removed FROM unchanged";

/// Stores the time of the check and the path of those chartsets that have the expected content, and returns
/// these.
///
/// The rows are written in the order of the ids, so that processes that check the same chartsets cannot
/// deadlock.
pub(crate) async fn record_unchanged(
    connection: &mut PgConnection,
    expected: &[ExpectedChartset],
    now_ms: i64,
) -> Result<Vec<UnchangedChartset>, sqlx::Error> {
    let rows: Vec<(String, [u8; 32], bool)> = sqlx::query_as(RECORD_UNCHANGED)
        .bind(expected.iter().map(|chartset| chartset.id.to_string()).collect::<Vec<_>>())
        .bind(expected.iter().map(|chartset| chartset.fingerprint).collect::<Vec<_>>())
        .bind(expected.iter().map(|chartset| replace_nul(&chartset.path)).collect::<Vec<_>>())
        .bind(now_ms)
        .fetch_all(connection)
        .await?;
    rows.into_iter()
        .map(|(id, fingerprint, removed)| {
            Ok(UnchangedChartset { id: parse_chartset_id(&id)?, fingerprint, removed })
        })
        .collect()
}
