//! `chart-indexer sync`, `rebuild` and `verify --search`: the real programs, a real PostgreSQL, and a real Meilisearch
//! where one is on the PATH.
#![expect(clippy::unwrap_used, reason = "a test ends where its set-up fails")]

mod failures;
mod following;
mod keys;
mod kills;
mod nodes;
mod serving;
mod support;
mod too_large;
