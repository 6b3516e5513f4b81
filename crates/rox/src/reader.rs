//! Reads ROX files, also hostile ones.

use std::cell::RefCell;
use std::io::Read as _;

use rkyv::Archived;
use rkyv::rancor::BoxedError;
use rkyv::util::AlignedVec;
use rox::model::ROX_MAGIC;
use rox::{Note, RoxChart};
use zstd::stream::read::Decoder;
use zstd::zstd_safe::DCtx;

use crate::RoxError;
use crate::limits::{MAX_ARCHIVE_BYTES, MAX_FILE_BYTES, check_counts, check_limit, checked_end};

/// With what a zstd frame begins. The decompressor also accepts skippable frames, which ROX files do not have.
const FRAME_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The largest window of a frame, 32 MiB: nothing needs one that is larger than the archive.
const MAX_WINDOW_LOG: u32 = MAX_ARCHIVE_BYTES.ilog2();

thread_local! {
    /// Creating one takes as long as decompressing a short chart with it.
    static CONTEXT: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

/// Reads a ROX file and checks its chart as the library does.
///
/// Never panics, whatever the bytes are. The window of the decompressor and the archive have at most 32 MiB
/// each; what the archive expands to is limited by its counts.
pub fn read(file: &[u8]) -> Result<RoxChart, RoxError> {
    check_limit("bytes", file.len(), MAX_FILE_BYTES)?;
    let frame = file.strip_prefix(&ROX_MAGIC).filter(|frame| frame.starts_with(&FRAME_MAGIC));
    let frame = frame.ok_or(RoxError::NotRox)?;
    let archive = CONTEXT.with_borrow_mut(|context| decompress(frame, context))?;
    let archived = rkyv::access::<Archived<RoxChart>, BoxedError>(&archive).map_err(RoxError::Archive)?;
    check_archived_counts(archived)?;
    let mut chart = rkyv::deserialize::<RoxChart, BoxedError>(archived).map_err(RoxError::Archive)?;
    add_differences(&mut chart.notes).ok_or(RoxError::TimeOutOfRange)?;
    chart.validate()?;
    Ok(chart)
}

/// Decompresses one frame, with nothing behind it.
fn decompress(frame: &[u8], context: &mut DCtx<'static>) -> Result<AlignedVec, RoxError> {
    let mut decoder = Decoder::with_context(frame, context).single_frame();
    decoder.window_log_max(MAX_WINDOW_LOG).map_err(RoxError::Decompress)?;
    let mut archive = AlignedVec::new();
    let mut chunk = [0; 16 * 1024];
    loop {
        let length = decoder.read(&mut chunk).map_err(RoxError::Decompress)?;
        if length == 0 {
            break;
        }
        check_limit("bytes of archive", archive.len() + length, MAX_ARCHIVE_BYTES)?;
        archive.extend_from_slice(&chunk[..length]);
    }
    if decoder.finish().is_empty() { Ok(archive) } else { Err(RoxError::TrailingBytes) }
}

/// Checks the lengths that the archive states, before anything is allocated for them.
fn check_archived_counts(archived: &Archived<RoxChart>) -> Result<(), RoxError> {
    let tags = archived.metadata.tags.len();
    check_counts(archived.notes.len(), archived.timing_points.len(), archived.hitsounds.len(), tags)
}

/// Replaces the time since the note before, which a file has for each note, by the time. `None` if such a time
/// or the end of a note does not fit.
fn add_differences(notes: &mut [Note]) -> Option<()> {
    let mut time_us = 0_i64;
    for note in notes {
        time_us = time_us.checked_add(note.time_us)?;
        note.time_us = time_us;
        checked_end(note)?;
    }
    Some(())
}
