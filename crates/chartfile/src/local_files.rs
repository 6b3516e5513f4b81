//! Chart files and archives on disk.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::{ChartFormat, MAX_FILE_BYTES, archive, decode_file_name};

/// The format of a chart file, by its name. `None` for other files.
#[must_use]
pub fn chart_format(path: &Path) -> Option<ChartFormat> {
    ChartFormat::from_path(&decode_file_name(path.file_name()?))
}

/// Whether this is a file with the name of an archive.
#[must_use]
pub fn is_archive(path: &Path) -> bool {
    let named = path.file_name().is_some_and(|name| archive::is_archive(&decode_file_name(name)));
    named && path.is_file()
}

/// Reads a file up to one byte more than a chart file may have, so that it is refused if it is larger.
///
/// # Errors
/// The file cannot be read.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
