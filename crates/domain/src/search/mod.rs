//! Browsing: the query, the page, and the trait between them.

mod query;
mod query_string;

pub use query::{Bounds, Direction, KeySet, PageRequest, SearchQuery, Sort};
pub use query_string::{ParameterError, parse_query_string};

use async_trait::async_trait;

use crate::{Chartset, ReadError};

/// One page of chartsets.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartsetPage {
    /// The chartsets of the page, in order.
    pub items: Vec<Chartset>,
    /// How many chartsets match the query in all: exact at any size.
    pub total: u64,
}

/// A search engine over the chartsets that are shown.
///
/// For the same catalogue every engine gives the same order and the same total for every query; only free text
/// may match differently, where an engine tolerates typing errors.
#[async_trait]
pub trait SearchIndex: Send + Sync {
    /// The name of the engine, as the answer header `X-Search-Engine` gives it.
    fn engine(&self) -> &'static str;

    /// One page of the chartsets that match.
    ///
    /// # Errors
    /// [`ReadError::Unavailable`] while the engine cannot answer.
    async fn search(&self, query: &SearchQuery) -> Result<ChartsetPage, ReadError>;
}
