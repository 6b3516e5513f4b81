//! The store against a real PostgreSQL.
#![expect(clippy::unwrap_used, reason = "what a test is made of is there, or the test fails")]

mod generation;
mod ingest;
mod load;
mod migrations;
mod node_locks;
mod outage;
mod outbox;
mod parallel;
mod reading;
mod reingest;
mod removal;
mod search_filters;
mod search_pages;
mod search_text;
mod silence;
mod support;
mod verification;
