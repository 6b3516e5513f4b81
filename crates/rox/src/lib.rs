//! ROX files, the format in which clients download charts (docs/formats/rox.md): [`read`] and [`write()`].
//!
//! The model of a chart, and with it the layout of the archive in a file, are those of the crate
//! `rhythm-open-exchange`, called "the library" below. Clients read with its codec: it gives the chart of every
//! file that [`write()`] gives, and [`write()`] gives the same bytes as it does.

mod error;
mod limits;
mod reader;
mod writer;

pub use error::RoxError;
pub use limits::{MAX_NOTES, MAX_TIMING_POINTS};
pub use reader::read;
pub use rox::{Hitsound, Metadata, Note, NoteType, RoxChart, RoxError as InvalidChart, TimingPoint};
pub use writer::write;
