//! The list of removals: what operators have removed, whether or not it is stored.

use std::collections::HashMap;
use std::error::Error;

use chart_index_domain::{Entity, Lineage, ReadError};
use chart_index_objects::{ObjectDigest, Objects};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::connection::pooled_connection::PooledConnection;
use crate::connection::removal_lock;
use crate::feed::change_feed;
use crate::schema::column_values::{entity_bytes, parse_entity};
use crate::schema::derived_columns::DerivedColumns;
use crate::schema::sql_text::replace_nul;
use crate::schema::statement_columns::{Columns, Parameters};
use crate::writes::derive::{ChartsetRow, derive_columns};
use crate::writes::object_upkeep::delete_unneeded;
use crate::{Store, StoreError};

/// Maximum number of mismatches that are returned.
const MAX_MISMATCHES: i64 = 1_000;

/// An entry of the list of removals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// The chart or chartset. It need not be stored.
    pub entity: Entity,
    /// When it was removed, in Unix epoch milliseconds.
    pub removed_at_ms: i64,
    /// What the operator has noted.
    pub reason: Option<String>,
    /// Whether its data is deleted, and not stored again.
    pub erased: bool,
}

/// The result of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalOutcome {
    /// It was removed.
    Removed,
    /// It is not stored. If it is ingested, it is removed from the beginning.
    NotStored,
    /// It was in the list before, whose entry stays as it is.
    AlreadyRemoved,
}

impl Store {
    /// Adds entries to the list of removals, in one transaction, and returns their outcomes in the same order.
    ///
    /// A removed chart is unknown and leaves every chartset, even if it is ingested again; a chartset without
    /// other charts is no longer shown. A removed chartset is not shown; its charts stay known if other
    /// chartsets contain them.
    ///
    /// What is erased is deleted: the rows and the ROX file of a chart, the rows of a chartset and of the
    /// charts that no other one contains. An entry that is in the list already may be erased later.
    pub async fn remove(&self, removals: &[Removal], now_ms: i64) -> Result<Vec<RemovalOutcome>, StoreError> {
        let add = |connection| Self::add_removals(connection, self.objects(), removals, now_ms);
        let stored = self.run_once("remove", add).await?;
        let outcome = |removal: &Removal| match stored.get(&removal.entity) {
            None => RemovalOutcome::AlreadyRemoved,
            Some(false) => RemovalOutcome::NotStored,
            Some(true) => RemovalOutcome::Removed,
        };
        Ok(removals.iter().map(outcome).collect())
    }

    /// Deletes an entry from the list of removals. Returns whether it was in it. A mirror then stores again
    /// what was erased.
    pub async fn restore(&self, entity: Entity, now_ms: i64) -> Result<bool, StoreError> {
        self.run_once("restore", |connection| Self::delete_removal(connection, entity, now_ms)).await
    }

    /// Deletes what is stored of these charts and chartsets, as an [erasure](Removal::erased) does, without an
    /// entry in the list of removals: a later write may store them again. Chartsets that contained these charts
    /// keep the time of their last change.
    ///
    /// If it `is_removal`, an operator has removed them from the index that this one mirrors: cached responses
    /// and exports with them are not served. Objects that cannot be deleted are left to
    /// [`collect_objects`](Self::collect_objects).
    pub async fn delete(&self, entities: &[Entity], is_removal: bool) -> Result<(), StoreError> {
        const OPERATION: &str = "delete";
        let delete = |connection| Self::delete_entities(connection, entities, is_removal);
        let objects = self.run_once(OPERATION, delete).await?;
        let store = self.clone();
        let deletion = tokio::spawn(async move {
            if let Err(error) = store.delete_unneeded_objects(OPERATION, &objects).await {
                let error: &dyn Error = &error;
                tracing::warn!(error, "objects of deleted files stay until the next collection");
            }
        });
        // In a task, since no row names the objects any more if the caller stops waiting.
        let _ = deletion.await;
        Ok(())
    }

    /// Returns the list of removals, the oldest first.
    pub async fn removals(&self) -> Result<Vec<Removal>, StoreError> {
        let query = sqlx::query_as(
            "SELECT entity, removed_at_ms, reason, erased FROM removals ORDER BY removed_at_ms, entity",
        );
        let parse = |(entity, removed_at_ms, reason, erased): (Vec<u8>, _, _, _)| {
            Ok(Removal { entity: parse_entity(&entity)?, removed_at_ms, reason, erased })
        };
        self.fetch_rows("read removals", query, parse).await
    }

