//! Exports: the files that `chart-indexer export` wrote (docs/api.md, "Exports").
//!
//! Not tower-http's `ServeFile`: it tags files by their time, which differs between replicas, and ignores `If-Range` with
//! an entity tag, so that a client could join parts of two files.

mod export_files;
pub(crate) mod handlers;
pub(crate) mod openapi;
mod range;

pub use export_files::ExportsSettings;
