//! Reads the chart files of an input: a folder or an archive, and the archives in it.

use std::fmt::Display;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use chart_index_chartfile::archive::{ArchiveReader, ArchivedFile};
use chart_index_chartfile::local_files::{chart_format, is_archive, read_file};
use chart_index_chartfile::{Refusal, decode_file_name, skip_replaced_simfiles};
use chart_index_domain::ChartsetTooLarge;
use chart_index_domain::limits::{MAX_CHART_FILE_BYTES, MAX_CHART_FILES};
use walkdir::WalkDir;

use crate::archive_folders::{ChartFile, place};
use crate::library::{FolderInInput, Input, Layout};

/// The maximum depth of chart files below a song folder.
const MAX_DEPTH: usize = 8;

/// A whole input cannot be read.
#[derive(Debug)]
pub(crate) struct InputError {
    /// The file at fault, if it is only one.
    pub(crate) file: Option<String>,
    pub(crate) reason: Refusal,
}

impl InputError {
    fn unreadable(file: Option<String>, error: &impl Display) -> Self {
        Self { file, reason: Refusal::Unreadable { reason: error.to_string() } }
    }
}

impl From<Refusal> for InputError {
    fn from(reason: Refusal) -> Self {
        Self { file: None, reason }
    }
}

/// Reads the chart files of an input, sorted by name within each song folder.
pub(crate) fn read(input: &Input) -> Result<Vec<ChartFile>, InputError> {
    if !input.is_archive {
        return read_folder(input);
    }
    let file = File::open(&input.location).map_err(|error| InputError::unreadable(None, &error))?;
    let files = ArchiveReader::default().read(BufReader::new(file))?;
    Ok(place(input.layout, &FolderInInput::default(), files))
}

/// Reads a folder. The archives in it count as those in an archive: the limits hold for all of them together.
fn read_folder(input: &Input) -> Result<Vec<ChartFile>, InputError> {
    let (mut bytes, mut archives) = (0, ArchiveReader::default());
    let mut files = Vec::new();
    for (name, path) in list(input)? {
        let unreadable = |error| InputError::unreadable(Some(name.clone()), &error);
        if is_archive(&path) {
            let reader = BufReader::new(File::open(&path).map_err(unreadable)?);
            let content = match archives.read(reader) {
                Err(damaged @ Refusal::UnreadableArchive { .. }) => vec![ArchivedFile::unreadable(damaged)],
                content => content?,
            };
            let root = FolderInInput::default().nested(&name);
            files.extend(place(input.layout.nested(), &root, content));
        } else {
            let content = read_file(&path).map_err(unreadable)?;
            bytes += content.len() as u64;
            check_bytes(bytes)?;
            files.push(ChartFile { folder: FolderInInput::default(), name, content: Ok(content) });
        }
    }
    Ok(files)
}

/// The names and paths of the chart files of a folder, and of the archives that are no inputs of their own,
/// sorted by name. Refuses a folder with more chart files than a chartset may have; the number of other files
/// is not limited.
pub(crate) fn list(input: &Input) -> Result<Vec<(String, PathBuf)>, InputError> {
    let is_song = matches!(input.layout, Layout::AlphaSet | Layout::BetaSong);
    let depth = if is_song { MAX_DEPTH } else { 1 };
    let (mut files, mut count) = (Vec::new(), 0);
    for entry in WalkDir::new(&input.location).min_depth(1).max_depth(depth) {
        let entry = entry.map_err(|error| InputError::unreadable(None, &error))?;
        // Only regular files: opening a pipe would block, and a symbolic link may lead anywhere.
        if !entry.file_type().is_file() {
            continue;
        }
        let is_chart = chart_format(entry.path()).is_some();
        count += usize::from(is_chart);
        if is_chart && count <= MAX_CHART_FILES || is_song && is_archive(entry.path()) {
            let relative = entry.path().strip_prefix(&input.location).unwrap_or(entry.path());
            let name = relative.iter().map(decode_file_name).collect::<Vec<_>>().join("/");
            files.push((name, entry.into_path()));
        }
    }
    check_files(count)?;
    skip_replaced_simfiles(&mut files, |(name, _)| name);
    files.sort();
    Ok(files)
}

/// Checks the number of chart files of a chartset.
pub(crate) fn check_files(count: usize) -> Result<(), Refusal> {
    Ok(ChartsetTooLarge::check("chart files", count as u64, MAX_CHART_FILES as u64)?)
}

/// Checks the total size of the chart files of a chartset.
pub(crate) fn check_bytes(bytes: u64) -> Result<(), Refusal> {
    Ok(ChartsetTooLarge::check("bytes of chart files", bytes, MAX_CHART_FILE_BYTES)?)
}
