//! The PostgreSQL search engine, and what Meilisearch needs of the catalogue.
//!
//! Counts and deep pages read many rows, and a row of `chartsets` has 680 bytes. `shown_chartsets` has a row of
//! 150 bytes for each visible chartset, with the columns that lists filter and sort by. Each sort has an index
//! that covers the filters, so skipped rows are read from the index alone. A trigger maintains the table, so it
//! is also correct while programs of two versions run. Its cost is 135 MB for 300,000 chartsets, and a lower
//! ingest rate (benchmarks/results/2026-11-21-postgres-lists.md, 2026-11-25-lists-3m.md).
//!
//! A list after a cursor reads first the rest with the same value of the sort, then those with the next values:
//! one condition for both would skip all of the same value. A snapshot for each walk would be state in the
//! service, and memory that clients control.

pub(crate) mod chartset_changes;
pub(crate) mod filterable_charts;
pub(crate) mod indexed_chartsets;
pub(crate) mod postgres_search;
pub(crate) mod search_order;
#[cfg(test)]
pub(crate) mod search_plan_tests;
pub(crate) mod search_sql;
pub(crate) mod total_cache;
