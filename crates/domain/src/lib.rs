//! The domain types: charts, chartsets, sources, note hashes and search queries.
//!
//! All types are plain values: nothing here performs I/O or reads the clock. The rules of docs/api.md that
//! concern values are implemented and tested in this crate:
//!
//! - [`NoteHash`] and [`ChartsetId`] identify charts and chartsets; charts with the same [`Variant`] have the
//!   same order of rows;
//! - [`ChartAnalysis`] is how hard a chart is, and of what kind;
//! - [`Chart`], [`Source`], [`Chartset`] and [`ChartsetDetail`] are the objects of API responses;
//! - [`ChartsetRecord`] is a chartset in the change feed and in exports;
//! - [`ExportManifest`] describes an export;
//! - [`DensityCurve`] is the shape of a chart; [`ListedCharts`], [`ChartPage`] and [`SimilarChart`] are what
//!   pages show;
//! - [`ChartDraft`] and [`ChartsetDraft`] are what an ingest passes to the store;
//! - [`Position`] is how far in the change feed something is;
//! - [`limits`] bounds the size of a chartset;
//! - [`search`] has the query of the chartset list, and the trait that search engines implement;
//! - [`hex`] encodes and decodes hexadecimal;
//! - [`text`] folds text for sorting and splits it into words for searching.

mod analysis;
mod analysis_json;
mod bounded_lists;
mod chart;
mod chart_page;
mod chartset;
mod chartset_record;
mod density_curve;
mod distribution;
mod draft;
mod export;
mod file_aliases;
pub mod hex;
mod identity;
pub mod limits;
mod metadata_text;
mod position;
mod read_error;
mod schemas;
pub mod search;
mod source;
pub mod text;
mod variant;

pub use analysis::{ANALYSIS_VERSION, ChartAnalysis, Pattern, Patterns, Rating};
pub use chart::{Chart, ChartMetadata, ChartNumbers, ChartValues, MAX_CHART_TAGS, round_to_thousandths};
pub use chart_page::{
    ChartInChartset, ChartPage, ChartsetCopy, CreatorChart, ListedChart, ListedCharts, SimilarChart,
};
pub use chartset::{
    ChartOccurrence, Chartset, ChartsetChart, ChartsetDetail, ChartsetMember, Keywords, assemble_chartset,
};
pub use chartset_record::{ChartRecord, ChartsetRecord, InvalidRecord};
pub use density_curve::DensityCurve;
pub use distribution::{Distribution, Distributions, Measure};
pub use draft::{ChartDraft, ChartsetDraft, DistinctCharts, PublicSource};
pub use export::{
    ExportFile, ExportManifest, ExportName, ExportedFile, FileDigest, MalformedDigest, MalformedExportName,
};
pub use file_aliases::{FileAliases, FileMd5, MalformedMd5};
pub use identity::{
    ChartsetId, InvalidKeyCount, KeyCount, MalformedChartsetId, MalformedNoteHash, NOTE_HASH_VERSION,
    NoteHash,
};
pub use limits::ChartsetTooLarge;
pub use metadata_text::{MAX_CHARACTERS, clean};
pub use position::{
    CatalogueChange, CataloguePoll, ChangeType, Entity, Lineage, MalformedLineage, Origin, Position,
};
pub use read_error::ReadError;
pub use source::{Confidence, MalformedSourceRef, Source, SourceKind, SourceRef};
pub use variant::{MalformedVariant, Rows, VARIANT_VERSION, Variant, VariantTiming};
