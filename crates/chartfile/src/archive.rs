//! Reads the chart files in an `.osz` or `.zip` into memory.
//!
//! Only chart files are inflated, and nothing is written to disk. Sizes in the archive's directory are not
//! trusted: inflated bytes are counted, and entries are read one by one, so that memory use is bounded for any
//! archive.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{Read, Seek};

use zip::ZipReadOptions;
use zip::read::{ArchiveOffset, Config, ZipFileEntry};
use zip::unstable::read::ZipIterable;

use crate::format::is_system_file;
use crate::metadata::excerpt;
use crate::panic_guard::catch_panic;
use crate::text_encoding::EntryNameEncoding;
use crate::{ChartFormat, MAX_FILE_BYTES, Refusal};

/// The maximum number of entries of an archive. A pack of several hundred songs has about ten thousand, and so
/// has a set with one file per sound sample.
pub const MAX_ENTRIES: usize = 50_000;

/// The maximum number of chart files of an archive, checked before any is read. Enough for a pack of 2,000
/// songs in two formats.
pub const MAX_CHART_FILES: usize = 4_096;

/// The maximum total size of an archive's chart files in bytes: 192 MiB. A pack of several hundred songs has
/// about 50 MiB.
pub const MAX_ARCHIVE_CHART_BYTES: u64 = 192 * 1024 * 1024;

/// The maximum length of a chart file's path, in bytes.
const MAX_PATH_BYTES: usize = 1024;

/// The maximum number of bytes of file names from which their encoding is detected.
const MAX_NAME_SAMPLE_BYTES: usize = 64 * 1024;

/// A chart file in an archive, with its bytes or the reason why they are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedFile {
    /// The path in the archive: relative, with `/` between its components. The path of an entry with
    /// [`Refusal::UnsafePath`] is unchecked and truncated, and is for display only.
    pub path: String,
    /// The bytes of the file, or why they are missing.
    pub content: Result<Vec<u8>, EntryError>,
}

/// Why the content of an archive's entry is missing. The caller reports a refused chart file and indexes the
/// others, and leaves a chartset with an unreadable one unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The entry is certainly not a chart that can be indexed, whatever its content.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The entry is a chart file that cannot be read: it is damaged, encrypted, or compressed with an
    /// unsupported method. Its content is unknown.
    #[error("cannot be read: {reason}")]
    Unreadable {
        /// The error message of the ZIP reader, truncated.
        reason: String,
    },
}

impl EntryError {
    fn unreadable(error: &impl ToString) -> Self {
        Self::Unreadable { reason: excerpt(&error.to_string()) }
    }
}

/// Whether the file at `path` is an archive, by its extension (case-insensitive): `.osz` or `.zip`.
#[must_use]
pub fn is_archive(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    !is_system_file(path) && matches!(extension.as_deref(), Some("osz" | "zip"))
}

/// Reads the chart files of an archive, sorted by path. Entries that are neither chart files nor archives are
/// ignored.
///
/// An entry that is refused or cannot be read has an [`EntryError`] in place of its bytes; other entries are
/// not affected. The whole archive is refused if its directory is damaged, if it has more than [`MAX_ENTRIES`]
/// entries or [`MAX_CHART_FILES`] chart files, or if these have more than [`MAX_ARCHIVE_CHART_BYTES`] bytes in
/// total: otherwise the order of the entries would decide which of them are read.
///
/// File names that are not UTF-8 are decoded with the one encoding detected from all of them, else as code
/// page 437.
pub fn read_chart_files(reader: impl Read + Seek) -> Result<Vec<ArchivedFile>, Refusal> {
    catch_panic(|| {
        let config = Config { archive_offset: ArchiveOffset::Detect };
        let mut archive = ZipIterable::try_new(reader, config).map_err(|error| damaged(&error))?;
        if archive.len() > MAX_ENTRIES {
            return Err(Refusal::TooManyEntries { limit: MAX_ENTRIES });
        }
        let names = scan_names(&mut archive)?;
        let entries = archive.files().map_err(|error| damaged(&error))?;
        let mut collected = CollectedFiles::default();
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(|error| damaged(&error))?;
            let name = names.decode(entry.name_raw(), || entry.name().ok().map(Cow::into_owned));
            collected.add(name, entry, entries.reader_mut())?;
        }
        collected.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(collected.files)
    })
}

