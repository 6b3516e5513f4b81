//! Reads the chart files in an archive into memory, also those of archives in it.
//!
//! Only chart files and archives are inflated, and nothing is written to disk. Sizes in the archive's directory
//! are not trusted: inflated bytes are counted, and entries are read one by one, so that memory and time are
//! bounded for any archive.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{Cursor, Read, Seek};

use zip::ZipReadOptions;
use zip::read::{ArchiveOffset, Config, ZipFileEntry};
use zip::unstable::read::ZipIterable;

use crate::format::{is_system_file, skip_replaced_simfiles};
use crate::metadata::excerpt;
use crate::panic_guard::catch_panic;
use crate::text_encoding::EntryNameEncoding;
use crate::{ChartFormat, MAX_FILE_BYTES, Refusal};

/// The maximum number of entries of an archive and of the archives in it. A pack of several hundred songs has
/// about ten thousand, and so has a set with one file per sound sample.
pub const MAX_ENTRIES: usize = 50_000;

/// The maximum number of chart files of an archive and of the archives in it. Enough for a pack of 2,000 songs
/// in two formats.
pub const MAX_CHART_FILES: usize = 4_096;

/// The maximum total size of the chart files of an archive and of the archives in it, in bytes: 192 MiB. A pack
/// of several hundred songs has about 50 MiB.
pub const MAX_ARCHIVE_CHART_BYTES: u64 = 192 * 1024 * 1024;

/// The maximum size of an archive in an archive in bytes: 128 MiB. One at a time is in memory, and while it is
/// inflated by Zstandard, the window of that, which may be as large. A set with its audio has about 10 MB, one
/// with a video up to 100 MB.
pub const MAX_NESTED_ARCHIVE_BYTES: u64 = 128 * 1024 * 1024;

/// The maximum total size of the archives in an archive in bytes: 2 GiB, a hundred sets.
pub const MAX_NESTED_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// The extensions of archives: those of the games' packages, and `.zip`.
const EXTENSIONS: [&str; 5] = ["olz", "osz", "qp", "smzip", "zip"];

/// The maximum length of a chart file's path, in bytes.
const MAX_PATH_BYTES: usize = 1024;

/// The maximum number of bytes of file names from which their encoding is detected.
const MAX_NAME_SAMPLE_BYTES: usize = 64 * 1024;

/// A chart file in an archive, or an archive in it that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedFile {
    /// The path of the archive in the outermost archive that contains the file, like `path`. `None` if that is
    /// the outermost one.
    pub archive: Option<String>,
    /// The path in its archive: relative, with `/` between its components. The path of an entry with
    /// [`Refusal::UnsafePath`] is unchecked and truncated, and is for display only. Empty if it is the archive
    /// that cannot be read.
    pub path: String,
    /// The bytes of the file, or why they are missing. The caller reports a refused chart file and indexes the
    /// others, and leaves a chartset with one that is [unreadable](Refusal::is_unreadable) unchanged.
    pub content: Result<Vec<u8>, Refusal>,
}

impl ArchivedFile {
    /// An archive that cannot be read, in place of its files.
    #[must_use]
    pub fn unreadable(refusal: Refusal) -> Self {
        Self { archive: None, path: String::new(), content: Err(refusal) }
    }
}

/// Whether the file at `path` is an archive, by its extension (case-insensitive): `.olz`, `.osz`, `.qp`,
/// `.smzip` or `.zip`.
#[must_use]
pub fn is_archive(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    !is_system_file(path) && extension.is_some_and(|extension| EXTENSIONS.contains(&&*extension))
}

/// Reads the chart files of an archive, and those of the archives in it, with a new [`ArchiveReader`].
pub fn read_chart_files(reader: impl Read + Seek) -> Result<Vec<ArchivedFile>, Refusal> {
    ArchiveReader::default().read(reader)
}

/// Reads the chart files of archives, within limits for all that it reads.
#[derive(Debug, Default)]
pub struct ArchiveReader {
    entries: usize,
    chart_files: usize,
    /// Number of bytes of chart files that were inflated, those of refused and damaged entries included.
    chart_bytes: u64,
    /// The same of archives in archives.
    nested_bytes: u64,
}

