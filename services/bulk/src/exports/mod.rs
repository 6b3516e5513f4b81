//! Exports: the files that `chart-indexer export` wrote (docs/api.md, "Exports").
//!
//! This is not `ServeFile` of tower-http: its entity tags are modification times, which differ between
//! replicas, and it ignores `If-Range` with an entity tag, so a client could join parts of two files.

mod export_files;
pub(crate) mod handlers;
pub(crate) mod openapi;
mod range;

pub use export_files::{ExportsSettings, NewestExport};