    /// Whether an operator has removed something after this sequence. A sequence of another lineage is from
    /// before any removal.
    pub async fn has_removal_after(&self, of: Option<Lineage>, sequence: u64) -> Result<bool, ReadError> {
        self.short_read("read the last removal", |mut connection| async move {
            let (lineage, last): (i64, i64) =
                sqlx::query_as("SELECT lineage, last_removal FROM server_state, change_feed")
                    .fetch_one(&mut *connection)
                    .await?;
            connection.release();
            let sequence = if of == Some(change_feed::lineage(lineage)) { sequence } else { 0 };
            Ok(last.unsigned_abs() > sequence)
        })
        .await
    }

    /// Returns the first 1,000 stored charts and chartsets whose `removed_at_ms` differs from the list of
    /// removals, or that were erased.
    pub async fn removal_mismatches(&self) -> Result<Vec<Entity>, StoreError> {
        let query = sqlx::query_as(
            "SELECT stored.entity FROM (
                 SELECT hash AS entity, removed_at_ms FROM charts
                 UNION ALL
                 SELECT decode(id, 'hex'), removed_at_ms FROM chartsets
             ) AS stored LEFT JOIN removals USING (entity)
             WHERE stored.removed_at_ms IS DISTINCT FROM removals.removed_at_ms OR removals.erased
             ORDER BY stored.entity LIMIT $1",
        );
        let parse = |(entity,): (Vec<u8>,)| parse_entity(&entity);
        self.fetch_rows("check removals", query.bind(MAX_MISMATCHES), parse).await
    }

    /// Returns the entities that were not in the list before, each with whether it is stored.
    async fn add_removals(
        mut connection: PooledConnection,
        objects: Option<&Objects>,
        removals: &[Removal],
        now_ms: i64,
    ) -> Result<HashMap<Entity, bool>, sqlx::Error> {
        let entities: Vec<&[u8]> = removals.iter().map(|removal| entity_bytes(&removal.entity)).collect();
        let mut transaction = connection.begin().await?;
        removal_lock::lock_out_ingests(&mut transaction).await?;
        let added = unlisted(&mut transaction, &entities).await?;
        let erased = || removals.iter().filter(|removal| removal.erased).map(|removal| &removal.entity);
        let sets = lock_chartsets(&mut transaction, added.keys().chain(erased())).await?;
        sqlx::query(
            "INSERT INTO removals AS removal (entity, removed_at_ms, reason, erased)
             SELECT DISTINCT ON (entity) * FROM unnest($1::bytea[], $2::bigint[], $3::text[], $4::bool[])
                                                AS given (entity, removed_at_ms, reason, erased)
             ORDER BY entity, erased DESC
             ON CONFLICT (entity) DO UPDATE SET erased = true WHERE excluded.erased AND NOT removal.erased",
        )
        .bind(entities)
        .bind(removals.iter().map(|removal| removal.removed_at_ms).collect::<Vec<_>>())
        .bind(removals.iter().map(|removal| removal.reason.as_deref().map(replace_nul)).collect::<Vec<_>>())
        .bind(removals.iter().map(|removal| removal.erased).collect::<Vec<_>>())
        .execute(&mut *transaction)
        .await?;
        let erased = erase(&mut transaction, erased()).await?;
        derive_chartsets(&mut transaction, &sets, Some(now_ms)).await?;
        // Before the commit: if it fails, the rows still name them, and the erasure is repeated.
        delete_unneeded(&mut transaction, objects, &erased).await?;
        transaction.commit().await?;
        Ok(added)
    }

    /// Returns the objects that the rows named.
    async fn delete_entities(
        mut connection: PooledConnection,
        entities: &[Entity],
        is_removal: bool,
    ) -> Result<Vec<ObjectDigest>, sqlx::Error> {
        let mut transaction = connection.begin().await?;
        removal_lock::lock_out_ingests(&mut transaction).await?;
        let sets = lock_chartsets(&mut transaction, entities).await?;
        if is_removal {
            // With the chartsets that contain these charts, and the charts of these chartsets.
            let record = sqlx::query(
                "INSERT INTO pending_changes (entity, is_removal) SELECT entity, true FROM (
                     SELECT entity FROM unnest($1::bytea[]) AS entity
                     UNION SELECT decode(chartset_id, 'hex') FROM chartset_charts WHERE chart_hash = ANY($1)
                     UNION SELECT member.chart_hash FROM unnest($1::bytea[]) AS entity
                           JOIN chartset_charts AS member ON member.chartset_id = encode(entity, 'hex')
                 ) AS related",
            );
            let bytes: Vec<&[u8]> = entities.iter().map(entity_bytes).collect();
            record.bind(bytes).execute(&mut *transaction).await?;
        }
        let objects = erase(&mut transaction, entities).await?;
        derive_chartsets(&mut transaction, &sets, None).await?;
        transaction.commit().await?;
        Ok(objects)
    }

    async fn delete_removal(
        mut connection: PooledConnection,
        entity: Entity,
        now_ms: i64,
    ) -> Result<bool, sqlx::Error> {
        let mut transaction = connection.begin().await?;
        removal_lock::lock_out_ingests(&mut transaction).await?;
        if !unlisted(&mut transaction, &[entity_bytes(&entity)]).await?.is_empty() {
            return Ok(false);
        }
        let sets = lock_chartsets(&mut transaction, [&entity]).await?;
        let delete = sqlx::query_scalar("DELETE FROM removals WHERE entity = $1 RETURNING erased");
        if delete.bind(entity_bytes(&entity)).fetch_one(&mut *transaction).await? {
            // A mirror reads the whole feed again: the change that stored what was erased may be far back.
            sqlx::query("UPDATE mirror SET sequence = 0 WHERE sequence > 0")
                .execute(&mut *transaction)
                .await?;
        }
        derive_chartsets(&mut transaction, &sets, Some(now_ms)).await?;
        transaction.commit().await?;
        Ok(true)
    }
}

