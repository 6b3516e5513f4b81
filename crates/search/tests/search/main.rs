//! The Meilisearch engine: its contract with the server, its behaviour with real nodes, and its agreement with the
//! PostgreSQL engine.
//!
//! Tests that need a Meilisearch server print that they are skipped where none is found.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test ends at the first surprise, and says what it skips"
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
