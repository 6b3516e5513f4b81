//! The Meilisearch engine of Browse: several independent nodes, each with a whole copy of the catalogue.
//!
//! - [`IndexWriter`] writes to one node. It awaits every task and counts what was indexed. A rebuild fills an index
//!   beside the live one and takes its place in one step.
//! - [`MeilisearchEngine`] reads, each page from one node. It passes over nodes that are away, busy, of another format
//!   or too far behind.
//!
//! What an index holds is said by the index: the checkpoint lies in the node, in a small index of its own that is
//! swapped together with the documents. A node that lost its data, or was restored from an old snapshot, is as old as
//! it says.
//!
//! # What is exact
//!
//! For the same catalogue every list without free text is the list of the PostgreSQL engine: the same order, the same
//! total, any page. Nothing is left to Meilisearch's folding: what is sorted by is written in hexadecimal digits
//! (`order`), parts of creators' names in a code (`creator`), and the words of other scripts than Latin as well
//! (`words`). With free text Meilisearch finds all that PostgreSQL finds, and what is mistyped. Known limits of that:
//! of an unfinished last word the first thousand completions are looked for where it has five letters or more (two in
//! other scripts than Latin), and of all names in one attribute the first 65,535 words are indexed.
//!
//! A page that contradicts itself is never served: too few sets for its total, one of them twice, or out of order,
//! which is how a search that was cut off comes back. In the order of relevance, which nobody else can check, the
//! settings see to that: Meilisearch cuts off after a minute, a search is given up after seconds.
//!
//! # What needs which feature of the server
//!
//! Both are experimental in Meilisearch 1.50, off in a new node, and switched on by a rebuild and by
//! [`IndexWriter::apply_settings`] where the server has them.
//!
//! - `containsFilter`: part of a creator's name. Without it such queries are [`Unanswerable::NoContains`], and the
//!   PostgreSQL engine, which stands in, answers them exactly; all others are answered as ever.
//! - `legacySearch`: the cost of deep pages. Without it every document before the page is loaded, and the last of
//!   thousands of pages takes seconds; nothing else changes.

mod arguments;
mod config;
mod creator;
mod difference;
mod document;
mod engine;
mod error;
mod filter;
mod http;
mod node;
mod order;
mod quarantine;
mod reader;
mod request;
mod retry;
mod settings;
mod standing;
mod tasks;
mod upload;
mod words;
mod writer;

pub use arguments::{InconsistentNodes, MeilisearchArguments};
pub use config::{ApiKey, MalformedNodeUrl, NodeConfig, NodeUrl, SearchConfig};
pub use difference::{Difference, DifferenceKind};
pub use engine::MeilisearchEngine;
pub use error::SearchError;
pub use quarantine::Quarantined;
pub use request::Unanswerable;
pub use settings::SettingDifference;
pub use writer::{Applied, Batch, FORMAT, IndexState, IndexWriter, Target};
