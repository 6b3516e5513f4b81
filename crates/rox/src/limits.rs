//! What is checked of a chart and its file, besides what the library checks.

use rox::Note;

use crate::RoxError;

/// The maximum number of notes of a chart: ten times the longest one known.
pub const MAX_NOTES: usize = 500_000;

/// The maximum number of timing points of a chart. Charts that animate their scrolling have several tens of
/// thousands.
pub const MAX_TIMING_POINTS: usize = 500_000;

/// The maximum number of hitsounds of a chart: a note names one with 16 bits.
const MAX_HITSOUNDS: usize = 65_536;

/// The maximum number of tags of a chart. In memory a tag takes three times what it takes in the archive.
const MAX_TAGS: usize = 100_000;

/// The maximum size of the archive in a file: 32 MiB. [`MAX_NOTES`] of 32 bytes and [`MAX_TIMING_POINTS`] of 24
/// bytes are 28,000,000 bytes, which leaves 5.5 MB for metadata and hitsounds.
pub(crate) const MAX_ARCHIVE_BYTES: usize = 32 * 1024 * 1024;

/// The maximum size of a file: 16 MiB, as that of the files that charts are read from.
pub(crate) const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;

/// Checks the lengths of the lists of a chart.
pub(crate) fn check_counts(
    notes: usize,
    timing_points: usize,
    hitsounds: usize,
    tags: usize,
) -> Result<(), RoxError> {
    check_limit("notes", notes, MAX_NOTES)?;
    check_limit("timing points", timing_points, MAX_TIMING_POINTS)?;
    check_limit("hitsounds", hitsounds, MAX_HITSOUNDS)?;
    check_limit("tags", tags, MAX_TAGS)
}

/// Refuses a count above its limit.
pub(crate) fn check_limit(what: &'static str, count: usize, limit: usize) -> Result<(), RoxError> {
    if count > limit { Err(RoxError::LimitExceeded { what, limit }) } else { Ok(()) }
}

/// The end of a note. The library adds its duration without a check.
pub(crate) fn checked_end(note: &Note) -> Option<i64> {
    note.time_us.checked_add(note.duration_us())
}
