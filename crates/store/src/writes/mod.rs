//! What changes the catalogue: migrations, ingest, import, removals, upkeep and verification.

pub(crate) mod backfill;
pub(crate) mod content_fingerprint;
pub(crate) mod derive;
pub(crate) mod folding;
pub(crate) mod import;
pub(crate) mod incremental_ingest;
pub(crate) mod last_ingest;
pub(crate) mod listed_charts;
pub(crate) mod migration;
#[cfg(test)]
pub(crate) mod migration_tests;
pub(crate) mod object_upkeep;
pub(crate) mod put_chartset;
pub(crate) mod put_chartset_sql;
pub(crate) mod removal;
pub(crate) mod removed_members;
pub(crate) mod replace_rox;
pub(crate) mod verify;
