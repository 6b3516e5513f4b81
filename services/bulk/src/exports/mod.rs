//! Exports: the files that `chart-indexer export` wrote (docs/api.md, "Exports").
//!
//! Why this is not `ServeFile` of tower-http: decision 0022.

mod export_files;
pub(crate) mod handlers;
pub(crate) mod openapi;
mod range;

pub use export_files::ExportsSettings;
