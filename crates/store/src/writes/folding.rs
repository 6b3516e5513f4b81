//! The version of the text folding of a catalogue, and the migration to another version.

use chart_index_domain::text::FOLDING_VERSION;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::connection::removal_lock::lock_out_ingests;
use crate::schema::derived_columns::{DerivedColumns, SearchColumns};
use crate::schema::statement_columns::{Columns, Parameters};
use crate::writes::derive::stored_columns;

/// The number of chartsets that are folded in one transaction, for which ingests and removals wait.
const BATCH: i64 = 200;

/// The version that all chartsets have; `None` if the table with it is empty.
pub(crate) async fn version(connection: &mut PgConnection) -> Result<Option<i32>, sqlx::Error> {
    sqlx::query_scalar("SELECT version FROM text_folding").fetch_optional(connection).await
}

/// Folds all chartsets again, unless they have the version of this program. It may be interrupted: the version
/// is written last, and the next call finds the chartsets that are done unchanged.
///
/// No chartset is recorded as changed, since no record in the change feed has folded text.
pub(crate) async fn fold_catalogue(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    if version(connection).await? == Some(FOLDING_VERSION) {
        return Ok(());
    }
    let mut after = Some(String::new());
    while let Some(id) = after {
        after = fold_batch(connection, &id).await?;
    }
    sqlx::query(
        "INSERT INTO text_folding (version) VALUES ($1) ON CONFLICT (only_row) DO UPDATE SET version = $1",
    )
    .bind(FOLDING_VERSION)
    .execute(connection)
    .await?;
    Ok(())
}

/// Folds the next chartsets in the order of their ids. Returns the last of them; `None` if there was none.
async fn fold_batch(connection: &mut PgConnection, after: &str) -> Result<Option<String>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    lock_out_ingests(&mut transaction).await?;
    let (sets, stored) = stored_columns(&mut transaction, after, BATCH).await?;
    let mut changed = Vec::new();
    for (set, DerivedColumns { listed, keywords, search }) in sets.iter().zip(&stored) {
        let folded = SearchColumns::new(listed, keywords);
        if folded != *search {
            changed.push((&*set.id, folded));
        }
    }
    if !changed.is_empty() {
        write(&mut transaction, &changed).await?;
    }
    transaction.commit().await?;
    Ok(sets.last().map(|set| set.id.clone()))
}

async fn write(connection: &mut PgConnection, folded: &[(&str, SearchColumns)]) -> Result<(), sqlx::Error> {
    let (mut columns, mut parameters) = (Columns::default(), Parameters::default());
    let ids = Columns::single("id", parameters.bind(folded.iter().map(|(id, _)| *id).collect::<Vec<_>>()));
    let folded: Vec<_> = folded.iter().map(|(_, folded)| folded).collect();
    SearchColumns::add_to(&folded, &mut columns, &mut parameters);
    let (assignments, given) = (columns.assignments(), Columns::concat([&ids, &columns]).given());
    let statement =
        format!("UPDATE chartsets AS chartset SET {assignments} FROM {given} WHERE chartset.id = given.id");
    // Safe: it consists of constants and placeholders.
    sqlx::query_with(AssertSqlSafe(statement), parameters.into_arguments()?).execute(connection).await?;
    Ok(())
}
