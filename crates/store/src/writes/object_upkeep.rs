//! Keeps the object store in step with the rows: moves files, and deletes the objects that no row needs.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use chart_index_domain::NoteHash;
use chart_index_objects::{ListedObject, ObjectDigest, ObjectError, Objects};
use futures_util::TryStreamExt;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::connection::pooled_connection::PooledConnection;
use crate::connection::removal_lock;
use crate::error::object_error;
use crate::feed::export_snapshot::first_fitting;
use crate::schema::stored_files::{NewFiles, StoredFile};
use crate::{Store, StoreError};

const MOVE: &str = "move files";
const WITHDRAW: &str = "withdraw objects";
const COLLECT: &str = "collect objects";
/// Maximum number of files in a transaction that moves them.
const BATCH_FILES: i64 = 256;
/// Maximum size of files in a transaction that moves them to objects, unless a single file is larger.
const BATCH_BYTES: i64 = 4 * 1024 * 1024;
/// Maximum number of objects whose rows are read in a statement.
const LISTED_OBJECTS: usize = 1_000;
/// Maximum number of objects that are deleted while ingests wait.
const DELETED_OBJECTS: usize = 100;

/// The condition that an operator has removed the chart of `file`, or all chartsets that contain it: it must
/// not be downloadable without this index, which checks that for each request. These subqueries use indexes,
/// whatever the planner expects.
const IS_WITHDRAWN: &str = "((SELECT true FROM removals WHERE entity = file.hash) IS TRUE
     OR (SELECT bool_and(chartset.removed_at_ms IS NOT NULL)
         FROM chartset_charts AS member JOIN chartsets AS chartset ON chartset.id = member.chartset_id
         WHERE member.chart_hash = file.hash) IS TRUE)";

/// Where a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePlace {
    /// In the object store.
    Objects,
    /// In PostgreSQL.
    PostgreSql,
}

/// What [`Store::move_files_after`] has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedFiles {
    /// The chart to continue after.
    pub last: NoteHash,
    /// Number of files that were moved.
    pub moved: u64,
    /// The files whose objects are missing or damaged, with the reason. They stay where they are.
    pub lost: Vec<(NoteHash, String)>,
}

/// What [`Store::collect_objects`] has found and done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CollectedObjects {
    /// Number of objects in the store.
    pub listed: u64,
    /// Their size in bytes.
    pub listed_bytes: u64,
    /// Number of objects that were deleted.
    pub deleted: u64,
    /// Their size in bytes.
    pub deleted_bytes: u64,
}

/// A row that names an object.
#[derive(sqlx::FromRow)]
struct ObjectRow {
    hash: [u8; 32],
    object: [u8; 32],
    has_bytes: bool,
}

impl Store {
    /// Moves the next ROX files, in the order of the hashes; `None` after the last. Files that are there
    /// already are passed over, and so are those of removed charts, which stay in PostgreSQL.
    ///
    /// The rows say where each file is: a run may end at any time. Readers and ingests go on. Objects whose
    /// files are in PostgreSQL are not deleted: [`collect_objects`](Self::collect_objects) does.
    pub async fn move_files_after(
        &self,
        to: FilePlace,
        after: Option<NoteHash>,
    ) -> Result<Option<MovedFiles>, StoreError> {
        let objects = self.configured_objects(MOVE)?;
        match to {
            FilePlace::Objects => {
                let work = |connection| Self::move_to_objects(connection, objects, after);
                self.run_once(MOVE, work).await
            }
            FilePlace::PostgreSql => self.move_to_postgresql(after).await,
        }
    }

