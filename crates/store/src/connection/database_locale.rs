//! Whether the locale of the database suits `pg_trgm`, by which creators and tags are searched.

use sqlx::{Connection, PgConnection};

/// Whether words outside of ASCII have trigrams: not with `LC_CTYPE=C`, nor with some locales of the provider
/// `builtin`. What counts is what the extension does, whatever the locale is called.
const HAS_LETTERS: &str = "SELECT bool_and(show_trgm(word) <> '{}') FROM unnest(ARRAY['ア', 'я']) AS word";

/// The locale gives words outside of ASCII no trigrams.
#[derive(Debug, thiserror::Error)]
#[error(
    "the locale of the database has no letters outside of ASCII, so that pg_trgm finds no index for a creator in kana \
     or Cyrillic: create the database with `TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'`"
)]
pub(crate) struct NoLetters;

/// Whether the locale suits. Creates the extension, where it is missing, for the time of the check.
pub(crate) async fn has_letters(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    sqlx::raw_sql("CREATE EXTENSION IF NOT EXISTS pg_trgm").execute(&mut *transaction).await?;
    let has_letters = sqlx::query_scalar(HAS_LETTERS).fetch_one(&mut *transaction).await?;
    transaction.rollback().await?;
    Ok(has_letters)
}
