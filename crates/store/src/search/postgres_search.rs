//! The PostgreSQL search engine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chart_index_domain::search::{
    After, ChartsetPage, Engine, ListItem, ListPosition, RatingHistogram, SearchIndex, SearchQuery, Sort,
    SortValue,
};
use chart_index_domain::{Rating, ReadError};
use quick_cache::sync::{EntryAction, EntryResult};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, Postgres, QueryBuilder, Row};

use crate::connection::pooled_connection::PooledConnection;
use crate::error::{corrupt, read_error};
use crate::schema::column_values::parse_chartset_id;
use crate::schema::derived_columns::ListedColumns;
use crate::search::search_order::{MAX_OFFSET_FROM_START, Slice};
use crate::search::search_sql::{push_page, push_rating_histogram, push_total_with_state};
use crate::search::total_cache::{self, CatalogueState, Total, TotalCache, TotalKey};
use crate::{CatalogueWatch, Store};

const OPERATION: &str = "search chartsets";

/// A search engine that queries PostgreSQL: exact and always current, except that totals may be 30 s old while
/// the catalogue changes. It answers every query, since the service has to work without a search server, but
/// tolerates no typos. Clones share the cached totals.
#[derive(Debug, Clone)]
pub struct PostgresSearch {
    store: Store,
    watch: CatalogueWatch,
    totals: Arc<TotalCache>,
    max_total_age: Duration,
}

