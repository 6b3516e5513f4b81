//! Ingesting again: what is known of folders and archives that were read before.

use std::collections::HashSet;

use chart_index_domain::{ChartsetId, NoteHash};
use sqlx::PgConnection;

use crate::error::corrupt;
use crate::rows::parse_hash;
use crate::text_columns::storable;
use crate::{Store, StoreError};

/// What a folder or archive was when it was last read, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestFingerprint {
    /// Names the folder or archive.
    pub place: [u8; 32],
    /// A digest of names, sizes and times of its files; `None` where those cannot be relied on.
    pub metadata: Option<[u8; 32]>,
    /// A digest of the content of its files.
    pub content: [u8; 32],
    /// What came of it, in the words of the caller.
    pub outcome: String,
}

/// A chartset that an ingest expects to be as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedChartset {
    /// Its id.
    pub id: ChartsetId,
    /// The [`content_fingerprint`](crate::content_fingerprint) that it had.
    pub fingerprint: [u8; 32],
    /// Where it lies below the library root.
    pub path: String,
}

/// A chartset that was as it was expected to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedChartset {
    /// Its id.
    pub id: ChartsetId,
    /// The content that it has.
    pub fingerprint: [u8; 32],
    /// Whether it is removed from the index.
    pub removed: bool,
}

type FingerprintRow = (Vec<u8>, Option<Vec<u8>>, Vec<u8>, String);

impl Store {
    /// What is known of these folders and archives, in no particular order. Those that were never recorded are
    /// left out.
    pub async fn ingest_fingerprints(
        &self,
        places: &[[u8; 32]],
    ) -> Result<Vec<IngestFingerprint>, StoreError> {
        let places = &places.iter().map(|place| &place[..]).collect::<Vec<_>>();
        self.run_once("read ingest fingerprints", |mut lease| async move {
            let rows: Vec<FingerprintRow> = sqlx::query_as(
                "SELECT place, metadata, content, outcome FROM ingest_fingerprints WHERE place = ANY($1)",
            )
            .bind(places)
            .fetch_all(lease.connection())
            .await?;
            rows.into_iter().map(parse).collect()
        })
        .await
    }

    /// Records what became of folders and archives, each of which is named once.
    pub async fn put_ingest_fingerprints(
        &self,
        fingerprints: &[IngestFingerprint],
    ) -> Result<(), StoreError> {
        let mut ordered: Vec<&IngestFingerprint> = fingerprints.iter().collect();
        ordered.sort_by_key(|fingerprint| fingerprint.place);
        self.run_once("write ingest fingerprints", |mut lease| async move {
            sqlx::query(
                "INSERT INTO ingest_fingerprints (place, metadata, content, outcome)
                 SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::text[])
                 ON CONFLICT (place) DO UPDATE SET
                     metadata = excluded.metadata, content = excluded.content, outcome = excluded.outcome",
            )
            .bind(ordered.iter().map(|of| &of.place[..]).collect::<Vec<_>>())
            .bind(ordered.iter().map(|of| of.metadata.as_ref().map(|digest| &digest[..])).collect::<Vec<_>>())
            .bind(ordered.iter().map(|of| &of.content[..]).collect::<Vec<_>>())
            .bind(ordered.iter().map(|of| storable(&of.outcome)).collect::<Vec<_>>())
            .execute(lease.connection())
            .await?;
            Ok(())
        })
        .await
    }

    /// Moves the time of the last check of those of the chartsets that have the expected content, and gives them, in
    /// no particular order.
    pub async fn check_chartsets(
        &self,
        expected: &[ExpectedChartset],
        now_ms: i64,
    ) -> Result<Vec<CheckedChartset>, StoreError> {
        self.run_once("check chartsets", |mut lease| async move {
            check_each(lease.connection(), expected, now_ms).await
        })
        .await
    }

    /// The charts of these chartsets, removed or not.
    pub async fn chart_hashes_in(&self, chartsets: &[ChartsetId]) -> Result<HashSet<NoteHash>, StoreError> {
        let ids: Vec<String> = chartsets.iter().map(ToString::to_string).collect();
        self.run_once("read charts of chartsets", |mut lease| async move {
            let rows: Vec<Vec<u8>> =
                sqlx::query_scalar("SELECT chart_hash FROM chartset_charts WHERE chartset_id = ANY($1)")
                    .bind(ids)
                    .fetch_all(lease.connection())
                    .await?;
            rows.iter().map(|row| parse_hash(row)).collect()
        })
        .await
    }
}

/// The checks go into a table of their own, in the order of the ids, so that processes that check the same chartsets
/// never wait for each other in a circle.
pub(crate) async fn check_each(
    connection: &mut PgConnection,
    expected: &[ExpectedChartset],
    now_ms: i64,
) -> Result<Vec<CheckedChartset>, sqlx::Error> {
    let rows: Vec<(String, Vec<u8>, bool)> = sqlx::query_as(
        "WITH same AS MATERIALIZED (
             SELECT chartset.id, expected.fingerprint, chartset.removed_at_ms IS NOT NULL AS removed,
                    nullif(expected.path, chartset.path) AS moved_to
             FROM unnest($1::text[], $2::bytea[], $3::text[]) AS expected (id, fingerprint, path)
             JOIN chartsets AS chartset
               ON chartset.id = expected.id AND chartset.content_fingerprint = expected.fingerprint
         ), moved AS (
             UPDATE chartsets AS chartset SET path = same.moved_to
             FROM same WHERE chartset.id = same.id AND same.moved_to IS NOT NULL
         ), checked AS (
             INSERT INTO chartset_checks AS checks (chartset_id, checked_at_ms)
             SELECT DISTINCT id, $4::bigint FROM same ORDER BY id
             ON CONFLICT (chartset_id) DO UPDATE
             SET checked_at_ms = greatest(checks.checked_at_ms, excluded.checked_at_ms)
         )
         SELECT id, fingerprint, removed FROM same",
    )
    .bind(expected.iter().map(|chartset| chartset.id.to_string()).collect::<Vec<_>>())
    .bind(expected.iter().map(|chartset| &chartset.fingerprint[..]).collect::<Vec<_>>())
    .bind(expected.iter().map(|chartset| storable(&chartset.path)).collect::<Vec<_>>())
    .bind(now_ms)
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|(id, fingerprint, removed)| {
            let fingerprint = parse_digest(&fingerprint)?;
            Ok(CheckedChartset { id: id.parse().map_err(corrupt)?, fingerprint, removed })
        })
        .collect()
}

fn parse((place, metadata, content, outcome): FingerprintRow) -> Result<IngestFingerprint, sqlx::Error> {
    let metadata = metadata.as_deref().map(parse_digest).transpose()?;
    let (place, content) = (parse_digest(&place)?, parse_digest(&content)?);
    Ok(IngestFingerprint { place, metadata, content, outcome })
}

fn parse_digest(bytes: &[u8]) -> Result<[u8; 32], sqlx::Error> {
    bytes.try_into().map_err(corrupt)
}
