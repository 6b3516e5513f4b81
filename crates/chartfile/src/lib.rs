//! From the bytes of a chart file to what the index keeps of it: note hash, ROX file, numbers and text.
//!
//! - [`decode`] and [`decode_skipping_stored_rox`] read one file of the two games, with one chart or many;
//! - [`archive`] finds the chart files in an `.osz` or `.zip`, in memory;
//! - [`inspect_rox`] computes hash and numbers again from a stored ROX file;
//! - [`notes`] is the note hash itself.
//!
//! Parsing is the work of the `rhythm-open-exchange` crate. This crate repairs what the games play and that
//! decoder refuses, bounds the work that a hostile file can cause, and says in a [`Refusal`] why a file or a
//! chart is left out. No input makes it panic, and no input makes it write to disk.

pub mod archive;
mod chart_numbers;
mod decode;
mod format;
mod metadata;
pub mod note_hash;
mod refusal;
mod rox_file;
mod text_encoding;

pub use decode::{DecodedFile, IsStored, MAX_FILE_BYTES, SkippedChart, decode, decode_skipping_stored_rox};
pub use format::ChartFormat;
pub use refusal::Refusal;
pub use rox_file::inspect_rox;
pub use text_encoding::decode_file_name;
