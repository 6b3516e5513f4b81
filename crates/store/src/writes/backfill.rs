//! Reads and writes what is computed of stored charts from their ROX files, for `chart-indexer backfill` and
//! `verify`.

use chart_index_domain::{ANALYSIS_VERSION, ChartDraft, NoteHash};
use chart_index_objects::ObjectError;
use sqlx::{AssertSqlSafe, Connection};

use crate::connection::removal_lock;
use crate::schema::chart_row::{ChartRow, backfilled_columns, chart_columns, curve_column};
use crate::schema::statement_columns::{Columns, Parameters};
use crate::schema::stored_files::RoxFileRow;
use crate::{Store, StoreError};

/// Whether a stored chart has all that is computed from its ROX file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackfillState {
    /// The note hash of the chart.
    pub hash: NoteHash,
    /// The size of its ROX file.
    pub rox_bytes: u64,
    /// Whether all values are stored, of this version.
    pub is_complete: bool,
}

/// The statement that updates charts where they differ, and returns the hashes of these charts. All parts see
/// the rows before the update.
fn put_computed_statement(parameters: &mut Parameters, charts: &[&ChartDraft]) -> String {
    let hashes: Vec<_> = charts.iter().map(|chart| chart.hash.as_bytes()).collect();
    let hash = Columns::single("hash", parameters.bind(hashes));
    let recorded = backfilled_columns(parameters, charts);
    let computed = Columns::concat([&curve_column(parameters, charts), &recorded]);
    format!(
        "WITH recorded AS MATERIALIZED (
             SELECT given.hash FROM {given_recorded} JOIN charts AS chart ON chart.hash = given.hash
             WHERE {recorded_differ}
         ), updated AS (
             UPDATE charts AS chart SET {assignments} FROM {given_computed}
             WHERE chart.hash = given.hash AND {computed_differ} RETURNING chart.hash
         ), pending AS (
             INSERT INTO pending_changes (entity)
             SELECT hash FROM updated
             UNION ALL
             SELECT DISTINCT decode(member.chartset_id, 'hex')
             FROM recorded JOIN chartset_charts AS member ON member.chart_hash = recorded.hash
         )
         SELECT hash FROM updated",
        given_recorded = Columns::concat([&hash, &recorded]).given(),
        recorded_differ = recorded.differ_from("chart"),
        assignments = computed.assignments(),
        given_computed = Columns::concat([&hash, &computed]).given(),
        computed_differ = computed.differ_from("chart"),
    )
}

impl Store {
    /// Returns the states of the next stored charts in the order of their hashes, including removed charts and
    /// those in no chartset. Empty after the last.
    pub async fn backfill_states_after(
        &self,
        after: Option<NoteHash>,
        limit: u32,
    ) -> Result<Vec<BackfillState>, StoreError> {
        let query = sqlx::query_as(concat!(
            "SELECT ",
            chart_columns!(),
            " FROM charts AS chart WHERE chart.hash > $1 ORDER BY chart.hash LIMIT $2"
        ));
        // The empty value sorts before every hash.
        let query = query.bind(after.as_ref().map_or(&[][..], |hash| hash.as_bytes())).bind(i64::from(limit));
        let state = |chart: ChartRow| {
            let (hash, rox_bytes) = (chart.hash(), chart.values()?.rox_bytes);
            Ok(BackfillState { hash, rox_bytes, is_complete: chart.is_complete() })
        };
        self.fetch_rows("read backfill states", query, state).await
    }

    /// Returns the ROX files of these charts, known or not, in no particular order. Charts without one are left
    /// out, and so are those whose objects are missing or damaged, which is logged.
    pub async fn rox_files(&self, charts: &[NoteHash]) -> Result<Vec<(NoteHash, Vec<u8>)>, StoreError> {
        const OPERATION: &str = "read ROX files";
        let query = sqlx::query_as("SELECT hash, bytes, object FROM rox_files WHERE hash = ANY($1)")
            .bind(charts.iter().map(NoteHash::as_bytes).collect::<Vec<_>>());
        let rows: Vec<_> = self.fetch_rows(OPERATION, query, RoxFileRow::parse).await?;
        let (hashes, files): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let contents = self.contents(files).await.map_err(|error| StoreError::new(OPERATION, error))?;
        let present = |(hash, content): (NoteHash, Result<_, ObjectError>)| match content {
            Ok(content) => Some((hash, content)),
            Err(error) => {
                tracing::error!(%hash, %error, "a ROX file is lost");
                None
            }
        };
        Ok(hashes.into_iter().zip(contents).filter_map(present).collect())
    }

    /// Stores what was computed of stored charts, and records the charts that had none of it or something else
    /// as changed, together with the chartsets whose records contain what has changed. Returns these charts.
    pub async fn put_computed(&self, charts: &[ChartDraft]) -> Result<Vec<NoteHash>, StoreError> {
        let mut charts: Vec<&ChartDraft> = charts.iter().collect();
        charts.sort_by_key(|chart| chart.hash);
        let charts = &charts;
        self.run_once("write computed values of charts", |mut connection| async move {
            let mut transaction = connection.begin().await?;
            // A chart that was erased meanwhile gets none. An ingest writes what lists filter by as well, from
            // what it sees.
            removal_lock::lock_out_ingests(&mut transaction).await?;
            let mut parameters = Parameters::default();
            let statement = put_computed_statement(&mut parameters, charts);
            // Safe: it consists of constants and placeholders.
            let changed: Vec<[u8; 32]> =
                sqlx::query_scalar_with(AssertSqlSafe(statement), parameters.into_arguments()?)
                    .fetch_all(&mut *transaction)
                    .await?;
            transaction.commit().await?;
            Ok(changed.into_iter().map(NoteHash::from_bytes).collect())
        })
        .await
    }

    /// Makes lists filter and sort by the ratings and patterns of this version, if they still use those of
    /// another one. All chartsets are then recorded as changed, since search indexes have to read them again.
    /// Call it when no chart has the other version any more.
    pub async fn list_computed(&self) -> Result<(), StoreError> {
        self.run_once("switch lists to computed ratings", |mut connection| async move {
            let mut transaction = connection.begin().await?;
            // An ingest that has seen the earlier version would leave its charts without a rating.
            removal_lock::lock_out_ingests(&mut transaction).await?;
            let switched = sqlx::query("UPDATE chart_analysis SET listed_version = $1 WHERE listed_version <> $1")
                .bind(i16::from(ANALYSIS_VERSION))
                .execute(&mut *transaction)
                .await?;
            if switched.rows_affected() > 0 {
                sqlx::query("SELECT write_shown(id) FROM chartsets WHERE shown")
                    .execute(&mut *transaction)
                    .await?;
                sqlx::query(
                    "INSERT INTO pending_changes (entity) SELECT decode(id, 'hex') FROM chartsets WHERE shown",
                )
                .execute(&mut *transaction)
                .await?;
            }
            transaction.commit().await
        })
        .await
    }
}
