//! ROX files, the format in which clients download charts (docs/formats/rox.md): [`read`] and [`write()`], and
//! what is computed of the notes in them: the [note hash](CanonicalNotes::hash) and the [`preview`].
//!
//! The model of a chart, and with it the layout of the archive in a file, are those of the crate
//! `rhythm-open-exchange`, called "the library" below. Clients read with its codec: it gives the chart of every
//! file that [`write()`] gives, which has the same archive, compressed better.

mod error;
mod limits;
mod notes;
mod preview;
mod reader;
mod writer;

pub use error::RoxError;
pub use limits::{MAX_NOTES, MAX_TIMING_POINTS};
pub use notes::{CanonicalNote, CanonicalNotes, InvalidNotes, TimedNote};
pub use preview::{note_columns, preview};
pub use reader::read;
pub use rox::{Hitsound, Metadata, Note, NoteType, RoxChart, RoxError as InvalidChart, TimingPoint};
pub use writer::write;
