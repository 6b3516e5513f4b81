//! The PostgreSQL search engine.

use std::sync::Arc;

use async_trait::async_trait;
use chart_index_domain::ReadError;
use chart_index_domain::search::{
    ChartsetPage, Engine, ListItem, ListPosition, SearchIndex, SearchQuery, Sort, SortValue,
};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, Postgres, QueryBuilder, Row};

use crate::column_values::parse_chartset_id;
use crate::derived_columns::ListedColumns;
use crate::error::{corrupt, read_error};
use crate::pooled_connection::PooledConnection;
use crate::search_sql::{push_page, push_total_with_state};
use crate::total_cache::{CatalogueState, Total, TotalCache, TotalKey};
use crate::{CatalogueWatch, Store};

/// Maximum offset of a page that is read together with its total. For higher offsets the total is counted
/// first: it determines from which end of the list the page is read.
const MAX_OFFSET_WITHOUT_TOTAL: u64 = 1_000;

const OPERATION: &str = "search chartsets";

/// A search engine that queries PostgreSQL: always current, and exact. Clones share the cached totals.
#[derive(Debug, Clone)]
pub struct PostgresSearch {
    store: Store,
    watch: CatalogueWatch,
    totals: Arc<TotalCache>,
}

/// The columns that every row of a page has in addition to its chartset.
#[derive(sqlx::FromRow)]
struct TotalRow {
    #[sqlx(flatten)]
    state: CatalogueState,
    total: i64,
}

impl PostgresSearch {
    /// Creates a search engine over the catalogue of the store. The watch shows when cached totals are
    /// outdated.
    #[must_use]
    pub fn new(store: Store, watch: CatalogueWatch) -> Self {
        Self { store, watch, totals: Arc::default() }
    }

    /// Returns a page. Of concurrent searches with the same filter, one counts the total.
    async fn page(&self, query: &SearchQuery) -> Result<ChartsetPage, ReadError> {
        let key = TotalKey::new(query, self.watch.sequence());
        let (page, total) = match self.totals.0.get_value_or_guard_async(&key).await {
            Ok(cached) => self.page_with_total(query, cached).await?,
            Err(guard) => {
                let (page, total) = self.page_and_total(query).await?;
                // Fails only if the entry was evicted in the meantime, which costs one count.
                let _ = guard.insert(total);
                return Ok(page);
            }
        };
        self.totals.0.insert(key, total);
        Ok(page)
    }

    /// Reads a page whose total is not cached.
    async fn page_and_total(&self, query: &SearchQuery) -> Result<(ChartsetPage, Total), ReadError> {
        // The total for a text or for part of a name also determines how to find the matches.
        let has_text = query.text.is_some() || query.creator.is_some();
        if !has_text && query.offset() <= MAX_OFFSET_WITHOUT_TOTAL {
            return self.read_page(query, None).await;
        }
        let total = self.count(query).await?;
        self.page_with_total(query, total).await
    }

    /// Reads a page whose total was counted before. If the catalogue has changed since, counts it again in the
    /// snapshot of the page.
    async fn page_with_total(
        &self,
        query: &SearchQuery,
        total: Total,
    ) -> Result<(ChartsetPage, Total), ReadError> {
        let (page, found) = self.read_page(query, Some(total.count)).await?;
        if found == total {
            return Ok((page, found));
        }
        self.read_page(query, None).await
    }

    async fn count(&self, query: &SearchQuery) -> Result<Total, ReadError> {
        let rows = self.fetch(|statement| push_total_with_state(statement, query)).await?;
        parse_total(&rows).map_err(decode_error)
    }

    /// Reads a page and its total in one statement, which counts if no total is given.
    async fn read_page(
        &self,
        query: &SearchQuery,
        total: Option<u64>,
    ) -> Result<(ChartsetPage, Total), ReadError> {
        let rows = self.fetch(|statement| push_page(statement, query, total)).await?;
        let total = parse_total(&rows).map_err(decode_error)?;
        let items = rows.iter().filter_map(|row| parse_item(row).transpose());
        let mut items = items.collect::<Result<Vec<_>, _>>().map_err(decode_error)?;
        let continues = match query.after {
            Some(_) => items.len() > query.page.size() as usize,
            None => query.offset() + (items.len() as u64) < total.count,
        };
        items.truncate(query.page.size() as usize);
        let last = items.len().checked_sub(1).filter(|_| continues).map(|last| &rows[last]);
        let next = last.map(|row| parse_position(query, row)).transpose().map_err(decode_error)?;
        Ok((ChartsetPage { items, total: total.count, next, position: None }, total))
    }

    /// Runs a statement on a connection of the pool. A search that waits for the count of another search holds
    /// none.
    async fn fetch(&self, push: impl Fn(&mut QueryBuilder<Postgres>)) -> Result<Vec<PgRow>, ReadError> {
        let run = |mut connection: PooledConnection| {
            let mut statement = QueryBuilder::new("");
            push(&mut statement);
            // Not prepared: a generic plan for any text or range is bad for most of them.
            async move { statement.build().persistent(false).fetch_all(&mut *connection).await }
        };
        self.store.long_read(OPERATION, run).await
    }
}

fn parse_total(rows: &[PgRow]) -> Result<Total, sqlx::Error> {
    let row = TotalRow::from_row(rows.first().ok_or(sqlx::Error::RowNotFound)?)?;
    let count = u64::try_from(row.total).map_err(corrupt)?;
    Ok(Total { count, state: row.state })
}

fn decode_error(error: sqlx::Error) -> ReadError {
    read_error(OPERATION, error)
}

/// Parses the chartset of a row; `None` for the single row of an empty page, which contains only the total.
fn parse_item(row: &PgRow) -> Result<Option<ListItem>, sqlx::Error> {
    let Some(id) = row.try_get::<Option<String>, _>("id")? else { return Ok(None) };
    let columns = ListedColumns::from_row(row)?;
    let chartset = columns.into_chartset(parse_chartset_id(&id)?)?;
    ListItem::new(&chartset).map(Some).map_err(corrupt)
}

/// Parses the position of a row in the order of the query.
fn parse_position(query: &SearchQuery, row: &PgRow) -> Result<ListPosition, sqlx::Error> {
    let value = match query.sort {
        Sort::Bpm | Sort::Density => SortValue::Number(row.try_get("key")?),
        Sort::Title | Sort::Artist => SortValue::Name(row.try_get("key")?),
        Sort::Relevance if query.text.is_some() => {
            let rank: i32 = row.try_get("relevance")?;
            SortValue::Relevance(u8::try_from(rank).map_err(corrupt)?, row.try_get("key")?)
        }
        Sort::Updated | Sort::Length | Sort::Relevance => SortValue::Integer(row.try_get("key")?),
    };
    Ok(ListPosition { value, id: parse_chartset_id(row.try_get("id")?)? })
}

#[async_trait]
impl SearchIndex for PostgresSearch {
    fn engine(&self) -> Engine {
        Engine::Postgres
    }

    async fn search(&self, query: &SearchQuery) -> Result<ChartsetPage, ReadError> {
        self.page(query).await
    }
}
