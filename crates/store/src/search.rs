//! The search engine in PostgreSQL.

use async_trait::async_trait;
use chart_index_domain::ReadError;
use chart_index_domain::search::{ChartsetPage, Engine, Generation, ListItem, SearchIndex, SearchQuery};

use crate::columns::ListedColumns;
use crate::error::corrupt;
use crate::lease::Lease;
use crate::search_sql::page_statement;
use crate::{CatalogueWatch, Store};

/// The search engine that asks PostgreSQL itself: always up to date, and exact.
#[derive(Debug, Clone)]
pub struct PostgresSearch {
    store: Store,
    watch: CatalogueWatch,
}

/// A row of a page. A page past the last has one row, which holds nothing but the total.
#[derive(sqlx::FromRow)]
struct PageRow {
    total: i64,
    id: Option<String>,
}

impl PostgresSearch {
    /// A search engine over the catalogue, whose generation is the one that is watched.
    #[must_use]
    pub const fn new(store: Store, watch: CatalogueWatch) -> Self {
        Self { store, watch }
    }

    async fn page(&self, query: &SearchQuery, mut lease: Lease) -> Result<ChartsetPage, sqlx::Error> {
        let rows = page_statement(query)
            .build()
            // Planned anew each time: a plan for any text or range is a bad plan for most.
            .persistent(false)
            .fetch_all(lease.connection())
            .await?;
        let mut page = ChartsetPage { items: Vec::with_capacity(rows.len()), total: 0 };
        for row in &rows {
            let PageRow { total, id } = sqlx::FromRow::from_row(row)?;
            page.total = u64::try_from(total).map_err(corrupt)?;
            if let Some(id) = id {
                let columns: ListedColumns = sqlx::FromRow::from_row(row)?;
                let chartset = columns.into_chartset(id.parse().map_err(corrupt)?)?;
                page.items.push(ListItem::of(&chartset).map_err(corrupt)?);
            }
        }
        Ok(page)
    }
}

#[async_trait]
impl SearchIndex for PostgresSearch {
    fn engine(&self) -> Engine {
        Engine::Postgres
    }

    fn generation(&self) -> Generation {
        self.watch.generation()
    }

    /// The page is always of the present, whatever generation is asked for.
    async fn search(&self, query: &SearchQuery, _generation: Generation) -> Result<ChartsetPage, ReadError> {
        let operation = "search chartsets";
        self.store.read(operation, |lease| self.page(query, lease)).await
    }
}
