//! The Meilisearch engine: with recorded exchanges, with real nodes, and compared with the PostgreSQL engine.
//!
//! Tests that need a Meilisearch server are ignored by default. `make test-system` runs them if there is one.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and prints what it compared"
)]

mod conformance;
mod free_text;
mod nodes;
mod random_catalogue;
mod random_queries;
mod recorded_exchanges;
mod recording;
mod reference_search;
mod scripts;
mod silent_connections;
mod support;
mod writing;
