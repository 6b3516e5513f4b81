//! The Meilisearch engine of Browse.

mod config;
mod creator;
mod document;
mod engine;
mod error;
mod filter;
mod http;
mod node;
mod order;
mod reader;
mod request;
mod settings;
mod standing;
mod tasks;
mod words;
mod writer;

pub use config::{ApiKey, MalformedNodeUrl, NodeConfig, NodeUrl, SearchConfig};
pub use engine::MeilisearchEngine;
pub use error::SearchError;
pub use request::Unanswerable;
pub use writer::{Batch, FORMAT, IndexState, IndexWriter, Target};
