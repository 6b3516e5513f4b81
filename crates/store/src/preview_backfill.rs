//! Reads and writes the previews of stored charts, for `chart-indexer backfill` and `verify`.

use chart_index_domain::{ChartPreview, NoteHash};
use sqlx::Connection;

use crate::column_values::parse_hash;
use crate::error::corrupt;
use crate::{Store, StoreError, removal_lock};

/// Whether a stored chart has its preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviewState {
    /// The note hash of the chart.
    pub hash: NoteHash,
    /// The size of its ROX file.
    pub rox_bytes: u64,
    /// Whether the density curve and the preview are stored.
    pub has_preview: bool,
}

impl Store {
    /// Returns the states of the next stored charts in the order of their hashes, including removed charts and
    /// those in no chartset. Empty after the last.
    pub async fn preview_states_after(
        &self,
        after: Option<NoteHash>,
        limit: u32,
    ) -> Result<Vec<PreviewState>, StoreError> {
        self.run_once("read preview states", |mut connection| async move {
            let rows: Vec<(Vec<u8>, i64, bool)> = sqlx::query_as(
                // Not a join: PostgreSQL would merge both tables, and read all previews below the page.
                "SELECT chart.hash, chart.rox_bytes, chart.density_curve IS NOT NULL AND (
                            SELECT preview.hash FROM chart_previews AS preview WHERE preview.hash = chart.hash
                        ) IS NOT NULL
                 FROM charts AS chart WHERE chart.hash > $1 ORDER BY chart.hash LIMIT $2",
            )
            // The empty value sorts before every hash.
            .bind(after.as_ref().map_or(&[][..], |hash| hash.as_bytes()))
            .bind(i64::from(limit))
            .fetch_all(&mut *connection)
            .await?;
            rows.into_iter()
                .map(|(hash, rox_bytes, has_preview)| {
                    let rox_bytes = u64::try_from(rox_bytes).map_err(corrupt)?;
                    Ok(PreviewState { hash: parse_hash(&hash)?, rox_bytes, has_preview })
                })
                .collect()
        })
        .await
    }

    /// Returns the ROX files of these charts, known or not, in no particular order. Charts without one are left
    /// out.
    pub async fn rox_files(&self, charts: &[NoteHash]) -> Result<Vec<(NoteHash, Vec<u8>)>, StoreError> {
        let hashes = &hash_bytes(charts.iter());
        self.run_once("read ROX files", |mut connection| async move {
            let rows: Vec<(Vec<u8>, Vec<u8>)> =
                sqlx::query_as("SELECT hash, bytes FROM rox_files WHERE hash = ANY($1)")
                    .bind(hashes)
                    .fetch_all(&mut *connection)
                    .await?;
            rows.into_iter().map(|(hash, bytes)| Ok((parse_hash(&hash)?, bytes))).collect()
        })
        .await
    }

    /// Stores the previews and density curves of stored charts, and records the charts that had none or a
    /// different one as changed. Returns these.
    pub async fn put_previews(
        &self,
        previews: &[(NoteHash, ChartPreview)],
    ) -> Result<Vec<NoteHash>, StoreError> {
        let mut previews: Vec<&(NoteHash, ChartPreview)> = previews.iter().collect();
        previews.sort_by_key(|(hash, _)| *hash);
        self.run_once("write previews", |mut connection| async move {
            // A chart that was erased meanwhile gets none.
            let mut transaction = connection.begin_with(removal_lock::BEGIN_INSERT).await?;
            let changed: Vec<Vec<u8>> = sqlx::query_scalar(
                "WITH given AS MATERIALIZED (
                     SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) AS given (hash, curve, json)
                 ), updated AS (
                     UPDATE charts AS chart SET density_curve = given.curve FROM given
                     WHERE chart.hash = given.hash AND chart.density_curve IS DISTINCT FROM given.curve
                     RETURNING chart.hash
                 ), written AS (
                     INSERT INTO chart_previews AS preview (hash, json)
                     SELECT given.hash, given.json FROM given JOIN charts ON charts.hash = given.hash
                     ON CONFLICT (hash) DO UPDATE SET json = excluded.json WHERE preview.json <> excluded.json
                     RETURNING hash
                 ), changed AS (
                     SELECT hash FROM updated UNION SELECT hash FROM written
                 ), recorded AS (
                     INSERT INTO pending_changes (entity) SELECT hash FROM changed
                 )
                 SELECT hash FROM changed",
            )
            .bind(hash_bytes(previews.iter().map(|(hash, _)| hash)))
            .bind(previews.iter().map(|(_, preview)| &preview.curve.as_bytes()[..]).collect::<Vec<_>>())
            .bind(previews.iter().map(|(_, preview)| &preview.json[..]).collect::<Vec<_>>())
            .fetch_all(&mut *transaction)
            .await?;
            transaction.commit().await?;
            changed.iter().map(|hash| parse_hash(hash)).collect()
        })
        .await
    }

    /// Counts the previews without a chart.
    pub async fn orphaned_previews(&self) -> Result<u64, StoreError> {
        self.run_once("count orphaned previews", |mut connection| async move {
            let count: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM chart_previews AS preview
                 WHERE NOT EXISTS (SELECT FROM charts AS chart WHERE chart.hash = preview.hash)",
            )
            .fetch_one(&mut *connection)
            .await?;
            Ok(count.unsigned_abs())
        })
        .await
    }
}

fn hash_bytes<'a>(hashes: impl Iterator<Item = &'a NoteHash>) -> Vec<&'a [u8]> {
    hashes.map(|hash| &hash.as_bytes()[..]).collect()
}
