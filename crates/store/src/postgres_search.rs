//! The PostgreSQL search engine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chart_index_domain::ReadError;
use chart_index_domain::search::{
    After, ChartsetPage, Engine, ListItem, ListPosition, SearchIndex, SearchQuery, Sort, SortValue,
};
use quick_cache::sync::{EntryAction, EntryResult};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, Postgres, QueryBuilder, Row};

use crate::column_values::parse_chartset_id;
use crate::derived_columns::ListedColumns;
use crate::error::{corrupt, read_error};
use crate::pooled_connection::PooledConnection;
use crate::search_order::{KnownTotal, Slice};
use crate::search_sql::{push_page, push_total_with_state};
use crate::total_cache::{self, CatalogueState, Total, TotalCache, TotalKey};
use crate::{CatalogueWatch, Store};

/// Maximum offset of a page that is read together with its total. For higher offsets the total is counted
/// first: it determines from which end of the list the page is read.
const MAX_OFFSET_WITHOUT_TOTAL: u64 = 1_000;

const OPERATION: &str = "search chartsets";

/// A search engine that queries PostgreSQL: exact and always current, except that totals may be 30 s old while
/// the catalogue changes. Clones share the cached totals.
#[derive(Debug, Clone)]
pub struct PostgresSearch {
    store: Store,
    watch: CatalogueWatch,
    totals: Arc<TotalCache>,
    max_total_age: Duration,
}

