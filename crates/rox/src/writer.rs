//! Writes ROX files.

use std::cell::RefCell;
use std::{io, mem};

use rkyv::rancor::BoxedError;
use rox::model::ROX_MAGIC;
use rox::{Note, RoxChart};
use zstd::bulk::Compressor;

use crate::RoxError;
use crate::limits::{MAX_ARCHIVE_BYTES, MAX_FILE_BYTES, check_counts, check_limit, checked_end};

/// Files have five sixths of the size that they have at the level of the library, 3, and take 0.2 ms:
/// benchmarks/results/2026-11-28-rox-levels.md.
const COMPRESSION_LEVEL: i32 = 9;

thread_local! {
    /// Creating one takes longer than compressing a short chart with it.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
}

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

/// The frame does not state the size of its content, as in the files of the library: it is up to eighteen bytes
/// shorter.
fn compress(archive: &[u8]) -> io::Result<Vec<u8>> {
    let frame = COMPRESSOR.with_borrow_mut(|compressor| {
        let compressor = match compressor {
            Some(compressor) => compressor,
            none => none.insert(new_compressor()?),
        };
        compressor.compress(archive)
    })?;
    Ok([&ROX_MAGIC, &frame[..]].concat())
}

fn new_compressor() -> io::Result<Compressor<'static>> {
    let mut compressor = Compressor::new(COMPRESSION_LEVEL)?;
    compressor.include_contentsize(false)?;
    Ok(compressor)
}
