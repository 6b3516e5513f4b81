//! Decodes chart files: from the bytes of a file to note hash, ROX file, numbers, preview and metadata.
//!
//! - [`decode`] reads a chart file of either game, with one chart or several;
//! - [`archive`] reads the chart files of an `.osz` or `.zip` into memory;
//! - [`inspect_rox`] recomputes note hash, numbers, analysis and preview from a stored ROX file;
//! - [`note_hash`] defines the note hash;
//! - [`preview`] defines the preview;
//! - [`CanonicalNotes::analysis`](note_hash::CanonicalNotes::analysis) computes rating and patterns.
//!
//! The parsers are those of the `rhythm-open-exchange` crate, called "the decoder" below. This crate repairs
//! files that the games play and the decoder rejects (see `repairs`), limits the CPU time and memory that a
//! hostile file can use, and gives a [`Refusal`] for every file or chart that is not indexed. It never panics
//! and never writes to disk.

pub mod archive;
mod chart_numbers;
mod decode;
mod format;
mod game_chart;
mod metadata;
pub mod note_hash;
mod panic_guard;
mod patterns;
pub mod preview;
mod rating;
mod refusal;
mod repairs;
mod rox_file;
mod simfile;
mod text_encoding;

pub use decode::{DecodedFile, MAX_FILE_BYTES, decode, decode_skipping_stored_rox};
pub use format::ChartFormat;
pub use refusal::{Refusal, RefusedChart};
pub use rox_file::{IsStored, RoxContent, inspect_rox};
pub use text_encoding::decode_file_name;
