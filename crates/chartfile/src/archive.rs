//! The chart files in an `.osz` or `.zip`, read into memory.
//!
//! Nothing is written to disk, and nothing but chart files is inflated. What an archive says of itself is never
//! believed: sizes are counted as they come out, and entries are walked one by one, so that memory is bounded
//! whatever the directory of the archive claims.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{Read, Seek};

use zip::ZipReadOptions;
use zip::read::{ArchiveOffset, Config, ZipFileEntry};
use zip::unstable::read::ZipIterable;

use crate::decode::guarded;
use crate::format::is_junk;
use crate::metadata::excerpt;
use crate::text_encoding::EntryNames;
use crate::{ChartFormat, MAX_FILE_BYTES, Refusal};

/// The most entries of an archive. A pack of several hundred songs has some ten thousand, and so has a set that
/// brings each of its samples as a file.
pub const MAX_ENTRIES: usize = 50_000;

/// The most chart files of one archive: a pack of two thousand songs in two formats. They are counted before any of
/// them is read.
pub const MAX_CHART_FILES: usize = 4_096;

/// The most bytes of chart files of one archive, all together. A pack of several hundred songs has some
/// fifty MiB.
pub const MAX_ARCHIVE_CHART_BYTES: u64 = 192 * 1024 * 1024;

/// The longest path of a chart file, in bytes.
const MAX_PATH_BYTES: usize = 1024;

/// From how many bytes of names that are not UTF-8 their encoding is detected.
const MAX_NAME_SAMPLE_BYTES: usize = 64 * 1024;

/// One chart file of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedFile {
    /// Its path in the archive: relative, `/` between the parts. For an entry refused because of its path, that
    /// path as it stands, shortened: to be shown, never to be followed.
    pub path: String,
    /// Its bytes, or why they are not there.
    pub content: Result<Vec<u8>, EntryError>,
}

/// Why an entry of an archive has no bytes. The difference decides what becomes of the chartset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The entry is no chart file, which is certain without its content. The other files count.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The entry is a chart file whose content cannot be read: damaged, encrypted, or compressed with a method that
    /// is not supported. What it holds is not known.
    #[error("cannot be read: {reason}")]
    Unreadable {
        /// The reader's words, shortened.
        reason: String,
    },
}

impl EntryError {
    fn unreadable(error: &impl ToString) -> Self {
        Self::Unreadable { reason: excerpt(&error.to_string()) }
    }
}

/// Whether the file at `path` is an archive that stands for the folder it holds: `.osz` or `.zip`, any case.
#[must_use]
pub fn is_archive(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    !is_junk(path) && matches!(extension.as_deref(), Some("osz" | "zip"))
}

/// The chart files of the archive, sorted by path. What is neither a chart nor an archive is passed over.
///
/// An entry that cannot be read, or must not be, has a [`EntryError`] in the place of its bytes; the others are not
/// affected. The archive as a whole is refused where its directory is damaged, where it has more than
/// [`MAX_ENTRIES`] entries or [`MAX_CHART_FILES`] chart files, or where these have more than
/// [`MAX_ARCHIVE_CHART_BYTES`] bytes together: which of them are read must not depend on their order.
///
/// A name that is not UTF-8 is read in the encoding that all such names of the archive look most like, else in code
/// page 437.
pub fn read_chart_files(reader: impl Read + Seek) -> Result<Vec<ArchivedFile>, Refusal> {
    guarded(|| {
        let config = Config { archive_offset: ArchiveOffset::Detect };
        let mut archive = ZipIterable::try_new(reader, config).map_err(|error| damaged(&error))?;
        if archive.len() > MAX_ENTRIES {
            return Err(Refusal::TooManyEntries { limit: MAX_ENTRIES });
        }
        let names = survey(&mut archive)?;
        let entries = archive.files().map_err(|error| damaged(&error))?;
        let mut gathered = Gathered::default();
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(|error| damaged(&error))?;
            let name = names.decode(entry.name_raw(), || entry.name().ok().map(Cow::into_owned));
            gathered.take(name, entry, entries.reader_mut())?;
        }
        gathered.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(gathered.files)
    })
}

/// A first walk over the directory, which reads no content: the number of chart files is checked and the encoding of
/// the names detected.
fn survey(archive: &mut ZipIterable<impl Read + Seek>) -> Result<EntryNames, Refusal> {
    let (mut chart_files, mut sample) = (0, Vec::new());
    for entry in archive.files().map_err(|error| damaged(&error))? {
        let entry = entry.map_err(|error| damaged(&error))?;
        let raw = entry.name_raw();
        // The extension, by which a chart file is known, is ASCII.
        chart_files += usize::from(ChartFormat::from_path(&String::from_utf8_lossy(raw)).is_some());
        if str::from_utf8(raw).is_err() && sample.len() < MAX_NAME_SAMPLE_BYTES {
            sample.extend_from_slice(raw);
            sample.push(b'\n');
        }
    }
    if chart_files > MAX_CHART_FILES {
        return Err(Refusal::TooManyChartFiles { limit: MAX_CHART_FILES });
    }
    Ok(EntryNames::detect(&sample))
}

/// What has been read of an archive so far.
#[derive(Default)]
struct Gathered {
    files: Vec<ArchivedFile>,
    paths: HashSet<String>,
    bytes: u64,
}

impl Gathered {
    /// Reads the entry if it is a chart file. Refuses the archive where its chart files are too large together.
    fn take(
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
        let content = match self.refusal(&name, &entry, nested) {
            Some(refusal) => Err(refusal.into()),
            None => self.read(entry, reader)?,
        };
        self.files.push(ArchivedFile { path: name, content });
        Ok(())
    }

    /// Why the content of the entry is not looked at.
    fn refusal(&mut self, path: &str, entry: &ZipFileEntry<'_>, nested: bool) -> Option<Refusal> {
        if nested {
            Some(Refusal::NestedArchive)
        } else if !self.paths.insert(path.to_owned()) {
            Some(Refusal::DuplicateName)
        } else if !is_regular_file(entry) {
            Some(Refusal::NotAFile)
        } else {
            None
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
        let left = MAX_ARCHIVE_CHART_BYTES - self.bytes;
        let limit = left.min(MAX_FILE_BYTES);
        let inflated = match entry.with_reader(reader, ZipReadOptions::new()) {
            Ok(inflated) => inflated,
            Err(error) => return Ok(Err(EntryError::unreadable(&error))),
        };
        let mut content = Vec::new();
        let outcome = inflated.take(limit + 1).read_to_end(&mut content);
        let length = content.len() as u64;
        // Also what turns out too large, or damaged, was work.
        self.bytes += limit.min(length);
        if length > limit {
            if left < MAX_FILE_BYTES {
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

/// Whether the path stays inside the archive on every system: relative, without `..`, without the separators and
/// drive letters of another system.
fn is_safe_path(path: &str) -> bool {
    let safe_part = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']);
    let drive = path.as_bytes().get(1) == Some(&b':');
    path.len() <= MAX_PATH_BYTES && !drive && path.split('/').all(safe_part)
}

/// Whether the entry is a file, or of a system that does not say.
fn is_regular_file(entry: &ZipFileEntry<'_>) -> bool {
    const TYPE: u32 = 0o170_000;
    const REGULAR: u32 = 0o100_000;
    entry.is_file() && entry.unix_mode().is_none_or(|mode| matches!(mode & TYPE, 0 | REGULAR))
}
