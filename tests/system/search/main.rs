//! `chart-indexer sync`, `follow`, `rebuild` and `verify --search` with real programs, PostgreSQL and
//! Meilisearch.
//!
//! They need a `meilisearch` on the PATH and are ignored by default. `make test-system` runs them if there is
//! one.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod api_keys;
mod crashes;
mod failures;
mod metrics;
mod nodes;
mod quarantine;
mod serving;
mod spans;
mod support;
mod sync_and_rebuild;
