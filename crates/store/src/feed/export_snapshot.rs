//! Reads the catalogue for an export, in one snapshot.

use std::collections::HashMap;
use std::time::Duration;

use chart_index_domain::{ChartsetId, Lineage, NoteHash};
use sqlx::PgConnection;

use crate::feed::change_feed;
use crate::reads::chartset_records::{CheckedRecord, read_records};
use crate::schema::column_values::parse_chartset_id;
use crate::schema::stored_files::{RoxFileRow, StoredFile};
use crate::time_limit::with_time_limit;
use crate::{Store, StoreError};

const OPERATION: &str = "read the catalogue for an export";
/// Timeout of each read. The first one counts all charts.
const STATEMENT_LIMIT: Duration = Duration::from_mins(10);
/// Maximum number of chartsets in a page.
const PAGE_CHARTSETS: i64 = 500;
/// Maximum number of their charts, unless a single chartset has more. It limits the memory.
const PAGE_CHARTS: i64 = 2_000;
/// Maximum number of ROX files in a page.
const PAGE_FILES: i64 = 500;
/// Maximum size of these files, unless a single file is larger.
const PAGE_BYTES: i64 = 4 * 1024 * 1024;

/// The ROX file of a chart; `None` if it is lost or damaged.
pub type ExportedRox = (NoteHash, Option<Vec<u8>>);

/// A snapshot of the catalogue: all reads see the same state. It has its own connection, whose transaction ends
/// when the snapshot is dropped.
#[derive(Debug)]
pub struct ExportSnapshot {
    connection: PgConnection,
    size: SnapshotSize,
    /// For files that are objects.
    store: Store,
}

/// The size of a snapshot, and its position in the change feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotSize {
    /// The database.
    pub lineage: Lineage,
    /// The last sequence of the change feed.
    pub sequence: u64,
    /// Number of shown chartsets.
    pub chartsets: u64,
    /// Number of known charts.
    pub charts: u64,
}

impl Store {
    /// Takes a snapshot of the catalogue.
    pub async fn export_snapshot(&self) -> Result<ExportSnapshot, StoreError> {
        self.try_export_snapshot().await.map_err(|error| StoreError::new(OPERATION, error))
    }

    async fn try_export_snapshot(&self) -> Result<ExportSnapshot, sqlx::Error> {
        // The transaction is idle while a page is written to a slow disk.
        let options = [("idle_in_transaction_session_timeout", "0"), ("jit", "off")];
        let options = self.unlimited_options().clone().options(options);
        let mut connection = self.connect(&options).await?;
        let take = async {
            sqlx::raw_sql(crate::connection::pooled_connection::BEGIN_SNAPSHOT)
                .execute(&mut connection)
                .await?;
            sqlx::query_as(
                "SELECT (SELECT lineage FROM server_state), (SELECT last_sequence FROM change_feed),
                        (SELECT count(*) FROM chartsets WHERE shown), (SELECT count(*) FROM known_charts)",
            )
            .fetch_one(&mut connection)
            .await
        };
        let (lineage, sequence, chartsets, charts): (i64, i64, i64, i64) =
            with_time_limit(STATEMENT_LIMIT, take).await?;
        let [sequence, chartsets, charts] = [sequence, chartsets, charts].map(i64::unsigned_abs);
        let size = SnapshotSize { lineage: change_feed::lineage(lineage), sequence, chartsets, charts };
        Ok(ExportSnapshot { connection, size, store: self.clone() })
    }
}

impl ExportSnapshot {
    /// The size of the snapshot.
    #[must_use]
    pub const fn size(&self) -> SnapshotSize {
        self.size
    }

