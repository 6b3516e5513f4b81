//! The chartset list: query, page, and the trait of search engines.

mod changes;
mod chart_filter;
mod cursor;
mod list_item;
mod query;
mod query_string;
mod typed_query;

pub use changes::{CatalogueChanges, UnappliedChanges};
pub use chart_filter::{ChartConditions, ChartFilter, ChartValue, FilterableChart};
pub use list_item::ListItem;
pub use query::{After, Bounds, Direction, KeySet, ListPosition, PageRequest, SearchQuery, Sort, SortValue};
pub use query_string::{MAX_NUMBER, MAX_TEXT_CHARACTERS, ParameterError, Parameters, parse_query_string};
pub use typed_query::{Hint, MAX_VALUES, TypedQuery};

use async_trait::async_trait;

use crate::{Chartset, Keywords, Position, Rating, ReadError};

/// One page of the chartset list, with the total of all pages.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartsetPage {
    /// The chartsets of the page, in order.
    pub items: Vec<ListItem>,
    /// The number of chartsets that match the query, exact, but possibly 30 s older than the items
    /// (docs/api.md, "Chartset list").
    pub total: u64,
    /// The last chartset of the page, after which the list continues; `None` on the last page, and if the
    /// engine cannot compare positions in this order.
    pub next: Option<ListPosition>,
    /// The position that the data of the engine, or the total, had at least; `None` if both are of the
    /// catalogue as the search found it.
    pub position: Option<Position>,
}

/// How the ratings of matching charts are distributed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatingHistogram {
    /// For each [bin](Rating::bin), the number of chartsets that a query finds with it as its range of ratings.
    pub chartsets: [u64; Rating::BINS],
    /// As that of a [`ChartsetPage`].
    pub position: Option<Position>,
}

/// A chartset in the form in which a search engine with its own documents indexes it.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedChartset {
    /// What lists show.
    pub chartset: Chartset,
    /// What lists filter its charts by, in no particular order.
    pub charts: Vec<FilterableChart>,
    /// The highest main BPM of its charts.
    pub bpm_main_max: f64,
    /// Further search terms.
    pub keywords: Keywords,
    /// When the chartset last changed, in Unix epoch milliseconds.
    pub updated_at_ms: i64,
}

impl IndexedChartset {
    /// The least and the greatest rating of its charts; `None` if none has a rating.
    #[must_use]
    pub fn ratings(&self) -> Option<(Rating, Rating)> {
        let ratings = || self.charts.iter().filter_map(|chart| chart.rating);
        ratings().min().zip(ratings().max())
    }

    /// The notes of the chart with the most.
    #[must_use]
    pub fn notes_max(&self) -> u32 {
        self.charts.iter().map(|chart| chart.notes).max().unwrap_or(0)
    }
}

/// The engine that a page of the list is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Engine {
    /// A Meilisearch server.
    Meilisearch,
    /// The store's own tables.
    Postgres,
}

impl Engine {
    /// The name in the response header `X-Search-Engine`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Meilisearch => "meilisearch",
            Self::Postgres => "postgres",
        }
    }
}

/// A search engine over the listed chartsets.
///
/// For the same catalogue, all engines return the same order and total for every query, with the exception of
/// free text, for which an engine may tolerate typing errors.
#[async_trait]
pub trait SearchIndex: Send + Sync {
    /// Which engine this is, for metrics, cache keys and responses.
    fn engine(&self) -> Engine;

    /// Whether a search may succeed now, as far as the engine knows without asking anything.
    fn is_available(&self) -> bool {
        true
    }

    /// Whether the engine can run this query, as far as it knows without asking anything.
    fn supports(&self, _query: &SearchQuery) -> bool {
        true
    }

    /// Returns a page of the matching chartsets.
    ///
    /// # Errors [`ReadError::Unavailable`] if the engine is unavailable; [`ReadError::Unsupported`] if it
    /// cannot run this query.
    async fn search(&self, query: &SearchQuery) -> Result<ChartsetPage, ReadError>;

    /// Counts the matches with any rating by the ratings of their charts that meet the conditions for
    /// [one chart](SearchQuery::chart_conditions). A chartset counts once in each bin.
    ///
    /// # Errors As for [`search`](Self::search).
    async fn rating_histogram(&self, query: &SearchQuery) -> Result<RatingHistogram, ReadError>;
}
