//! Why a ROX file cannot be read or written.

use std::io;

use rkyv::rancor::BoxedError;
use rox::RoxError as InvalidChart;

use crate::InvalidNotes;

/// Why a ROX file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RoxError {
    /// It does not begin with the bytes of a ROX file and those of a zstd frame.
    #[error("not a ROX file")]
    NotRox,
    /// Bytes follow the zstd frame.
    #[error("read the ROX file: bytes after its end")]
    TrailingBytes,
    /// There is more of something than a ROX file may have.
    #[error("the ROX file has more than {limit} {what}")]
    LimitExceeded {
        /// What there is too much of, in the plural.
        what: &'static str,
        /// The maximum.
        limit: usize,
    },
    /// The zstd frame is damaged or incomplete, or needs a dictionary or too large a window.
    #[error("decompress the ROX file")]
    Decompress(#[source] io::Error),
    /// The archive has an invalid pointer, length, tag or text.
    #[error("read the archive of the ROX file")]
    Archive(#[source] BoxedError),
    /// The end of a note, or the difference between the starts of two notes, does not fit into `i64`
    /// microseconds.
    #[error("a time of the chart is out of range")]
    TimeOutOfRange,
    /// The chart breaks a rule of docs/formats/rox.md, "Valid charts".
    #[error("check the chart of the ROX file")]
    Invalid(#[from] InvalidChart),
    /// The notes have no note hash.
    #[error("check the notes of the ROX file")]
    Notes(#[from] InvalidNotes),
    /// The preview cannot be written.
    #[error("write the preview of the ROX file")]
    Json(#[source] serde_json::Error),
    /// The archive cannot be written.
    #[error("write the archive of the ROX file")]
    Serialize(#[source] BoxedError),
    /// The archive cannot be compressed.
    #[error("compress the ROX file")]
    Compress(#[source] io::Error),
}
