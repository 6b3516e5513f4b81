//! The Meilisearch engine: its contract with the server, its behaviour with real nodes, and its agreement with the
//! PostgreSQL engine.
//!
//! Tests that need a Meilisearch server are ignored, unless they are asked for: `make test` does where there is one.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test ends at the first surprise, and prints what it compared"
)]

mod catalogue;
mod conformance;
mod contract;
mod exchanges;
mod memory;
mod nodes;
mod proxy;
mod queries;
mod silence;
mod support;
mod text;
mod writing;
