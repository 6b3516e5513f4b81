//! The search engine in PostgreSQL.

use std::sync::Arc;

use async_trait::async_trait;
use chart_index_domain::ReadError;
use chart_index_domain::search::{ChartsetPage, Engine, Generation, ListItem, SearchIndex, SearchQuery};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, Postgres, QueryBuilder, Row};

use crate::columns::ListedColumns;
use crate::counts::{CountKey, Counted, Counts};
use crate::error::{corrupt, read_error};
use crate::generation::OutboxState;
use crate::lease::Lease;
use crate::search_limit::SearchShed;
use crate::search_sql::{push_count, push_page};
use crate::{CatalogueWatch, Store};

/// How many rows may lie before a page that is read together with its total. Beyond that the total is counted first,
/// since it says from which end of the list the page is nearer.
const MAX_OFFSET_WITHOUT_TOTAL: u64 = 1_000;

const OPERATION: &str = "search chartsets";

/// The search engine that asks PostgreSQL itself: always up to date, and exact. Clones share the cached totals.
#[derive(Debug, Clone)]
pub struct PostgresSearch {
    store: Store,
    watch: CatalogueWatch,
    counts: Arc<Counts>,
}

/// What every row of a page says beside its chartset.
#[derive(sqlx::FromRow)]
struct CountedRow {
    #[sqlx(flatten)]
    state: OutboxState,
    total: i64,
}

impl CountedRow {
    fn counted(&self) -> Result<Counted, sqlx::Error> {
        let total = u64::try_from(self.total).map_err(corrupt)?;
        Ok(Counted { total, generation: self.state.generation() })
    }
}

impl PostgresSearch {
    /// A search engine over the catalogue, whose generation is the one that is watched.
    #[must_use]
    pub fn new(store: Store, watch: CatalogueWatch) -> Self {
        Self { store, watch, counts: Arc::default() }
    }

    /// One page. Of several lists with one filter that come at the same time, one counts.
    async fn page(&self, query: &SearchQuery, generation: Generation) -> Result<ChartsetPage, ReadError> {
        let key = CountKey::new(query, generation);
        let (page, counted) = match self.counts.0.get_value_or_guard_async(&key).await {
            Ok(counted) => self.page_of_total(query, counted).await?,
            Err(guard) => {
                let (page, counted) = self.counted_page(query).await?;
                // Fails only where the entry was removed meanwhile, which costs one count.
                let _ = guard.insert(counted);
                return Ok(page);
            }
        };
        self.counts.0.insert(key, counted);
        Ok(page)
    }

    /// A page whose total is not cached.
    async fn counted_page(&self, query: &SearchQuery) -> Result<(ChartsetPage, Counted), ReadError> {
        // The total of a text or of part of a name also says how to find the matches.
        let is_estimated = query.text.is_none() && query.creator.is_none();
        if is_estimated && query.page.offset() <= MAX_OFFSET_WITHOUT_TOTAL {
            return self.read_page(query, None).await;
        }
        let counted = self.count(query).await?;
        self.page_of_total(query, counted).await
    }

    /// A page whose total was counted before; counted again, in the snapshot of the page, where the catalogue has
    /// changed since.
    async fn page_of_total(
        &self,
        query: &SearchQuery,
        counted: Counted,
    ) -> Result<(ChartsetPage, Counted), ReadError> {
        let (page, found) = self.read_page(query, Some(counted.total)).await?;
        if found == counted {
            return Ok((page, found));
        }
        self.read_page(query, None).await
    }

    async fn count(&self, query: &SearchQuery) -> Result<Counted, ReadError> {
        let rows = self.fetch(|statement| push_count(statement, query)).await?;
        counted(&rows).map_err(unreadable)
    }

    /// The page and its total in the snapshot of one statement, which counts where no total is given.
    async fn read_page(
        &self,
        query: &SearchQuery,
        total: Option<u64>,
    ) -> Result<(ChartsetPage, Counted), ReadError> {
        let rows = self.fetch(|statement| push_page(statement, query, total)).await?;
        let counted = counted(&rows).map_err(unreadable)?;
        let items = rows.iter().filter_map(|row| list_item(row).transpose());
        let items = items.collect::<Result<_, _>>().map_err(unreadable)?;
        Ok((ChartsetPage { items, total: counted.total }, counted))
    }

    /// The rows of a statement. A request that waits for the count of another one holds no connection meanwhile.
    async fn fetch(&self, push: impl Fn(&mut QueryBuilder<Postgres>)) -> Result<Vec<PgRow>, ReadError> {
        let run = |mut lease: Lease| {
            let mut statement = QueryBuilder::new("");
            push(&mut statement);
            // Planned anew each time: a plan for any text or range is a bad plan for most.
            async move { statement.build().persistent(false).fetch_all(lease.connection()).await }
        };
        self.store.read(OPERATION, run).await
    }
}

fn counted(rows: &[PgRow]) -> Result<Counted, sqlx::Error> {
    CountedRow::from_row(rows.first().ok_or(sqlx::Error::RowNotFound)?)?.counted()
}

fn unreadable(error: sqlx::Error) -> ReadError {
    read_error(OPERATION, error)
}

/// The chartset of a row. `None` for the row of an empty page, which says nothing but the total.
fn list_item(row: &PgRow) -> Result<Option<ListItem>, sqlx::Error> {
    let Some(id) = row.try_get::<Option<String>, _>("id")? else { return Ok(None) };
    let columns = ListedColumns::from_row(row)?;
    let chartset = columns.into_chartset(id.parse().map_err(corrupt)?)?;
    ListItem::new(&chartset).map(Some).map_err(corrupt)
}

#[async_trait]
impl SearchIndex for PostgresSearch {
    fn engine(&self) -> Engine {
        Engine::Postgres
    }

    fn generation(&self) -> Generation {
        self.watch.generation()
    }

    /// The page is always of the present, whatever generation is asked for. Above
    /// [`StoreConfig::max_searches`](crate::StoreConfig) in flight, searches wait; those that would wait too long are
    /// [`ReadError::Unavailable`].
    async fn search(&self, query: &SearchQuery, generation: Generation) -> Result<ChartsetPage, ReadError> {
        let permit = self.store.searches().acquire().await;
        let unavailable =
            |shed: SearchShed| ReadError::Unavailable { operation: OPERATION, source: shed.into() };
        let _permit = permit.map_err(unavailable)?;
        self.page(query, generation).await
    }
}