impl ArchiveReader {
    /// Reads the chart files of an archive, sorted by path, and then those of the archives in it. Archives in
    /// these are refused, and entries that are neither chart files nor archives are ignored, as is an `.sm`
    /// file beside an `.ssc` file.
    ///
    /// An entry that is refused has a [`Refusal`] in place of its bytes; other entries are not affected. The
    /// whole archive is refused if its directory is damaged, or if it exceeds [`MAX_ENTRIES`],
    /// [`MAX_CHART_FILES`], [`MAX_ARCHIVE_CHART_BYTES`] or [`MAX_NESTED_BYTES`], together with the archives in
    /// it and with those that this reader has read before: otherwise the order of the entries would decide
    /// which of them are read.
    ///
    /// Other spellings of a path in the archive are normalised: backslashes as separators, `./`, and empty
    /// components. File names that are not UTF-8 are decoded with the one encoding detected from all of them,
    /// else as code page 437.
    pub fn read(&mut self, reader: impl Read + Seek) -> Result<Vec<ArchivedFile>, Refusal> {
        catch_panic(|| self.read_level(reader, None))
    }

    /// Reads an archive, which is `archive` in the outermost one.
    fn read_level<R: Read + Seek>(
        &mut self,
        reader: R,
        archive: Option<&str>,
    ) -> Result<Vec<ArchivedFile>, Refusal> {
        let config = Config { archive_offset: ArchiveOffset::Detect };
        let mut zip = ZipIterable::try_new(reader, config).map_err(|error| damaged(&error))?;
        self.entries += zip.len();
        if self.entries > MAX_ENTRIES {
            return Err(Refusal::ArchiveEntries { limit: MAX_ENTRIES });
        }
        let names = self.scan_names(&mut zip)?;
        let entries = zip.files().map_err(|error| damaged(&error))?;
        let (mut files, mut nested, mut paths) = (Vec::new(), Vec::new(), HashSet::new());
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(|error| damaged(&error))?;
            let name = names.decode(entry.name_raw(), || entry.name().ok().map(Cow::into_owned));
            let is_nested = is_archive(&name);
            if !is_nested && ChartFormat::from_path(&name).is_none() {
                continue;
            }
            let path = safe_path(&name);
            let checked = check_entry(path.as_deref(), &entry, is_nested && archive.is_some(), &mut paths);
            let path = path.unwrap_or_else(|| excerpt(&name));
            let content = match checked {
                Ok(()) => self.inflate(entry, entries.reader_mut(), is_nested)?,
                Err(refusal) => Err(refusal),
            };
            if is_nested && archive.is_none() {
                nested.extend(self.read_nested(path, content)?);
            } else {
                files.push(ArchivedFile { archive: archive.map(str::to_owned), path, content });
            }
        }
        skip_replaced_simfiles(&mut files, |file| &file.path);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        nested.sort_by(|a, b| a.archive.cmp(&b.archive));
        files.append(&mut nested);
        Ok(files)
    }

    /// Reads the archive at `path` in the outermost one. If it is damaged, that affects only itself.
    fn read_nested(
        &mut self,
        path: String,
        content: Result<Vec<u8>, Refusal>,
    ) -> Result<Vec<ArchivedFile>, Refusal> {
        let refusal = match content.map(|bytes| self.read_level(Cursor::new(bytes), Some(&path))) {
            Ok(Err(damaged @ Refusal::UnreadableArchive { .. })) | Err(damaged) => damaged,
            Ok(files) => return files,
        };
        Ok(vec![ArchivedFile { archive: Some(path), ..ArchivedFile::unreadable(refusal) }])
    }

    /// Scans the directory of an archive without reading content: checks the number of chart files and detects
    /// the encoding of the file names.
    fn scan_names(
        &mut self,
        archive: &mut ZipIterable<impl Read + Seek>,
    ) -> Result<EntryNameEncoding, Refusal> {
        let mut sample = Vec::new();
        for entry in archive.files().map_err(|error| damaged(&error))? {
            let entry = entry.map_err(|error| damaged(&error))?;
            let raw = entry.name_raw();
            // The extension is ASCII in every encoding.
            self.chart_files += usize::from(ChartFormat::from_path(&String::from_utf8_lossy(raw)).is_some());
            if str::from_utf8(raw).is_err() && sample.len() < MAX_NAME_SAMPLE_BYTES {
                sample.extend_from_slice(raw);
                sample.push(b'\n');
            }
        }
        if self.chart_files > MAX_CHART_FILES {
            return Err(Refusal::ArchiveChartFiles { limit: MAX_CHART_FILES });
        }
        Ok(EntryNameEncoding::detect(&sample))
    }

    /// Inflates an entry. Refuses the outermost archive if it is too large in total.
    fn inflate(
        &mut self,
        entry: ZipFileEntry<'_>,
        reader: &mut (impl Read + Seek),
        is_nested: bool,
    ) -> Result<Result<Vec<u8>, Refusal>, Refusal> {
        if entry.encrypted() {
            return Ok(Err(unreadable(&"encrypted")));
        }
        let (used, total, each, what) = if is_nested {
            (&mut self.nested_bytes, MAX_NESTED_BYTES, MAX_NESTED_ARCHIVE_BYTES, "archives in it")
        } else {
            (&mut self.chart_bytes, MAX_ARCHIVE_CHART_BYTES, MAX_FILE_BYTES, "chart files")
        };
        let limit = each.min(total - *used);
        let inflated = match entry.with_reader(reader, ZipReadOptions::new()) {
            Ok(inflated) => inflated,
            Err(error) => return Ok(Err(unreadable(&error))),
        };
        let mut content = Vec::new();
        let outcome = inflated.take(limit + 1).read_to_end(&mut content);
        let length = content.len() as u64;
        // Bytes of entries that are too large or damaged count, too: inflating them took as long.
        *used += limit.min(length);
        if length > limit {
            if limit < each {
                return Err(Refusal::ArchiveTooLarge { what, limit: total });
            }
            return Ok(Err(Refusal::FileTooLarge { limit }));
        }
        Ok(outcome.map(|_| content).map_err(|error| unreadable(&error)))
    }
}