    /// Returns the next shown chartsets in the order of their ids. Empty after the last.
    pub async fn records_after(
        &mut self,
        after: Option<ChartsetId>,
    ) -> Result<Vec<CheckedRecord>, StoreError> {
        let connection = &mut self.connection;
        let read = async {
            let ids: Vec<(String, i32)> = sqlx::query_as(
                "SELECT id, chart_count FROM chartsets WHERE id > $1 AND shown ORDER BY id LIMIT $2",
            )
            // The empty text sorts before every id.
            .bind(after.map(|id| id.to_string()).unwrap_or_default())
            .bind(PAGE_CHARTSETS)
            .fetch_all(&mut *connection)
            .await?;
            let ids = first_fitting(&ids, PAGE_CHARTS, |(_, charts)| i64::from(*charts));
            let ids: Vec<_> = ids.iter().map(|(id, _)| parse_chartset_id(id)).collect::<Result<_, _>>()?;
            read_records(connection, &ids).await
        };
        with_time_limit(STATEMENT_LIMIT, read).await.map_err(|error| StoreError::new(OPERATION, error))
    }

    /// Returns the ROX files of the next known charts in the order of their hashes; `None` in place of one that
    /// is lost or damaged. Empty after the last.
    pub async fn rox_files_after(&mut self, after: Option<NoteHash>) -> Result<Vec<ExportedRox>, StoreError> {
        let connection = &mut self.connection;
        let read = async {
            let charts: Vec<([u8; 32], i64)> = sqlx::query_as(
                "SELECT hash, rox_bytes FROM known_charts WHERE hash > $1 ORDER BY hash LIMIT $2",
            )
            // The empty value sorts before every hash.
            .bind(after.as_ref().map_or(&[][..], |hash| hash.as_bytes()))
            .bind(PAGE_FILES)
            .fetch_all(&mut *connection)
            .await?;
            let charts = first_fitting(&charts, PAGE_BYTES, |(_, rox_bytes)| *rox_bytes);
            let hashes: Vec<_> = charts.iter().map(|(hash, _)| NoteHash::from_bytes(*hash)).collect();
            let files: Vec<RoxFileRow> =
                sqlx::query_as("SELECT hash, bytes, object FROM rox_files WHERE hash = ANY($1)")
                    .bind(hashes.iter().map(NoteHash::as_bytes).collect::<Vec<_>>())
                    .fetch_all(&mut *connection)
                    .await?;
            let files = files.into_iter().map(RoxFileRow::parse).collect::<Result<Vec<_>, _>>()?;
            Ok((hashes, files))
        };
        let files = with_time_limit(STATEMENT_LIMIT, read).await;
        let (hashes, files) = files.map_err(|error| StoreError::new(OPERATION, error))?;
        let mut contents = read_files(&self.store, files).await?;
        Ok(hashes.into_iter().map(|hash| (hash, contents.remove(&hash))).collect())
    }
}

/// Reads the files that are objects, and leaves out those that are lost or damaged. An object that was deleted
/// since the snapshot is that of a file which was moved to PostgreSQL, or was replaced: then this export is
/// older than the replacement, and is not used.
async fn read_files(
    store: &Store,
    files: Vec<(NoteHash, StoredFile)>,
) -> Result<HashMap<NoteHash, Vec<u8>>, StoreError> {
    let failed = |error| StoreError::new(OPERATION, error);
    let (hashes, files): (Vec<_>, Vec<_>) = files.into_iter().unzip();
    let contents = store.contents(files).await.map_err(failed)?;
    let mut read = HashMap::with_capacity(contents.len());
    for (hash, content) in hashes.into_iter().zip(contents) {
        let content = match content {
            Ok(content) => Some(content),
            // The error is that of a missing or damaged object.
            Err(_) => store.rox_files(&[hash]).await?.pop().map(|(_, content)| content),
        };
        read.extend(content.map(|content| (hash, content)));
    }
    Ok(read)
}

/// The first rows with a total size of at most `limit`, and at least one.
pub(crate) fn first_fitting<T>(rows: &[T], limit: i64, size: impl Fn(&T) -> i64) -> &[T] {
    let mut total = 0_i64;
    let fits = |row: &&T| {
        total = total.saturating_add(size(row));
        total <= limit
    };
    let count = rows.iter().take_while(fits).count().max(1).min(rows.len());
    &rows[..count]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_bounded_and_never_empty() {
        let page = |sizes: &[i64]| first_fitting(sizes, 10, |size| *size).len();
        assert_eq!([page(&[]), page(&[11, 1]), page(&[5, 5, 1]), page(&[1, 1])], [0, 1, 2, 2]);
    }
}