    async fn move_to_objects(
        mut connection: PooledConnection,
        objects: &Objects,
        after: Option<NoteHash>,
    ) -> Result<Option<MovedFiles>, sqlx::Error> {
        let mut transaction = connection.begin_with(removal_lock::BEGIN_INSERT).await?;
        let next = format!(
            "SELECT file.hash, octet_length(file.bytes)::bigint FROM rox_files AS file
             WHERE file.hash > $1 AND file.object IS NULL AND NOT {IS_WITHDRAWN} ORDER BY file.hash LIMIT $2"
        );
        // Safe, like the other statements here: they consist of constants.
        let next: Vec<([u8; 32], i64)> = sqlx::query_as(AssertSqlSafe(next))
            .bind(after.as_ref().map_or(&[][..], |hash| hash.as_bytes()))
            .bind(BATCH_FILES)
            .fetch_all(&mut *transaction)
            .await?;
        let next = first_fitting(&next, BATCH_BYTES, |(_, bytes)| *bytes);
        let hashes: Vec<[u8; 32]> = next.iter().map(|(hash, _)| *hash).collect();
        let Some(last) = hashes.last().copied().map(NoteHash::from_bytes) else { return Ok(None) };
        let files: Vec<([u8; 32], Vec<u8>)> =
            sqlx::query_as("SELECT hash, bytes FROM rox_files WHERE hash = ANY($1) AND object IS NULL")
                .bind(hashes)
                .fetch_all(&mut *transaction)
                .await?;
        let bytes = files.iter().map(|(_, bytes)| Some(&bytes[..])).collect();
        let new = NewFiles::store(Some(objects), bytes, |_| false).await?;
        let moved = sqlx::query(
            "UPDATE rox_files AS file SET object = given.object, bytes = NULL
             FROM unnest($1::bytea[], $2::bytea[]) AS given (hash, object)
             WHERE file.hash = given.hash AND file.object IS NULL",
        )
        .bind(files.iter().map(|(hash, _)| hash).collect::<Vec<_>>())
        .bind(new.objects)
        .execute(&mut *transaction)
        .await?
        .rows_affected();
        transaction.commit().await?;
        Ok(Some(MovedFiles { last, moved, lost: Vec::new() }))
    }

    async fn move_to_postgresql(&self, after: Option<NoteHash>) -> Result<Option<MovedFiles>, StoreError> {
        let query = sqlx::query_as(
            "SELECT hash, object, false AS has_bytes FROM rox_files
             WHERE hash > $1 AND bytes IS NULL ORDER BY hash LIMIT $2",
        );
        let query = query.bind(after.as_ref().map_or(&[][..], |hash| hash.as_bytes())).bind(BATCH_FILES);
        let rows: Vec<ObjectRow> = self.fetch_rows(MOVE, query, Ok).await?;
        let Some(last) = rows.last().map(|row| NoteHash::from_bytes(row.hash)) else { return Ok(None) };
        let (moved, errors) = self.copy_to_postgresql(MOVE, &rows, true).await?;
        let errors = errors.into_iter().map(|(hash, error)| (NoteHash::from_bytes(hash), error.to_string()));
        Ok(Some(MovedFiles { last, moved, lost: errors.collect() }))
    }

