//! Reads the chartsets of a pack, for its page.

use chart_index_domain::{Chartset, ReadError, SourceRef};

use crate::Store;
use crate::connection::server::ReadLength;
use crate::schema::column_values::parse_chartset_id;
use crate::schema::derived_columns::{ListedColumns, listed_columns};

#[derive(sqlx::FromRow)]
struct PackRow {
    id: String,
    #[sqlx(flatten)]
    listed: ListedColumns,
}

impl Store {
    /// Returns the shown chartsets whose public source is this pack of the second game, by title, up to a
    /// limit.
    pub async fn chartsets_of_pack(&self, pack: &SourceRef, limit: u32) -> Result<Vec<Chartset>, ReadError> {
        let query = || {
            sqlx::query_as(concat!(
                "SELECT id, ",
                listed_columns!(),
                " FROM chartsets WHERE source_kind = 'betaPack' AND source_ref = $1 AND shown
                  ORDER BY title_sort, id LIMIT $2"
            ))
            .bind(pack.as_str())
            .bind(i64::from(limit))
        };
        let parse = |row: PackRow| row.listed.into_chartset(parse_chartset_id(&row.id)?);
        self.read_rows("read chartsets of pack", ReadLength::Short, query, parse).await
    }
}