/// Those of the entities that are not in the list of removals, each with whether it is stored.
async fn unlisted(
    connection: &mut PgConnection,
    entities: &[&[u8]],
) -> Result<HashMap<Entity, bool>, sqlx::Error> {
    let rows: Vec<(Vec<u8>, bool)> = sqlx::query_as(
        "SELECT DISTINCT entity, EXISTS (SELECT FROM charts WHERE hash = entity)
                                 OR EXISTS (SELECT FROM chartsets WHERE id = encode(entity, 'hex'))
         FROM unnest($1::bytea[]) AS entity
         WHERE NOT EXISTS (SELECT FROM removals AS removal WHERE removal.entity = entity.entity)",
    )
    .bind(entities)
    .fetch_all(connection)
    .await?;
    rows.iter().map(|(entity, is_stored)| Ok((parse_entity(entity)?, *is_stored))).collect()
}

/// Deletes everything that is stored of these charts and chartsets, and of the charts that are in no other
/// chartset, and returns the objects that their rows named. No ingest runs meanwhile, and after it those that
/// contain one of these charts are not unchanged.
async fn erase(
    connection: &mut PgConnection,
    entities: impl IntoIterator<Item = &Entity>,
) -> Result<Vec<ObjectDigest>, sqlx::Error> {
    let (charts, chartsets) = charts_and_chartsets(entities);
    if charts.is_empty() && chartsets.is_empty() {
        return Ok(Vec::new());
    }
    sqlx::query(
        "UPDATE chartsets SET content_fingerprint = decode(repeat('00', 32), 'hex')
         WHERE id IN (SELECT chartset_id FROM chartset_charts WHERE chart_hash = ANY($1))",
    )
    .bind(&charts)
    .execute(&mut *connection)
    .await?;
    let members: Vec<[u8; 32]> = sqlx::query_scalar(
        "DELETE FROM chartset_charts WHERE chart_hash = ANY($1) OR chartset_id = ANY($2) RETURNING chart_hash",
    )
    .bind(&charts)
    .bind(&chartsets)
    .fetch_all(&mut *connection)
    .await?;
    let hashes: Vec<[u8; 32]> = sqlx::query_scalar(
        "SELECT hash FROM charts WHERE hash = ANY($1)
         UNION SELECT hash FROM charts WHERE hash = ANY($2)
               AND NOT EXISTS (SELECT FROM chartset_charts WHERE chart_hash = hash)",
    )
    .bind(&charts)
    .bind(members)
    .fetch_all(&mut *connection)
    .await?;
    let rox_files = delete_rox_files(&mut *connection, &hashes).await?;
    // Of the versions before, until a later migration drops the table.
    let previews: Vec<Option<[u8; 32]>> =
        sqlx::query_scalar("DELETE FROM chart_previews WHERE hash = ANY($1) RETURNING object")
            .bind(&hashes)
            .fetch_all(&mut *connection)
            .await?;
    let objects = rox_files.into_iter().chain(previews).flatten().map(ObjectDigest::from_bytes).collect();
    for statement in
        ["DELETE FROM chart_aliases WHERE chart_hash = ANY($1)", "DELETE FROM charts WHERE hash = ANY($1)"]
    {
        sqlx::query(statement).bind(&hashes).execute(&mut *connection).await?;
    }
    for statement in [
        "DELETE FROM chartset_checks WHERE chartset_id = ANY($1)",
        "DELETE FROM chart_aliases WHERE chartset_id = ANY($1)",
        "DELETE FROM chartsets WHERE id = ANY($1)",
        // The outcomes contain the ids, and the paths of the folders. One look-up for each id: for several at
        // once PostgreSQL may prefer to read all outcomes.
        "DELETE FROM ingest_fingerprints USING unnest($1::text[]) AS id
         WHERE outcome_chartsets(outcome) @> ARRAY[id]",
    ] {
        sqlx::query(statement).bind(&chartsets).execute(&mut *connection).await?;
    }
    Ok(objects)
}

