//! `chart-indexer sync`, `rebuild` and `verify --search`: the real programs, a real PostgreSQL, and a real Meilisearch.
//!
//! They need a `meilisearch` on the PATH and are ignored, unless they are asked for: `make test` does where there is one.
#![expect(clippy::unwrap_used, reason = "a test ends where its set-up fails")]

mod failures;
mod following;
mod keys;
mod kills;
mod nodes;
mod serving;
mod support;
mod too_large;
