//! The Meilisearch engine of Browse.

mod config;
mod engine;
mod error;
mod writer;

pub use config::{ApiKey, MalformedNodeUrl, NodeConfig, NodeUrl, SearchConfig};
pub use engine::MeilisearchEngine;
pub use error::SearchError;
pub use writer::{Batch, FORMAT, IndexState, IndexWriter, Target};
