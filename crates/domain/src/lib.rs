//! The words of the catalogue: charts, chartsets, sources, note hashes and search queries.
//!
//! Everything here is a value. Nothing reads a file, opens a socket or asks the clock, so every rule of the
//! contract that is a rule about values is written, and tested, in this crate:
//!
//! - [`NoteHash`] and [`ChartsetId`]: how a chart and a chartset are named;
//! - [`Chart`], [`Source`], [`Chartset`], [`ChartsetDetail`]: what the API answers with;
//! - [`ChartDraft`], [`ChartsetDraft`]: what an ingest hands to the store;
//! - [`limits`]: how large a chartset may be;
//! - [`search`]: the query of the Browse page, and the trait that every search engine implements;
//! - [`text`]: the one way in which text is folded for sorting and split into words for searching.

mod chart;
mod chartset;
mod draft;
mod identity;
pub mod limits;
mod read_error;
pub mod search;
mod source;
pub mod text;

pub use chart::{Chart, ChartMetadata, ChartNumbers, round_to_thousandths};
pub use chartset::{Chartset, ChartsetChart, ChartsetDetail, ChartsetMember, Keywords, assemble_chartset};
pub use draft::{ChartDraft, ChartsetDraft, PublicSource};
pub use identity::{
    ChartsetId, InvalidKeyCount, KeyCount, MalformedChartsetId, MalformedNoteHash, NOTE_HASH_VERSION,
    NoteHash,
};
pub use limits::ChartsetTooLarge;
pub use read_error::ReadError;
pub use source::{Confidence, Source, SourceKind, SourceRef, UnknownSourceKind};