/// Deletes the ROX files of these charts, and returns the objects that their rows named. The digests
/// stay, for the case that the charts are added again.
async fn delete_rox_files(
    connection: &mut PgConnection,
    hashes: &[[u8; 32]],
) -> Result<Vec<Option<[u8; 32]>>, sqlx::Error> {
    type Row = ([u8; 32], Option<Vec<u8>>, Option<[u8; 32]>, bool);
    let deleted: Vec<Row> = sqlx::query_as(
        "DELETE FROM rox_files WHERE hash = ANY($1)
         RETURNING hash, bytes, object, replacement_digest IS NOT NULL",
    )
    .bind(hashes)
    .fetch_all(&mut *connection)
    .await?;
    let digest = |(_, bytes, object, is_replaced): &Row| match (object, bytes) {
        _ if *is_replaced => None,
        (Some(object), _) => Some(*object),
        (None, bytes) => bytes.as_ref().map(|bytes| *blake3::hash(bytes).as_bytes()),
    };
    sqlx::query(
        "INSERT INTO erased_files (hash, digest) SELECT * FROM unnest($1::bytea[], $2::bytea[])
         ON CONFLICT DO NOTHING",
    )
    .bind(deleted.iter().map(|(hash, ..)| hash).collect::<Vec<_>>())
    .bind(deleted.iter().map(digest).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(deleted.into_iter().map(|(_, _, object, _)| object).collect())
}

fn charts_and_chartsets<'a>(entities: impl IntoIterator<Item = &'a Entity>) -> (Vec<&'a [u8]>, Vec<String>) {
    let (mut charts, mut chartsets) = (Vec::new(), Vec::new());
    for entity in entities {
        match entity {
            Entity::Chart(hash) => charts.push(&hash.as_bytes()[..]),
            Entity::Chartset(id) => chartsets.push(id.to_string()),
        }
    }
    (charts, chartsets)
}

/// Locks the rows of these chartsets, and of those that contain one of these charts.
///
/// They are locked in the order of their ids before they are changed: ingests of unchanged folders, which do
/// not take the lock of this transaction, write several rows in this order.
pub(crate) async fn lock_chartsets(
    connection: &mut PgConnection,
    entities: impl IntoIterator<Item = &Entity>,
) -> Result<Vec<ChartsetRow>, sqlx::Error> {
    let (charts, chartsets) = charts_and_chartsets(entities);
    sqlx::query_as(
        "SELECT id, exact_kind, exact_ref FROM chartsets
         WHERE id IN (SELECT chartset_id FROM chartset_charts WHERE chart_hash = ANY($1)
                      UNION ALL SELECT unnest($2::text[]) COLLATE \"C\")
         ORDER BY id FOR UPDATE",
    )
    .bind(charts)
    .bind(chartsets)
    .fetch_all(connection)
    .await
}

/// Updates the derived columns of these chartsets, and the time of their last change if one is given. The
/// triggers of `removals` have updated `removed_at_ms`.
pub(crate) async fn derive_chartsets(
    connection: &mut PgConnection,
    sets: &[ChartsetRow],
    updated_at_ms: Option<i64>,
) -> Result<(), sqlx::Error> {
    let derived = derive_columns(connection, sets).await?;
    let (mut columns, mut parameters) = (Columns::default(), Parameters::default());
    let updated = parameters.bind(updated_at_ms);
    let ids = parameters.bind(sets.iter().map(|set| &set.id).collect::<Vec<_>>());
    DerivedColumns::add_to(&derived.iter().collect::<Vec<_>>(), &mut columns, &mut parameters);
    // Sets the time in either case, so that the trigger records the change.
    let statement = format!(
        "UPDATE chartsets AS chartset
         SET updated_at_ms = coalesce({updated}, chartset.updated_at_ms), {assignments} FROM {given}
         WHERE chartset.id = given.id",
        assignments = columns.assignments(),
        given = Columns::concat([&Columns::single("id", ids), &columns]).given()
    );
    // Safe: it consists of constants and placeholders.
    sqlx::query_with(AssertSqlSafe(statement), parameters.into_arguments()?).execute(connection).await?;
    Ok(())
}
