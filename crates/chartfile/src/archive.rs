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
use zip::result::ZipError;
use zip::unstable::read::ZipIterable;

use crate::decode::guarded;
use crate::format::is_junk;
use crate::text::excerpt;
use crate::{ChartFormat, MAX_FILE_BYTES, Refusal};

/// The most entries of an archive. A pack of several hundred songs has some ten thousand, and so has a set that
/// brings each of its samples as a file.
pub const MAX_ENTRIES: usize = 50_000;

/// The most bytes of chart files of one archive, all together. A pack of several hundred songs has some
/// fifty MiB.
pub const MAX_ARCHIVE_CHART_BYTES: u64 = 192 * 1024 * 1024;

/// The longest path of a chart file, in bytes.
const MAX_PATH_BYTES: usize = 1024;

/// One chart file of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedFile {
    /// Its path in the archive: relative, `/` between the parts. For an entry refused because of its path, that
    /// path as it stands, shortened: to be shown, never to be followed.
    pub path: String,
    /// Its bytes, or why they are not read.
    pub content: Result<Vec<u8>, Refusal>,
}

/// Whether the file at `path` is an archive that stands for the folder it holds: `.osz` or `.zip`, any case.
#[must_use]
pub fn is_archive(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    !is_junk(path) && matches!(extension.as_deref(), Some("osz" | "zip"))
}

/// The chart files of the archive, sorted by path. What is neither a chart nor an archive is passed over.
///
/// An entry that cannot be read, or must not be, has a [`Refusal`] in the place of its bytes; the others are not
/// touched by it. The archive as a whole is refused where its directory is damaged or has more than
/// [`MAX_ENTRIES`] entries.
pub fn read_chart_files(reader: impl Read + Seek) -> Result<Vec<ArchivedFile>, Refusal> {
    guarded(|| {
        let config = Config { archive_offset: ArchiveOffset::Detect };
        let mut archive = ZipIterable::try_new(reader, config).map_err(|error| damaged(&error))?;
        if archive.len() > MAX_ENTRIES {
            return Err(Refusal::TooManyEntries { limit: MAX_ENTRIES });
        }
        let entries = archive.files().map_err(|error| damaged(&error))?;
        let mut gathered = Gathered::default();
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(|error| damaged(&error))?;
            gathered.take(entry, entries.reader_mut());
        }
        gathered.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(gathered.files)
    })
}

/// What has been read of an archive so far.
#[derive(Default)]
struct Gathered {
    files: Vec<ArchivedFile>,
    paths: HashSet<String>,
    bytes: u64,
}

impl Gathered {
    /// Reads the entry if it is a chart file.
    fn take(&mut self, entry: ZipFileEntry<'_>, reader: &mut (impl Read + Seek)) {
        let Ok(name) = entry.name().map(Cow::into_owned) else {
            return;
        };
        let nested = is_archive(&name);
        if !nested && ChartFormat::of(&name).is_none() {
            return;
        }
        if !is_safe_path(&name) {
            self.files.push(ArchivedFile { path: excerpt(&name), content: Err(Refusal::UnsafePath) });
            return;
        }
        let content = if nested { Err(Refusal::NestedArchive) } else { self.read(&name, entry, reader) };
        self.files.push(ArchivedFile { path: name, content });
    }

    fn read(
        &mut self,
        path: &str,
        entry: ZipFileEntry<'_>,
        reader: &mut (impl Read + Seek),
    ) -> Result<Vec<u8>, Refusal> {
        if !self.paths.insert(path.to_owned()) {
            return Err(Refusal::DuplicateName);
        }
        if !is_regular_file(&entry) {
            return Err(Refusal::NotAFile);
        }
        if entry.encrypted() {
            return Err(Refusal::Encrypted);
        }
        let left = MAX_ARCHIVE_CHART_BYTES - self.bytes;
        let limit = left.min(MAX_FILE_BYTES);
        let inflated = entry.with_reader(reader, ZipReadOptions::new()).map_err(|error| damaged(&error))?;
        let mut content = Vec::new();
        let outcome = inflated.take(limit + 1).read_to_end(&mut content);
        // Also what turns out too large, or damaged, was work.
        self.bytes += limit.min(content.len() as u64);
        outcome.map_err(|error| damaged(&ZipError::Io(error)))?;
        if content.len() as u64 <= limit {
            Ok(content)
        } else if left < MAX_FILE_BYTES {
            Err(Refusal::ArchiveTooLarge { limit: MAX_ARCHIVE_CHART_BYTES })
        } else {
            Err(Refusal::TooLarge { limit: MAX_FILE_BYTES })
        }
    }
}

fn damaged(error: &ZipError) -> Refusal {
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