    /// Stores the bytes of objects in their rows, unless these have changed since. Returns the number of rows,
    /// and those whose objects are missing or damaged. It is a change of the chart, since cached redirects lead
    /// to these objects.
    async fn copy_to_postgresql(
        &self,
        operation: &'static str,
        rows: &[ObjectRow],
        forget_objects: bool,
    ) -> Result<(u64, Vec<([u8; 32], ObjectError)>), StoreError> {
        let files = rows.iter().map(|row| StoredFile::Object(row.object.into())).collect();
        let contents = self.contents(files).await.map_err(|error| StoreError::new(operation, error))?;
        let (mut hashes, mut objects, mut bytes, mut lost) = (vec![], vec![], vec![], vec![]);
        for (row, content) in rows.iter().zip(contents) {
            match content {
                Ok(content) => {
                    hashes.push(row.hash);
                    objects.push(row.object);
                    bytes.push(content);
                }
                Err(error) => lost.push((row.hash, error)),
            }
        }
        let written = self.run_once(operation, |mut connection| async move {
            sqlx::query(
                "WITH stored AS (
                     UPDATE rox_files AS file
                     SET bytes = given.bytes, object = CASE WHEN NOT $4 THEN file.object END
                     FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) AS given (hash, object, bytes)
                     WHERE file.hash = given.hash AND file.object = given.object AND file.bytes IS NULL
                     RETURNING file.hash
                 )
                 INSERT INTO pending_changes (entity) SELECT hash FROM stored",
            )
            .bind(hashes)
            .bind(objects)
            .bind(bytes)
            .bind(forget_objects)
            .execute(&mut *connection)
            .await
        });
        Ok((written.await?.rows_affected(), lost))
    }

    /// Moves the files of removed charts to PostgreSQL and deletes their objects, and returns their number:
    /// what an operator has removed must not be downloadable from a public bucket. A removal is in force
    /// before, and this may be repeated at any time: until its object is deleted, a row names it.
    pub async fn withdraw_objects(&self) -> Result<u64, StoreError> {
        let Some(objects) = self.objects() else { return Ok(0) };
        let (mut withdrawn, mut after) = (0, Vec::new());
        loop {
            let rows = self.withdrawn_rows(&after).await?;
            let Some(last) = rows.last() else { return Ok(withdrawn) };
            after = last.hash.to_vec();
            withdrawn += rows.len() as u64;
            let (mut rows, mut incomplete): (Vec<_>, Vec<_>) =
                rows.into_iter().partition(|row| row.has_bytes);
            let (_, unreadable) = self.copy_to_postgresql(WITHDRAW, &incomplete, false).await?;
            // An object that is missing may be back by now, and is then the only copy.
            let is_missing = |row: &ObjectRow, (hash, error): &([u8; 32], ObjectError)| {
                *hash == row.hash && matches!(error, ObjectError::Missing { .. })
            };
            incomplete.retain(|row| !unreadable.iter().any(|file| is_missing(row, file)));
            rows.append(&mut incomplete);
            let delete = |connection| Self::delete_withdrawn(connection, objects, &rows);
            self.run_once(WITHDRAW, delete).await?;
        }
    }

    async fn withdrawn_rows(&self, after: &[u8]) -> Result<Vec<ObjectRow>, StoreError> {
        // From the removals, which are few.
        let statement = format!(
            "SELECT file.hash, file.object, file.bytes IS NOT NULL AS has_bytes FROM (
                 SELECT entity FROM removals WHERE octet_length(entity) = 32
                 UNION
                 SELECT member.chart_hash FROM removals
                 JOIN chartset_charts AS member ON member.chartset_id = encode(entity, 'hex')
                 WHERE octet_length(entity) = 8
             ) AS removed (hash) JOIN rox_files AS file ON file.hash = removed.hash
             WHERE file.hash > $1 AND file.object IS NOT NULL AND {IS_WITHDRAWN} ORDER BY file.hash LIMIT $2"
        );
        let query = sqlx::query_as(AssertSqlSafe(statement)).bind(after).bind(BATCH_FILES);
        self.fetch_rows(WITHDRAW, query, Ok).await
    }

    async fn delete_withdrawn(
        mut connection: PooledConnection,
        objects: &Objects,
        rows: &[ObjectRow],
    ) -> Result<(), sqlx::Error> {
        let hashes: Vec<[u8; 32]> = rows.iter().map(|row| row.hash).collect();
        let digests: Vec<ObjectDigest> = rows.iter().map(|row| row.object.into()).collect();
        let mut transaction = connection.begin().await?;
        removal_lock::lock_out_ingests(&mut transaction).await?;
        let unneeded = unneeded(&mut transaction, &digests, &hashes).await?;
        objects.delete(&unneeded).await.map_err(object_error)?;
        sqlx::query("UPDATE rox_files SET object = NULL WHERE hash = ANY($1) AND bytes IS NOT NULL")
            .bind(hashes)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await
    }

    /// Deletes the objects that no row needs and that were written before the grace period, and withdraws those
    /// of removed charts.
    ///
    /// An ingest writes an object before the row that names it, in a transaction that an object is not deleted
    /// beside. The grace period is for what is not visible here: other databases that use the same store, and
    /// backups of this one.
    pub async fn collect_objects(&self, grace: Duration) -> Result<CollectedObjects, StoreError> {
        let objects = self.configured_objects(COLLECT)?;
        self.withdraw_objects().await?;
        let written_before = SystemTime::now().checked_sub(grace).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut collected = CollectedObjects::default();
        let (mut listed, mut candidates) = (objects.list(), Vec::new());
        let failed = |error| StoreError::new(COLLECT, object_error(error));
        while let Some(object) = listed.try_next().await.map_err(failed)? {
            collected.listed += 1;
            collected.listed_bytes += object.bytes;
            if object.modified_at <= written_before {
                candidates.push(object);
            }
            if candidates.len() >= LISTED_OBJECTS {
                self.collect(&mut candidates, &mut collected).await?;
            }
        }
        self.collect(&mut candidates, &mut collected).await?;
        Ok(collected)
    }

    async fn collect(
        &self,
        candidates: &mut Vec<ListedObject>,
        collected: &mut CollectedObjects,
    ) -> Result<(), StoreError> {
        let sizes: HashMap<ObjectDigest, u64> =
            candidates.drain(..).map(|object| (object.digest, object.bytes)).collect();
        let digests: &Vec<ObjectDigest> = &sizes.keys().copied().collect();
        let find =
            |mut connection: PooledConnection| async move { unneeded(&mut connection, digests, &[]).await };
        for digests in self.run_once(COLLECT, find).await?.chunks(DELETED_OBJECTS) {
            for digest in self.delete_unneeded_objects(COLLECT, digests).await? {
                collected.deleted += 1;
                collected.deleted_bytes += sizes.get(&digest).copied().unwrap_or_default();
            }
        }
        Ok(())
    }

    /// Deletes those of these objects that no row needs, and returns them. Ingests wait for it.
    pub(crate) async fn delete_unneeded_objects(
        &self,
        operation: &'static str,
        digests: &[ObjectDigest],
    ) -> Result<Vec<ObjectDigest>, StoreError> {
        if digests.is_empty() || self.objects().is_none() {
            return Ok(Vec::new());
        }
        self.run_once(operation, |mut connection| async move {
            let mut transaction = connection.begin().await?;
            removal_lock::lock_out_ingests(&mut transaction).await?;
            let deleted = delete_unneeded(&mut transaction, self.objects(), digests).await?;
            transaction.commit().await?;
            Ok(deleted)
        })
        .await
    }

    fn configured_objects(&self, operation: &'static str) -> Result<&Objects, StoreError> {
        self.objects().ok_or_else(|| StoreError::new(operation, object_error(ObjectError::NotConfigured)))
    }
}

