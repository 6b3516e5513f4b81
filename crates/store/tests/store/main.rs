//! Tests of the store with a real PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a test fails if its setup does")]

mod analysis;
mod catalogue_poll;
mod change_feed;
mod chartset_changes;
mod chartset_records;
mod concurrent_ingest;
mod connections;
mod half_open_connections;
mod import;
mod incremental_ingest;
mod ingest;
mod lookups;
mod migrations;
mod outage;
mod page_reads;
mod percentiles;
mod process_locks;
mod removal;
mod search_cursors;
mod search_filters;
mod search_pages;
mod search_text;
mod similar_charts;
mod sitemap;
mod support;
mod variants;
mod verification;