/// The rows of a page.
struct PageRows {
    items: Vec<ListItem>,
    /// The position of the last item.
    last: Option<ListPosition>,
    /// After a cursor: whether there is a row after the page.
    has_more: bool,
    /// Counted by the statement, or the known one with the state that the statement found.
    total: Total,
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
        Self { store, watch, totals: Arc::default(), max_total_age: total_cache::MAX_AGE }
    }

    /// Sets how old totals may be while the catalogue changes, for tests.
    #[must_use]
    pub const fn with_max_total_age(mut self, age: Duration) -> Self {
        self.max_total_age = age;
        self
    }

    /// Returns a page. Of concurrent searches with the same filter, one counts the total.
    async fn page(&self, query: &SearchQuery) -> Result<ChartsetPage, ReadError> {
        let key = TotalKey::new(query);
        let check = |_: &TotalKey, total: &mut Total| {
            let is_outdated = self.is_too_old(*total) && !self.is_current(*total);
            if is_outdated { EntryAction::ReplaceWithGuard } else { EntryAction::Retain(*total) }
        };
        match self.totals.0.entry_async(&key, check).await {
            EntryResult::Retained(cached) => {
                let (page, counted) = self.page_with_total(query, cached).await?;
                if let Some(total) = counted {
                    self.totals.0.insert(key, total);
                }
                Ok(page)
            }
            EntryResult::Vacant(guard) | EntryResult::Replaced(guard, _) => {
                let (page, total) = self.page_and_total(query).await?;
                // Fails only if the entry was evicted in the meantime, which costs one count.
                let _ = guard.insert(total);
                Ok(page)
            }
            // The check never removes an entry, and there is no timeout.
            EntryResult::Removed(..) | EntryResult::Timeout => Ok(self.page_and_total(query).await?.0),
        }
    }

    /// Whether the total must not be used in another state of the catalogue.
    fn is_too_old(&self, total: Total) -> bool {
        total.counted_at.elapsed() > self.max_total_age
    }

    /// Whether the catalogue has not changed since, as far as is known.
    fn is_current(&self, total: Total) -> bool {
        i64::try_from(self.watch.sequence()) == Ok(total.state.last_sequence)
    }

    /// Reads a page whose total is not cached.
    async fn page_and_total(&self, query: &SearchQuery) -> Result<(ChartsetPage, Total), ReadError> {
        // The total for a text or for part of a name also determines how to find the matches.
        let has_text = query.text.is_some() || query.creator.is_some();
        if !has_text && query.offset() <= MAX_OFFSET_WITHOUT_TOTAL {
            return self.counted_page(query).await;
        }
        let total = self.count(query).await?;
        let (page, counted) = self.page_with_total(query, total).await?;
        Ok((page, counted.unwrap_or(total)))
    }

    /// Reads a page and counts its total in the same snapshot.
    async fn counted_page(&self, query: &SearchQuery) -> Result<(ChartsetPage, Total), ReadError> {
        let rows = self.read_page(query, KnownTotal::None).await?;
        let total = rows.total;
        Ok((rows.into_page(query, total.count), total))
    }

    /// Reads a page whose total was counted before, and counts it again if it is outdated: then the new total
    /// is returned as well.
    async fn page_with_total(
        &self,
        query: &SearchQuery,
        total: Total,
    ) -> Result<(ChartsetPage, Option<Total>), ReadError> {
        let old = KnownTotal::Old(total.count);
        let known = if self.is_current(total) { KnownTotal::Current(total.count) } else { old };
        let mut rows = self.read_page(query, known).await?;
        if rows.total.state == total.state {
            return Ok((rows.into_page(query, total.count), None));
        }
        if self.is_too_old(total) {
            let (page, total) = self.counted_page(query).await?;
            return Ok((page, Some(total)));
        }
        if Slice::new(query, known).depends_on_total(query) {
            rows = self.read_page(query, old).await?;
        }
        let count = rows.total_with(query, total.count);
        Ok((rows.into_page(query, count), None))
    }

    async fn count(&self, query: &SearchQuery) -> Result<Total, ReadError> {
        let counted_at = Instant::now();
        let rows = self.fetch(|statement| push_total_with_state(statement, query)).await?;
        parse_total(&rows, counted_at).map_err(decode_error)
    }

    /// Reads a page and its total in one statement, which counts if no total is known.
    async fn read_page(&self, query: &SearchQuery, total: KnownTotal) -> Result<PageRows, ReadError> {
        let counted_at = Instant::now();
        let rows = self.fetch(|statement| push_page(statement, query, total)).await?;
        PageRows::parse(query, &rows, counted_at).map_err(decode_error)
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

impl PageRows {
    fn parse(query: &SearchQuery, rows: &[PgRow], counted_at: Instant) -> Result<Self, sqlx::Error> {
        let total = parse_total(rows, counted_at)?;
        let items = rows.iter().filter_map(|row| parse_item(row).transpose());
        let mut items = items.collect::<Result<Vec<_>, _>>()?;
        let size = query.page.size() as usize;
        let has_more = items.len() > size;
        items.truncate(size);
        let last = items.len().checked_sub(1).map(|last| parse_position(query, &rows[last])).transpose()?;
        Ok(Self { items, last, has_more, total })
    }

    /// The number of items up to the end of the page; `None` after the position of a cursor.
    fn end(&self, query: &SearchQuery) -> Option<u64> {
        let is_counted = !matches!(query.after, Some(After::Position(_)));
        is_counted.then(|| query.offset() + self.items.len() as u64)
    }

    /// The total of the list for an old one and a page from its start: exact if the list ends on this page,
    /// else at least what the page shows.
    fn total_with(&self, query: &SearchQuery, old: u64) -> u64 {
        let Some(end) = self.end(query) else { return old };
        if self.items.is_empty() {
            // The list ends somewhere before the page.
            return old.min(end);
        }
        let is_last =
            self.items.len() < query.page.size() as usize || query.after.is_some() && !self.has_more;
        if is_last { end } else { old.max(end + u64::from(self.has_more)) }
    }

    fn into_page(self, query: &SearchQuery, total: u64) -> ChartsetPage {
        let end = query.offset() + self.items.len() as u64;
        let continues = if query.after.is_some() { self.has_more } else { end < total };
        ChartsetPage { items: self.items, total, next: self.last.filter(|_| continues), position: None }
    }
}

fn parse_total(rows: &[PgRow], counted_at: Instant) -> Result<Total, sqlx::Error> {
    let row = TotalRow::from_row(rows.first().ok_or(sqlx::Error::RowNotFound)?)?;
    let count = u64::try_from(row.total).map_err(corrupt)?;
    Ok(Total { count, state: row.state, counted_at })
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
