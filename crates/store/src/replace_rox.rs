//! Replaces the ROX file of a stored chart, for administrators (decision 0075) and mirrors.

use chart_index_domain::{ChartDraft, Entity};
use sqlx::{AssertSqlSafe, Connection};

use crate::pooled_connection::PooledConnection;
use crate::put_chartset_sql::new_chart_columns;
use crate::removal::{derive_chartsets, lock_chartsets};
use crate::statement_columns::{Columns, Parameters};
use crate::{Store, StoreError, removal_lock};

impl Store {
    /// Replaces the ROX file, the preview and the numbers of a chart with those of another file with the same
    /// note hash, and derives the chartsets that contain it again. Returns whether the chart is stored.
    ///
    /// The change is a removal of the earlier file: cached responses with it are not served. The chartsets get
    /// the time of the change, if one is given: those of a mirror have the times of the original.
    ///
    /// # Errors
    /// The store failed, or the draft has no ROX file.
    pub async fn replace_rox(
        &self,
        draft: &ChartDraft,
        updated_at_ms: Option<i64>,
    ) -> Result<bool, StoreError> {
        self.run_once("replace ROX file", |connection| {
            Self::try_replace_rox(connection, draft, updated_at_ms)
        })
        .await
    }

    async fn try_replace_rox(
        mut connection: PooledConnection,
        draft: &ChartDraft,
        updated_at_ms: Option<i64>,
    ) -> Result<bool, sqlx::Error> {
        let mut transaction = connection.begin().await?;
        removal_lock::lock_out_ingests(&mut transaction).await?;
        let sets = lock_chartsets(&mut transaction, [&Entity::Chart(draft.hash)]).await?;
        let mut parameters = Parameters::default();
        let rox_files: Vec<&[u8]> = draft.rox.as_deref().into_iter().collect();
        let hash = Columns::single("hash", parameters.bind(vec![&draft.hash.as_bytes()[..]]));
        let chart = new_chart_columns(&mut parameters, &[draft], &rox_files);
        let rox = parameters.bind(draft.rox.as_deref());
        let digest = draft.rox.as_deref().map(|rox| *blake3::hash(rox).as_bytes());
        let digest = parameters.bind(digest);
        let preview = parameters.bind(draft.preview.as_ref().map(|preview| &preview.json[..]));
        let statement = format!(
            "WITH replaced AS (
                 UPDATE charts SET {assignments} FROM {given} WHERE charts.hash = given.hash
                 RETURNING charts.hash
             ), file AS (
                 UPDATE rox_files SET bytes = {rox}, replacement_digest = {digest}
                 FROM replaced WHERE rox_files.hash = replaced.hash
             ), preview AS (
                 INSERT INTO chart_previews (hash, json) SELECT hash, {preview} FROM replaced
                 ON CONFLICT (hash) DO UPDATE SET json = excluded.json
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
        Ok(replaced > 0)
    }
}
