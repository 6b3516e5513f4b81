//! The catalogue in PostgreSQL: migrations, reads, writes, and the PostgreSQL search engine.
//!
//! The only crate that knows SQL. What belongs to a note hash (numbers, ROX bytes) is in `charts` and
//! `rox_files`, what belongs to a file in a folder is in `chartset_charts`, and what follows from the charts of a
//! folder is in `chartsets`, always computed by [`chart_index_domain::assemble_chartset`].
//!
//! A chart is known while it is not removed and stands in a chartset that is not removed. A chartset is shown
//! while it is not removed and holds a chart that is not removed. No read ever sees anything else.

mod breaker;
mod columns;
mod config;
mod counts;
mod database_url;
mod error;
mod fingerprint;
mod generation;
mod indexed;
mod lease;
mod listener;
mod members;
mod migration;
mod node_locks;
mod outbox;
mod pool;
mod put;
mod put_sql;
mod read;
mod reingest;
mod removal;
mod removal_lock;
mod rows;
mod search;
mod search_limit;
#[cfg(test)]
mod search_plans;
mod search_sql;
mod text_columns;
mod verify;
mod words;

pub use config::StoreConfig;
pub use database_url::{DatabaseUrl, DatabaseUrlParser, InvalidDatabaseUrl};
pub use error::StoreError;
pub use generation::CatalogueWatch;
pub use indexed::{ShownCount, Snapshot};
pub use listener::ChangesListener;
pub use node_locks::{NodeLocks, NodeRole};
pub use outbox::{Changes, ChangesError, RebuildReason};
pub use pool::Store;
pub use put::{PutEffect, PutOutcome, content_fingerprint};
pub use read::KnownChart;
pub use reingest::{CheckedChartset, ExpectedChartset, IngestFingerprint};
pub use removal::RemovalOutcome;
pub use search::PostgresSearch;
pub use verify::{AggregateMismatch, Counts, StoredChart};
