//! The files of an export while they are written.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, Result};
use chart_index_domain::{ExportFile, ExportedFile};

use super::digest_writer::DigestWriter;

/// The level of the compression: 48 MB of generated chartsets take 8.8 MB at level 3, 8.0 MB at this one, and
/// 7.8 MB at level 12, which takes twice as long.
pub(super) const COMPRESSION_LEVEL: i32 = 9;

pub(super) type Output = DigestWriter<BufWriter<File>>;

pub(super) fn create(folder: &Path, name: ExportFile) -> Result<Output> {
    let file = File::create(folder.join(name.name())).with_context(|| not_written(name))?;
    Ok(DigestWriter::new(BufWriter::new(file)))
}

/// Syncs a file to disk, and describes it for the manifest.
pub(super) fn finish(file: Output, name: ExportFile) -> Result<ExportedFile> {
    let (writer, bytes, blake3) = file.finish();
    let file = writer.into_inner().map_err(std::io::IntoInnerError::into_error);
    file.and_then(|file| file.sync_all()).with_context(|| not_written(name))?;
    Ok(ExportedFile { name, bytes, blake3 })
}

pub(super) fn not_written(name: ExportFile) -> String {
    format!("cannot write {}", name.name())
}
