//! The catalogue in PostgreSQL: migrations, reads, writes, and the PostgreSQL search engine.
//!
//! This is the only crate that contains SQL. The tables and what they hold:
//!
//! | Table | One row per | Holds |
//! |---|---|---|
//! | `charts`, `rox_files` | note hash | numbers and ROX bytes of the first file ingested with this hash, or the name of an object with them |
//! | `chart_previews` | | nothing: the versions before have previews here |
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
//! | `cdn_purges` | one row | the position up to which `follow` has purged a CDN |
//! | `pending_changes` | change | the changes of a running transaction |
//! | `catalogue_changes` | changed chart or chartset | the change feed |
//! | `mirror`, `mirror_unconfirmed`, `mirror_replacements` | one row; chartset; chart | how far this index, if it is a mirror, has followed another one |
//! | `mirror_refusals` | chart or chartset | a change of that other index that was refused, and when it is tried again |
//! | `last_ingest` | one row | when the last ingest began, and when one was last complete |
//! | `change_feed`, `change_feed_gaps` | one row; gap | the last sequence of the feed, and the ranges that were never assigned |
//!
//! Several statements read views and functions, whose text PostgreSQL plans as part of the statement:
//!
//! | View or function | Holds |
//! |---|---|
//! | `known_charts` | the charts that are known |
//! | `server_state` | the server, its position in the WAL, and what identifies it in the feed |
//! | `checked_chartsets` | chartsets with their last check |
//! | `indexed_chartsets` | shown chartsets with what search indexes contain of them |
//! | `chart_occurrences`, `shown_hashes` | the first chartsets with a chart; the charts of a chartset |
//! | `similar_charts`, `pattern_order` | the charts that play like another one; their order in its index |
//!
//! A chart is *known* if it is not removed and at least one chartset that is not removed contains it. A
//! chartset is *shown* if it is not removed and contains a chart that is not removed. Lookups and searches
//! return nothing else.
//!
//! Statements are written next to the functions that run them; column lists that several statements share are
//! macros.

mod connection;
mod error;
mod feed;
#[cfg(test)]
mod plan_tests;
mod reads;
mod schema;
mod search;
mod time_limit;
mod writes;

pub use connection::arguments::DatabaseArguments;
pub use connection::config::StoreConfig;
pub use connection::database_url::{DatabaseUrl, InvalidDatabaseUrl};
pub use connection::process_locks::{ProcessLocks, ProcessRole};
pub use connection::server_report::ServerReport;
pub use connection::standby::Standby;
pub use connection::store::Store;
pub use error::StoreError;
pub use feed::catalogue_watch::CatalogueWatch;
pub use feed::change_feed_check::FeedMismatch;
pub use feed::change_feed_pages::{FeedEntity, FeedEntry, FeedError, FeedPage, PageEnd};
pub use feed::export_snapshot::{ExportSnapshot, ExportedRox, SnapshotSize};
pub use feed::mirror::MirrorState;
pub use feed::mirror_refusals::RefusedChange;
pub use reads::chart_aliases::ChartIdentifier;
pub use reads::chart_variants::{ChartVariant, ChartVariants, VariantRequest};
pub use reads::chartset_records::CheckedRecord;
pub use reads::hash_filters::{HashFilterState, NewHashFilter};
pub use reads::lookups::{KnownChart, RoxFile, RoxSource};
pub use reads::sitemap::SitemapPart;
pub use search::chartset_changes::{ChangesError, ChartsetChanges};
pub use search::indexed_chartsets::ShownCount;
pub use search::postgres_search::PostgresSearch;
pub use writes::backfill::BackfillState;
pub use writes::content_fingerprint::content_fingerprint;
pub use writes::import::{ImportOutcome, ImportedChartset, Precedence};
pub use writes::incremental_ingest::{ExpectedChartset, InputFingerprint, UnchangedChartset};
pub use writes::last_ingest::LastIngest;
pub use writes::object_upkeep::{CollectedObjects, FilePlace, MovedFiles};
pub use writes::put_chartset::{PutEffect, PutOutcome};
pub use writes::removal::{Removal, RemovalOutcome};
pub use writes::removed_members::RemovedMember;
pub use writes::verify::{CatalogueCounts, ColumnMismatch, StoredChart};
