//! Writes ROX files.

use std::io::{self, Write as _};
use std::mem;

use rkyv::rancor::BoxedError;
use rox::model::ROX_MAGIC;
use rox::{Note, RoxChart};
use zstd::stream::write::Encoder;

use crate::RoxError;
use crate::limits::{MAX_ARCHIVE_BYTES, MAX_FILE_BYTES, check_counts, check_limit, checked_end};

/// The default of zstd, at which the library writes: all files so far have it.
const COMPRESSION_LEVEL: i32 = 3;

/// Writes the ROX file of a chart that the library accepts. [`read`](crate::read) gives the same chart.
///
/// Borrows the chart mutably so as not to copy it; it is unchanged afterwards.
pub fn write(chart: &mut RoxChart) -> Result<Vec<u8>, RoxError> {
    let tags = chart.metadata.tags.len();
    check_counts(chart.notes.len(), chart.timing_points.len(), chart.hitsounds.len(), tags)?;
    let differences = differences(&chart.notes).ok_or(RoxError::TimeOutOfRange)?;
    chart.validate()?;
    let notes = mem::replace(&mut chart.notes, differences);
    let archive = rkyv::to_bytes::<BoxedError>(chart);
    chart.notes = notes;
    let archive = archive.map_err(RoxError::Serialize)?;
    check_limit("bytes of archive", archive.len(), MAX_ARCHIVE_BYTES)?;
    let file = compress(&archive).map_err(RoxError::Compress)?;
    check_limit("bytes", file.len(), MAX_FILE_BYTES)?;
    Ok(file)
}

/// The notes with the time since the note before, for the first note since 0, instead of their time. `None` if
/// such a time or the end of a note does not fit.
fn differences(notes: &[Note]) -> Option<Vec<Note>> {
    let mut previous_us = 0_i64;
    let mut differences = Vec::with_capacity(notes.len());
    for note in notes {
        checked_end(note)?;
        let time_us = note.time_us.checked_sub(previous_us)?;
        differences.push(Note { time_us, ..note.clone() });
        previous_us = note.time_us;
    }
    Some(differences)
}

/// As the library does. A frame that states the size of its content would be up to eighteen bytes longer.
fn compress(archive: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = Encoder::new(ROX_MAGIC.to_vec(), COMPRESSION_LEVEL)?;
    encoder.write_all(archive)?;
    encoder.finish()
}
