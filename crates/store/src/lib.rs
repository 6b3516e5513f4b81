//! The catalogue in PostgreSQL: migrations, reads, writes, and the PostgreSQL search engine.
//!
//! This is the only crate that contains SQL. The tables and what they hold:
//!
//! | Table | One row per | Holds |
//! |---|---|---|
//! | `charts`, `rox_files` | note hash | numbers and ROX bytes of the first file ingested with this hash, or the name of an object with them |
//! | `chart_previews` | note hash | JSON computed from the ROX file, like `charts.density_curve` |
//! | `chartset_charts` | chart in a chartset | metadata from the file in that song folder |
//! | `chart_aliases` | alias of a chart in a chartset | MD5 digests of its files, and variants with rolls |
//! | `chartsets` | chartset | values derived from its charts by [`chart_index_domain::assemble_chartset`] |
//! | `removals` | removed chart or chartset, stored or not | time and reason; `removed_at_ms` elsewhere is a copy |
//! | `erased_files` | erased chart | the digest of its first ROX file |
//! | `shown_chartsets` | shown chartset | the columns that lists filter and sort by, written by a trigger |
//! | `shown_charts` | chart of a shown chartset | the columns that lists filter charts by, written with them |
//! | `chart_percentiles` | number of keys | the percentiles of ratings and peak densities |
//! | `chartset_checks`, `ingest_fingerprints` | chartset; folder or archive | last checks and digests, so that an ingest skips unchanged files |
//! | `hash_filters` | hash filter | the last two filters as they are served |
//! | `pending_changes`, `catalogue_changes` | change; changed chart or chartset | the change feed: changes without and with a sequence |
//! | `mirror`, `mirror_unconfirmed`, `mirror_replacements` | one row; chartset; chart | how far this index, if it is a mirror, has followed another one |
//! | `mirror_refusals` | chart or chartset | a change of that other index that was refused, and when it is tried again |
//! | `last_ingest` | one row | when the last ingest began, and when one was last complete |
//! | `change_feed`, `change_feed_gaps` | one row; gap | the last sequence of the feed, and the ranges that were never assigned |
//!
//! A chart is *known* if it is not removed and at least one chartset that is not removed contains it. A
//! chartset is *shown* if it is not removed and contains a chart that is not removed. Lookups and searches
//! return nothing else.
//!
//! Statements are written next to the functions that run them. A test lets PostgreSQL prepare every static one
//! (`tests/store/statements.rs`); column lists that several statements share are macros.

mod arguments;
mod backfill;
mod catalogue_poll;
mod catalogue_watch;
mod cdn_purges;
mod change_feed;
mod change_feed_check;
mod change_feed_pages;
mod chart_aliases;
mod chart_variants;
mod chartset_changes;
mod chartset_records;
mod circuit_breaker;
mod column_values;
mod config;
mod connection_health;
mod connection_pool;
mod content_fingerprint;
mod database_locale;
mod database_url;
mod derive;
mod derived_columns;
mod error;
mod export_snapshot;
mod filterable_charts;
mod folding;
mod hash_filters;
mod import;
mod incremental_ingest;
mod indexed_chartsets;
mod last_ingest;
#[cfg(test)]
mod lookup_plan_tests;
mod lookups;
mod metrics;
mod migration;
#[cfg(test)]
mod migration_tests;
mod mirror;
mod mirror_refusals;
mod newest_chart;
mod object_upkeep;
mod packs;
mod page_reads;
mod percentiles;
mod pooled_connection;
mod postgres_search;
mod process_locks;
mod put_chartset;
mod put_chartset_sql;
mod removal;
mod removal_lock;
mod removed_members;
mod replace_rox;
mod rows;
mod search_order;
#[cfg(test)]
mod search_plan_tests;
mod search_sql;
mod server;
mod server_identity;
mod similar_charts;
mod sitemap;
mod sql_text;
mod standby;
mod standby_polls;
mod statement_columns;
mod store;
mod stored_files;
mod stored_times;
mod text_search;
mod time_limit;
mod total_cache;
mod updated_times;
mod verify;

pub use arguments::DatabaseArguments;
pub use backfill::{BackfillState, ComputedChart};
pub use catalogue_watch::CatalogueWatch;
pub use change_feed::Backlog;
pub use change_feed_check::FeedMismatch;
pub use change_feed_pages::{FeedChange, FeedEntity, FeedEntry, FeedError, FeedPage, PageEnd};
pub use chart_aliases::ChartIdentifier;
pub use chart_variants::{ChartVariant, ChartVariants, VariantRequest};
pub use chartset_changes::{ChangesError, ChartsetChanges};
pub use chartset_records::CheckedRecord;
pub use config::StoreConfig;
pub use content_fingerprint::content_fingerprint;
pub use database_url::{DatabaseUrl, InvalidDatabaseUrl};
pub use error::StoreError;
pub use export_snapshot::{ExportSnapshot, ExportedRox, SnapshotSize};
pub use hash_filters::{HashFilterState, NewHashFilter};
pub use import::{ImportOutcome, ImportedChartset, Precedence, StoredNumbers};
pub use incremental_ingest::{ExpectedChartset, InputFingerprint, UnchangedChartset};
pub use indexed_chartsets::ShownCount;
pub use last_ingest::LastIngest;
pub use lookups::{KnownChart, RoxFile, RoxSource};
pub use mirror::MirrorState;
pub use mirror_refusals::RefusedChange;
pub use object_upkeep::{CollectedObjects, FilePlace, MovedFiles};
pub use postgres_search::PostgresSearch;
pub use process_locks::{ProcessLocks, ProcessRole};
pub use put_chartset::{PutEffect, PutOutcome};
pub use removal::{Removal, RemovalOutcome};
pub use removed_members::RemovedMember;
pub use sitemap::SitemapPart;
pub use standby::Standby;
pub use store::Store;
pub use stored_files::FileTable;
pub use verify::{CatalogueCounts, ColumnMismatch, StoredChart};
