//! Browsing: the query, the page, and the trait between them.

mod changes;
mod list_item;
mod query;
mod query_string;

use std::fmt;

pub use changes::{CatalogueChanges, Checkpoint, HistoryDigest, RecordedCheckpoint};
pub use list_item::ListItem;
pub use query::{Bounds, Direction, KeySet, PageRequest, SearchQuery, Sort};
pub use query_string::{ParameterError, parse_query_string};

use async_trait::async_trait;

use crate::{Chartset, Keywords, ReadError};

/// One page of chartsets.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartsetPage {
    /// The chartsets of the page, in order.
    pub items: Vec<ListItem>,
    /// How many chartsets match the query in all: exact at any size.
    pub total: u64,
}

/// A chartset as an engine that keeps documents of its own holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedChartset {
    /// What lists show.
    pub chartset: Chartset,
    /// What it is found by beside its names.
    pub keywords: Keywords,
    /// When the set last changed in the index, in Unix epoch milliseconds.
    pub updated_at_ms: i64,
}

/// The engines that list chartsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Engine {
    /// A Meilisearch server.
    Meilisearch,
    /// PostgreSQL itself.
    Postgres,
}

impl Engine {
    /// The name, as the answer header `X-Search-Engine` and the metrics give it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Meilisearch => "meilisearch",
            Self::Postgres => "postgres",
        }
    }
}

/// A state of what an engine holds: two equal generations of one engine give the same pages, on every replica.
/// Later ones are greater where the engine says so; otherwise they only differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A search engine over the chartsets that are shown.
///
/// For the same catalogue every engine gives the same order and the same total for every query; only free text
/// may match differently, where an engine tolerates typing errors.
#[async_trait]
pub trait SearchIndex: Send + Sync {
    /// Which engine this is.
    fn engine(&self) -> Engine;

    /// The state that a search that begins now would see, or an older one. Asks nobody: it is what was last heard.
    fn generation(&self) -> Generation;

    /// One page of the chartsets that match, from the given generation or a newer one.
    ///
    /// # Errors
    /// [`ReadError::Unavailable`] while the engine cannot answer, or can no longer answer for that generation.
    async fn search(&self, query: &SearchQuery, generation: Generation) -> Result<ChartsetPage, ReadError>;
}