fn unreadable(error: &impl ToString) -> Refusal {
    Refusal::Unreadable { reason: excerpt(&error.to_string()) }
}

fn damaged(error: &impl ToString) -> Refusal {
    Refusal::UnreadableArchive { reason: excerpt(&error.to_string()) }
}

/// Checks what the directory of the archive states about an entry, and records its path, so that a later entry
/// with the same path is refused.
fn check_entry(
    path: Option<&str>,
    entry: &ZipFileEntry<'_>,
    is_too_deep: bool,
    paths: &mut HashSet<String>,
) -> Result<(), Refusal> {
    let path = path.ok_or(Refusal::UnsafePath)?;
    if is_too_deep {
        Err(Refusal::NestedArchive)
    } else if !paths.insert(path.to_owned()) {
        Err(Refusal::DuplicateName)
    } else if !is_regular_file(entry) {
        Err(Refusal::NotAFile)
    } else {
        Ok(())
    }
}

/// The path of an entry, relative and with `/` between its components. `None` if it may lead out of the archive
/// on any operating system, by `..` or the drive letters of Windows.
fn safe_path(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split(['/', '\\']).filter(|part| !matches!(*part, "" | ".")).collect();
    let has_drive = parts.first().is_some_and(|part| part.as_bytes().get(1) == Some(&b':'));
    let path = parts.join("/");
    let is_safe = !has_drive && !parts.contains(&"..") && !path.contains('\0');
    (is_safe && path.len() <= MAX_PATH_BYTES).then_some(path)
}

/// Whether the entry is a regular file. Entries that record no file type count as regular files.
fn is_regular_file(entry: &ZipFileEntry<'_>) -> bool {
    const TYPE: u32 = 0o170_000;
    const REGULAR: u32 = 0o100_000;
    entry.is_file() && entry.unix_mode().is_none_or(|mode| matches!(mode & TYPE, 0 | REGULAR))
}
