//! Decodes chart files: from the bytes of a file to note hash, ROX file, numbers and metadata.
//!
//! - [`decode`] reads a chart file of either game, with one chart or several;
//! - [`archive`] reads the chart files of an archive into memory, [`local_files`] tells which files to read;
//! - [`inspect_rox`] recomputes note hash, numbers, analysis and density curve from a stored ROX file;
//! - [`rating()`] and [`patterns()`] analyse the notes of a chart.
//!
//! Each format has a reader of its own, which follows its game (decision 0007) and gives a `GameChart`. What is
//! derived from it, with the ROX file, is in `rox_file`. Every file or chart that is not indexed has a
//! [`Refusal`]. The crate limits the CPU time and memory that a hostile file can use, never panics and never
//! writes to disk.

pub mod archive;
mod chart_numbers;
mod decode;
mod dotnet;
mod format;
mod game_chart;
pub mod local_files;
mod metadata;
mod osu;
mod panic_guard;
mod patterns;
mod qua;
mod rating;
mod refusal;
mod rox_file;
mod simfile;
mod text_encoding;

pub use chart_index_rox::InvalidNotes;
pub use decode::{DecodedFile, MAX_FILE_BYTES, decode, decode_skipping_stored_rox};
pub use format::{ChartFormat, skip_replaced_simfiles};
pub use patterns::patterns;
pub use rating::rating;
pub use refusal::{Refusal, RefusalKind, RefusedChart};
pub use rox_file::{IsStored, RoxContent, inspect_rox};
pub use text_encoding::decode_file_name;