/// Scans the directory of the archive without reading content: checks the number of chart files and detects the
/// encoding of the file names.
fn scan_names(archive: &mut ZipIterable<impl Read + Seek>) -> Result<EntryNameEncoding, Refusal> {
    let (mut chart_files, mut sample) = (0, Vec::new());
    for entry in archive.files().map_err(|error| damaged(&error))? {
        let entry = entry.map_err(|error| damaged(&error))?;
        let raw = entry.name_raw();
        // The extension is ASCII in every encoding.
        chart_files += usize::from(ChartFormat::from_path(&String::from_utf8_lossy(raw)).is_some());
        if str::from_utf8(raw).is_err() && sample.len() < MAX_NAME_SAMPLE_BYTES {
            sample.extend_from_slice(raw);
            sample.push(b'\n');
        }
    }
    if chart_files > MAX_CHART_FILES {
        return Err(Refusal::TooManyChartFiles { limit: MAX_CHART_FILES });
    }
    Ok(EntryNameEncoding::detect(&sample))
}

/// The chart files read so far.
#[derive(Default)]
struct CollectedFiles {
    files: Vec<ArchivedFile>,
    paths: HashSet<String>,
    /// Number of bytes inflated so far, those of refused and damaged entries included.
    bytes: u64,
}

impl CollectedFiles {
    /// Reads the entry if it is a chart file. Refuses the archive if its chart files are too large in total.
    fn add(
        &mut self,
        name: String,
        entry: ZipFileEntry<'_>,
        reader: &mut (impl Read + Seek),
    ) -> Result<(), Refusal> {
        let nested = is_archive(&name);
        if !nested && ChartFormat::from_path(&name).is_none() {
            return Ok(());
        }
        if !is_safe_path(&name) {
            let content = Err(Refusal::UnsafePath.into());
            self.files.push(ArchivedFile { path: excerpt(&name), content });
            return Ok(());
        }
        let content = match self.check_entry(&name, &entry, nested) {
            Ok(()) => self.read(entry, reader)?,
            Err(refusal) => Err(refusal.into()),
        };
        self.files.push(ArchivedFile { path: name, content });
        Ok(())
    }

    /// Checks what the directory of the archive states about an entry, and records its path, so that a later
    /// entry with the same path is refused.
    fn check_entry(&mut self, path: &str, entry: &ZipFileEntry<'_>, nested: bool) -> Result<(), Refusal> {
        if nested {
            Err(Refusal::NestedArchive)
        } else if !self.paths.insert(path.to_owned()) {
            Err(Refusal::DuplicateName)
        } else if !is_regular_file(entry) {
            Err(Refusal::NotAFile)
        } else {
            Ok(())
        }
    }

    fn read(
        &mut self,
        entry: ZipFileEntry<'_>,
        reader: &mut (impl Read + Seek),
    ) -> Result<Result<Vec<u8>, EntryError>, Refusal> {
        if entry.encrypted() {
            return Ok(Err(EntryError::unreadable(&"encrypted")));
        }
        let remaining = MAX_ARCHIVE_CHART_BYTES - self.bytes;
        let limit = remaining.min(MAX_FILE_BYTES);
        let inflated = match entry.with_reader(reader, ZipReadOptions::new()) {
            Ok(inflated) => inflated,
            Err(error) => return Ok(Err(EntryError::unreadable(&error))),
        };
        let mut content = Vec::new();
        let outcome = inflated.take(limit + 1).read_to_end(&mut content);
        let length = content.len() as u64;
        // Bytes of entries that are too large or damaged count, too: inflating them took as long.
        self.bytes += limit.min(length);
        if length > limit {
            if remaining < MAX_FILE_BYTES {
                return Err(Refusal::ArchiveTooLarge { limit: MAX_ARCHIVE_CHART_BYTES });
            }
            return Ok(Err(Refusal::TooLarge { limit: MAX_FILE_BYTES }.into()));
        }
        Ok(outcome.map(|_| content).map_err(|error| EntryError::unreadable(&error)))
    }
}

fn damaged(error: &impl ToString) -> Refusal {
    Refusal::UnreadableArchive { reason: excerpt(&error.to_string()) }
}

/// Whether the path stays inside the archive on every operating system: relative, without `..`, and without the
/// separators and drive letters of Windows.
fn is_safe_path(path: &str) -> bool {
    let safe_part = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']);
    let drive = path.as_bytes().get(1) == Some(&b':');
    path.len() <= MAX_PATH_BYTES && !drive && path.split('/').all(safe_part)
}

/// Whether the entry is a regular file. Entries that record no file type count as regular files.
fn is_regular_file(entry: &ZipFileEntry<'_>) -> bool {
    const TYPE: u32 = 0o170_000;
    const REGULAR: u32 = 0o100_000;
    entry.is_file() && entry.unix_mode().is_none_or(|mode| matches!(mode & TYPE, 0 | REGULAR))
}
