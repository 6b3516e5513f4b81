//! Replaces the ROX file of a stored chart, for administrators and mirrors.
//!
//! The first file of a note hash decides the ROX file, preview and BPM of the chart for good, even if it was
//! made to carry false timing or an insult. The URL of a replacement stays, since clients build it from the
//! hash, and its `ETag` is a digest of the content: the same tag for other bytes would break what a strong
//! validator promises (RFC 9110, section 8.8.1). Replicas, exports and mirrors treat a replacement as a removal
//! of the earlier bytes.

use chart_index_domain::{ChartDraft, Entity};
use chart_index_objects::{ObjectDigest, Objects};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::connection::pooled_connection::PooledConnection;
use crate::connection::removal_lock;
use crate::schema::chart_row::new_chart_columns;
use crate::schema::statement_columns::{Columns, Parameters};
use crate::schema::stored_files::NewFiles;
use crate::writes::object_upkeep::is_withdrawn;
use crate::writes::removal::{derive_chartsets, lock_chartsets};
use crate::{Store, StoreError};

impl Store {
    /// Replaces the ROX file and the numbers of a chart with those of another file with the same
    /// note hash, and derives the chartsets that contain it again. Returns whether the chart is stored.
    ///
    /// The change is a removal of the earlier file: cached responses with it are not served. The chartsets get
    /// the time of the change, if one is given: those of a mirror have the times of the original.
    ///
    /// # Errors
    /// The store failed, or the draft has no ROX file. If only the object of the earlier file could not be
    /// deleted, the replacement is in force, and [`collect_objects`](Self::collect_objects) deletes it.
    pub async fn replace_rox(
        &self,
        draft: &ChartDraft,
        updated_at_ms: Option<i64>,
    ) -> Result<bool, StoreError> {
        let replace = |connection| Self::try_replace_rox(connection, self.objects(), draft, updated_at_ms);
        let (is_stored, earlier) = self.run_once("replace ROX file", replace).await?;
        let operation = "delete the object of the replaced ROX file";
        self.delete_unneeded_objects(operation, earlier.as_slice()).await?;
        Ok(is_stored)
    }

    /// Returns whether the chart is stored, and the object that its row named.
    async fn try_replace_rox(
        mut connection: PooledConnection,
        objects: Option<&Objects>,
        draft: &ChartDraft,
        updated_at_ms: Option<i64>,
    ) -> Result<(bool, Option<ObjectDigest>), sqlx::Error> {
        let mut transaction = connection.begin().await?;
        removal_lock::lock_out_ingests(&mut transaction).await?;
        let sets = lock_chartsets(&mut transaction, [&Entity::Chart(draft.hash)]).await?;
        let (mut rox, earlier) = store_files(&mut transaction, objects, draft).await?;
        let mut parameters = Parameters::default();
        let rox_files: Vec<&[u8]> = draft.rox.as_deref().into_iter().collect();
        let hash = Columns::single("hash", parameters.bind(vec![draft.hash.as_bytes()]));
        let chart = new_chart_columns(&mut parameters, &[draft], &rox_files);
        let bytes = parameters.bind(rox.bytes.pop().flatten());
        let object = parameters.bind(rox.objects.pop().flatten());
        let digest = draft.rox.as_deref().map(|rox| *blake3::hash(rox).as_bytes());
        let digest = parameters.bind(digest);
        let statement = format!(
            "WITH replaced AS (
                 UPDATE charts SET {assignments} FROM {given} WHERE charts.hash = given.hash
                 RETURNING charts.hash
             ), file AS (
                 UPDATE rox_files SET bytes = {bytes}, object = {object}, replacement_digest = {digest}
                 FROM replaced WHERE rox_files.hash = replaced.hash
             ), changed AS (
                 INSERT INTO pending_changes (entity, is_removal)
                 SELECT hash, true FROM replaced
                 UNION ALL
                 SELECT decode(chartset_id, 'hex'), true FROM chartset_charts JOIN replaced ON chart_hash = hash
             )
             SELECT count(*) FROM replaced",
            assignments = chart.assignments(),
            given = Columns::concat([&hash, &chart]).given(),
        );
        // Safe: it consists of constants and placeholders.
        let replaced: i64 = sqlx::query_scalar_with(AssertSqlSafe(statement), parameters.into_arguments()?)
            .fetch_one(&mut *transaction)
            .await?;
        derive_chartsets(&mut transaction, &sets, updated_at_ms).await?;
        transaction.commit().await?;
        Ok((replaced > 0, earlier))
    }
}

/// Stores the ROX file as an object, if there is an object store and the chart is not removed. Returns the
/// object of the earlier one as well.
async fn store_files<'a>(
    connection: &mut PgConnection,
    objects: Option<&Objects>,
    draft: &'a ChartDraft,
) -> Result<(NewFiles<'a>, Option<ObjectDigest>), sqlx::Error> {
    let (mut stays, mut earlier) = (false, None);
    if objects.is_some() {
        stays = is_withdrawn(connection, draft.hash).await?;
        let object: Option<Option<[u8; 32]>> =
            sqlx::query_scalar("SELECT object FROM rox_files WHERE hash = $1")
                .bind(draft.hash.as_bytes())
                .fetch_optional(connection)
                .await?;
        earlier = object.flatten().map(ObjectDigest::from_bytes);
    }
    let rox = NewFiles::store(objects, vec![draft.rox.as_deref()], |_| stays).await?;
    Ok((rox, earlier))
}