/// The rows of a page.
struct PageRows {
    slice: Slice,
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
        let (key, now) = (TotalKey::new(query), Instant::now());
        let check = |_: &TotalKey, total: &mut Total| {
            let is_outdated = self.is_too_old(*total, now) && !self.is_current(*total);
            if is_outdated { EntryAction::ReplaceWithGuard } else { EntryAction::Retain(*total) }
        };
        match self.totals.0.entry_async(&key, check).await {
            EntryResult::Retained(cached) => {
                let (page, counted) = self.page_with_total(query, cached, now).await?;
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

    /// Whether the total must not be used in another state of the catalogue, by a search that began then.
    fn is_too_old(&self, total: Total, start: Instant) -> bool {
        start.saturating_duration_since(total.counted_at) > self.max_total_age
    }

    /// Whether the catalogue has not changed since, as far as is known.
    fn is_current(&self, total: Total) -> bool {
        i64::try_from(self.watch.sequence()) == Ok(total.state.last_sequence)
    }

    /// Reads a page whose total is not cached.
    async fn page_and_total(&self, query: &SearchQuery) -> Result<(ChartsetPage, Total), ReadError> {
        // The total determines from which end of the list the page is read, and how to find the matches of a
        // text or of part of a name.
        let has_words = query.has_words() || query.creator.is_some();
        if !has_words && query.offset() <= MAX_OFFSET_FROM_START {
            let rows = self.read_page(query, None).await?;
            let total = rows.total;
            return Ok((rows.into_page(query), total));
        }
        let total = self.count(query).await?;
        let rows = self.read_page(query, Some(total.count)).await?;
        Ok((rows.into_page(query), total))
    }

    /// Reads a page whose total was counted before. Counts it again if it is too old or from lost changes: then
    /// the new total is returned as well.
    async fn page_with_total(
        &self,
        query: &SearchQuery,
        total: Total,
        start: Instant,
    ) -> Result<(ChartsetPage, Option<Total>), ReadError> {
        let rows = self.read_page(query, Some(total.count)).await?;
        let is_changed = rows.total.state != total.state;
        if is_changed && (self.is_too_old(total, start) || !rows.total.state.may_follow(&total.state)) {
            let (page, total) = self.page_and_total(query).await?;
            return Ok((page, Some(total)));
        }
        // As current, a cached page would keep an old total until the next change.
        let position = is_changed.then(|| total.state.position());
        Ok((ChartsetPage { position, ..rows.into_page(query) }, None))
    }

    async fn count(&self, query: &SearchQuery) -> Result<Total, ReadError> {
        let counted_at = Instant::now();
        let rows = self.fetch(|statement| push_total_with_state(statement, query)).await?;
        parse_total(&rows, counted_at).map_err(decode_error)
    }

    /// Reads a page and its total in one statement, which counts if no total is known.
    async fn read_page(&self, query: &SearchQuery, total: Option<u64>) -> Result<PageRows, ReadError> {
        let counted_at = Instant::now();
        let rows = self.fetch(|statement| push_page(statement, query, total)).await?;
        PageRows::parse(query, Slice::new(query, total), &rows, counted_at).map_err(decode_error)
    }

    /// Runs a statement on a connection of the pool. A search that waits for the count of another search holds
    /// none.
    async fn fetch(&self, push: impl Fn(&mut QueryBuilder<Postgres>)) -> Result<Vec<PgRow>, ReadError> {
        let run = |mut connection: PooledConnection| {
            let mut statement = QueryBuilder::new("");
            push(&mut statement);
            // Not prepared: a generic plan for any text or range is bad for most of them.
            async move {
                let rows = statement.build().persistent(false).fetch_all(&mut *connection).await?;
                connection.release();
                Ok(rows)
            }
        };
        self.store.long_read(OPERATION, run).await
    }
}

impl PageRows {
    fn parse(
        query: &SearchQuery,
        slice: Slice,
        rows: &[PgRow],
        counted_at: Instant,
    ) -> Result<Self, sqlx::Error> {
        let total = parse_total(rows, counted_at)?;
        let items = rows.iter().filter_map(|row| parse_item(query, row).transpose());
        let mut items = items.collect::<Result<Vec<_>, _>>()?;
        let size = query.page.size() as usize;
        let has_more = items.len() > size;
        items.truncate(size);
        let last = items.len().checked_sub(1).map(|last| parse_position(query, &rows[last])).transpose()?;
        Ok(Self { slice, items, last, has_more, total })
    }

    /// The total, which may be an old one: exact if the list ends on this page, else at least what the page
    /// shows.
    fn list_total(&self, query: &SearchQuery) -> u64 {
        let (known, count) = (self.total.count, self.items.len() as u64);
        if matches!(query.after, Some(After::Position(_))) {
            // The number of chartsets before the page is not known.
            return known;
        }
        let end = self.slice.offset + count;
        if count < self.slice.limit.min(query.page.size().into()) {
            // The list ends on this page, or before it; for a page from its end, it begins there.
            return if count > 0 || self.slice.offset == 0 { end } else { known.min(end) };
        }
        if self.slice.from_end {
            return known;
        }
        let is_last = query.after.is_some() && !self.has_more;
        if is_last { end } else { known.max(end + u64::from(self.has_more)) }
    }

    fn into_page(self, query: &SearchQuery) -> ChartsetPage {
        let total = self.list_total(query);
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

/// Parses a row with the number of chartsets of each bin.
fn parse_histogram(rows: &[PgRow]) -> Result<[u64; Rating::BINS], sqlx::Error> {
    let counts: Vec<i64> = rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get(0)?;
    let counts = counts.into_iter().map(u64::try_from).collect::<Result<Vec<_>, _>>().map_err(corrupt)?;
    counts.try_into().map_err(|_| corrupt("another number of bins"))
}

fn decode_error(error: sqlx::Error) -> ReadError {
    read_error(OPERATION, error)
}

/// Parses the chartset of a row; `None` for the single row of an empty page, which contains only the total.
fn parse_item(query: &SearchQuery, row: &PgRow) -> Result<Option<ListItem>, sqlx::Error> {
    let Some(id) = row.try_get::<Option<String>, _>("id")? else { return Ok(None) };
    let columns = ListedColumns::from_row(row)?;
    let chartset = columns.into_chartset(parse_chartset_id(&id)?)?;
    let item = ListItem::new(&chartset).map_err(corrupt)?;
    let item = if query.includes_rating { with_ratings(item, row)? } else { item };
    Ok(Some(if query.includes_updated { item.with_updated(row.try_get("updated")?) } else { item }))
}

fn with_ratings(item: ListItem, row: &PgRow) -> Result<ListItem, sqlx::Error> {
    // NULL if the chartset is not shown any more; 0 if none of its charts has a rating.
    let ratings: Option<Vec<i16>> = row.try_get("ratings")?;
    Ok(match ratings.as_deref() {
        Some(&[least, greatest]) if greatest > 0 => {
            item.with_ratings(least.unsigned_abs(), greatest.unsigned_abs())
        }
        _ => item,
    })
}

/// Parses the position of a row in the order of the query.
fn parse_position(query: &SearchQuery, row: &PgRow) -> Result<ListPosition, sqlx::Error> {
    let value = match query.sort {
        Sort::Bpm | Sort::MainBpm | Sort::Density => SortValue::Number(row.try_get("key")?),
        Sort::Title | Sort::Artist => SortValue::Name(row.try_get("key")?),
        Sort::Relevance if query.text.is_some() => {
            let rank: i32 = row.try_get("relevance")?;
            SortValue::Relevance(u8::try_from(rank).map_err(corrupt)?, row.try_get("key")?)
        }
        Sort::Rating => SortValue::Integer(row.try_get::<i16, _>("key")?.into()),
        Sort::Updated | Sort::Length | Sort::Notes | Sort::Relevance => {
            SortValue::Integer(row.try_get("key")?)
        }
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

    async fn rating_histogram(&self, query: &SearchQuery) -> Result<RatingHistogram, ReadError> {
        let rows = self.fetch(|statement| push_rating_histogram(statement, query)).await?;
        let chartsets = parse_histogram(&rows).map_err(decode_error)?;
        Ok(RatingHistogram { chartsets, position: None })
    }
}
