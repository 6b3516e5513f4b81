//! The files of an export while they are written.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use chart_index_domain::{ExportFile, ExportedFile};
use serde::Serialize;

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

/// A file of JSON objects, one a line, compressed.
pub(super) struct Lines {
    name: ExportFile,
    encoder: zstd::Encoder<'static, Output>,
}

impl Lines {
    pub(super) fn create(folder: &Path, name: ExportFile) -> Result<Self> {
        let encoder =
            zstd::Encoder::new(create(folder, name)?, COMPRESSION_LEVEL).context("cannot compress")?;
        Ok(Self { name, encoder })
    }

    pub(super) fn write(&mut self, object: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(object)?;
        line.push(b'\n');
        self.encoder.write_all(&line).with_context(|| not_written(self.name))
    }

    pub(super) fn finish(self) -> Result<ExportedFile> {
        finish(self.encoder.finish().with_context(|| not_written(self.name))?, self.name)
    }
}