/// Deletes those of these objects that no row needs, and returns them. The transaction excludes ingests.
pub(crate) async fn delete_unneeded(
    connection: &mut PgConnection,
    objects: Option<&Objects>,
    digests: &[ObjectDigest],
) -> Result<Vec<ObjectDigest>, sqlx::Error> {
    let Some(objects) = objects.filter(|_| !digests.is_empty()) else { return Ok(Vec::new()) };
    let unneeded = unneeded(connection, digests, &[]).await?;
    objects.delete(&unneeded).await.map_err(object_error)?;
    Ok(unneeded)
}

/// Returns those of these objects that no row needs, apart from the rows of some charts.
async fn unneeded(
    connection: &mut PgConnection,
    digests: &[ObjectDigest],
    except: &[[u8; 32]],
) -> Result<Vec<ObjectDigest>, sqlx::Error> {
    let digests: Vec<_> = digests.iter().map(ObjectDigest::as_bytes).collect();
    let rows: Vec<[u8; 32]> = sqlx::query_scalar(
        // Not a join: PostgreSQL would read all rows.
        "SELECT DISTINCT digest FROM unnest($1::bytea[]) AS digest
         WHERE (SELECT true FROM rox_files
                WHERE object = digest AND bytes IS NULL AND hash <> ALL($2::bytea[]) LIMIT 1) IS NULL",
    )
    .bind(digests)
    .bind(except)
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(ObjectDigest::from_bytes).collect())
}

/// Whether the files of this chart must stay in PostgreSQL, since it is removed.
pub(crate) async fn is_withdrawn(connection: &mut PgConnection, hash: NoteHash) -> Result<bool, sqlx::Error> {
    let statement = format!("SELECT {IS_WITHDRAWN} FROM (SELECT $1::bytea) AS file (hash)");
    sqlx::query_scalar(AssertSqlSafe(statement)).bind(hash.as_bytes()).fetch_one(connection).await
}
