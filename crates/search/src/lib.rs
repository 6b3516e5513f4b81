//! The Meilisearch engine: several independent nodes, each with a full copy of the catalogue.
//!
//! - [`IndexWriter`] writes to one node. It waits for every task and checks the number of documents. A rebuild
//!   fills a second index and swaps it with the live one atomically.
//! - [`MeilisearchEngine`] reads each page from one node. It skips nodes that are unavailable, busy, lagging
//!   too far, or that have no index.
//!
//! The name of an index has its [`FORMAT`]. Programs of two formats use the same nodes side by side, each with
//! an index of its own, until the older one is no longer followed and is deleted.
//!
//! The position of an index in the change feed is stored in the node, in a small index that is swapped together
//! with the documents. A node that lost its data, or was restored from an old snapshot, therefore has an old
//! position and is brought up to date.
//!
//! # Exactness
//!
//! For the same catalogue, every list without free text is the list of the PostgreSQL engine: the same order,
//! the same total, any page. Nothing depends on Meilisearch's folding: sort keys are hexadecimal digits
//! (`sort_keys`), creator names (`creator_codes`) and words of scripts other than Latin (`word_codes`) are
//! encoded. With free text, Meilisearch finds all that PostgreSQL finds, and tolerates typos. Two limits of
//! Meilisearch apply: an unfinished last word of five letters or more (four keys in Korean, two letters in
//! other scripts) is looked up by its first thousand completions, and of the text in one attribute the first
//! 65,535 words are indexed.
//!
//! A page that contradicts itself is an error: one that has too few chartsets for its total, one of them twice,
//! or that is out of order, as when Meilisearch cuts off a search. The order of relevance cannot be checked;
//! there the settings prevent it, since Meilisearch cuts off after a minute, and a search times out after
//! seconds.
//!
//! # Experimental features
//!
//! Both are experimental in Meilisearch 1.50, off in a new node, and switched on by a rebuild where the server
//! has them.
//!
//! - `containsFilter`: searches part of a creator's name. Without it such queries fail with
//!   [`UnsupportedQuery::ContainsFilterOff`], and the PostgreSQL engine runs them as the fallback.
//! - `legacySearch`: the performance of deep pages. Without it every document before the page is loaded, and
//!   the last of thousands of pages takes seconds.

mod arguments;
mod chart_values;
mod config;
mod creator_codes;
mod difference;
mod document;
mod engine;
mod error;
mod filter;
mod index_state;
mod lag;
mod metrics;
mod node;
mod node_health;
mod node_report;
mod page_search;
mod quarantine;
mod rating_bins;
mod retry;
mod search_node;
mod settings;
mod sort_keys;
mod tasks;
mod transport;
mod unsupported_query;
mod upload;
mod word_codes;
mod writer;

pub use arguments::{InconsistentNodes, MeilisearchArguments};
pub use config::{ApiKey, MalformedApiKey, MalformedNodeUrl, NodeConfig, NodeUrl, SearchConfig};
pub use difference::{Difference, DifferenceKind};
pub use engine::MeilisearchEngine;
pub use error::SearchError;
pub use index_state::{FORMAT, Quarantined, Target};
pub use lag::Lag;
pub use node_report::{NodeReport, describe};
pub use settings::SettingDifference;
pub use unsupported_query::UnsupportedQuery;
pub use writer::{Applied, IndexBatch, IndexWriter};
