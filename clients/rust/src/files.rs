//! Hashes chart files, archives and folders, as `chart-hash` does.

use std::collections::VecDeque;
use std::fs::{DirEntry, File};
use std::io::{self, BufReader, Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use chart_index_chartfile::archive::{self, ArchivedFile};
use chart_index_chartfile::local_files::{chart_format, is_archive, read_file};
use chart_index_chartfile::{
    ChartFormat, DecodedFile, Refusal, RefusalKind, decode_file_name, decode_skipping_stored_rox,
};
use chart_index_domain::{ChartDraft, KeyCount, NOTE_HASH_VERSION, NoteHash, VARIANT_VERSION, Variant};
use serde::Serialize;
use walkdir::WalkDir;

/// A chart of a file, or what has no note hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Hashed {
    /// A chart with its note hash.
    Chart(LocalChart),
    /// A file or chart without a note hash.
    Refused(RefusedFile),
}

/// A chart of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalChart {
    /// The path of the file. In an archive, that of the archive and that in it.
    pub file: String,
    /// Identifies the chart.
    pub hash: NoteHash,
    /// The scheme of the hash.
    pub note_hash_version: u32,
    /// What the chart has in common with its conversions; `None` if it has too few rows for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<Variant>,
    /// The scheme of the variant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant_version: Option<u8>,
    /// The number of columns.
    pub keys: KeyCount,
    /// As the file spells it, in any script.
    pub title: String,
    /// As the file spells it, in any script.
    pub artist: String,
    /// Author of the chart.
    pub creator: String,
    /// The name that the author gave to the difficulty.
    pub difficulty: String,
}

/// A file or chart without a note hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedFile {
    /// The path of the file. In an archive, that of the archive and that in it.
    pub file: String,
    /// The chart, if other charts of the file have a hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart: Option<String>,
    /// Why, without details.
    pub kind: RefusalKind,
    /// Why, with details.
    pub reason: String,
}

/// A path cannot be hashed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Its name is not that of a chart file or an archive, and it is no folder.
    #[error("{0} is neither a folder, a chart file nor an archive")]
    OtherFile(String),
    /// It does not exist, or cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The path.
        path: String,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// A folder cannot be listed.
    #[error("cannot list {path}")]
    List {
        /// The path that was given.
        path: String,
        /// Which folder, and why.
        #[source]
        cause: io::Error,
    },
}

/// Hashes the charts of a chart file or an archive with this name.
///
/// # Errors
/// The name is not that of a chart file or an archive.
pub fn hash_file(name: &str, bytes: &[u8]) -> Result<Vec<Hashed>, FileError> {
    let mut found = Vec::new();
    if let Some(format) = ChartFormat::from_path(name) {
        hash_content(name, Some(format), Ok(bytes.to_vec()), &mut found);
    } else if archive::is_archive(name) {
        hash_archive(name, Ok(Cursor::new(bytes)), &mut found);
    } else {
        return Err(FileError::OtherFile(name.to_owned()));
    }
    Ok(found)
}

/// Hashes the chart files and archives at or below a path, in the order of their names, as the iterator is
/// read. An `.sm` file beside an `.ssc` file is not read, unless `path` names it.
///
/// # Errors
/// The path cannot be read, or is neither a folder, a chart file nor an archive. The iterator has an error
/// where a folder cannot be listed; a file that cannot be read is [`Hashed::Refused`].
pub fn hash_folder(path: impl AsRef<Path>) -> Result<HashedFolder, FileError> {
    let path = path.as_ref();
    let name = || path.display().to_string();
    let metadata = path.metadata().map_err(|cause| FileError::Read { path: name(), cause })?;
    if !metadata.is_dir() && chart_format(path).is_none() && !is_archive(path) {
        return Err(FileError::OtherFile(name()));
    }
    Ok(HashedFolder {
        path: path.to_owned(),
        is_file: metadata.is_file(),
        entries: WalkDir::new(path).sort_by_file_name().into_iter(),
        replaced: ReplacedSimfiles::default(),
        found: VecDeque::new(),
    })
}

/// The charts of a folder: see [`hash_folder`].
#[derive(Debug)]
pub struct HashedFolder {
    path: PathBuf,
    is_file: bool,
    entries: walkdir::IntoIter,
    replaced: ReplacedSimfiles,
    /// What is left of the last file.
    found: VecDeque<Hashed>,
}

impl Iterator for HashedFolder {
    type Item = Result<Hashed, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = self.found.pop_front() {
                return Some(Ok(found));
            }
            let entry = match self.entries.next()? {
                Ok(entry) => entry,
                Err(cause) => {
                    let path = self.path.display().to_string();
                    return Some(Err(FileError::List { path, cause: cause.into() }));
                }
            };
            // Only regular files, unless it is the path itself: a symbolic link may lead anywhere.
            let is_named = entry.depth() == 0 && self.is_file;
            if is_named || entry.file_type().is_file() && !self.replaced.contains(entry.path()) {
                self.found = hash_path(entry.path()).into();
            }
        }
    }
}

/// The `.sm` files that the game does not read, for the `.ssc` file of their folder.
#[derive(Debug, Default)]
struct ReplacedSimfiles {
    folder: PathBuf,
    has_ssc: bool,
}

impl ReplacedSimfiles {
    fn contains(&mut self, path: &Path) -> bool {
        let Some(folder) = path.parent().filter(|_| chart_format(path) == Some(ChartFormat::Sm)) else {
            return false;
        };
        if self.folder != folder {
            let is_ssc = |entry: DirEntry| {
                let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
                is_file && chart_format(&entry.path()) == Some(ChartFormat::Ssc)
            };
            self.has_ssc = folder.read_dir().into_iter().flatten().flatten().any(is_ssc);
            folder.clone_into(&mut self.folder);
        }
        self.has_ssc
    }
}

/// Hashes a file on disk; none if it is neither a chart file nor an archive.
fn hash_path(path: &Path) -> Vec<Hashed> {
    let name: PathBuf = path.iter().map(|part| PathBuf::from(decode_file_name(part).into_owned())).collect();
    let name = name.display().to_string();
    let unreadable = |error: io::Error| Refusal::Unreadable { reason: error.to_string() };
    let mut found = Vec::new();
    if let Some(format) = chart_format(path) {
        hash_content(&name, Some(format), read_file(path).map_err(unreadable), &mut found);
    } else if is_archive(path) {
        hash_archive(&name, File::open(path).map(BufReader::new).map_err(unreadable), &mut found);
    }
    found
}

fn hash_archive(name: &str, archive: Result<impl Read + Seek, Refusal>, found: &mut Vec<Hashed>) {
    let files = match archive.and_then(archive::read_chart_files) {
        Ok(files) => files,
        Err(reason) => return found.push(refused(name, None, &reason)),
    };
    for ArchivedFile { archive, path, content } in files {
        let format = ChartFormat::from_path(&path);
        let parts = [Some(name), archive.as_deref(), Some(path.as_str()).filter(|path| !path.is_empty())];
        let name = parts.into_iter().flatten().collect::<Vec<_>>().join("/");
        hash_content(&name, format, content, found);
    }
}

fn hash_content(
    name: &str,
    format: Option<ChartFormat>,
    content: Result<Vec<u8>, Refusal>,
    found: &mut Vec<Hashed>,
) {
    let decoded = match (content, format) {
        // The hash does not need the ROX file.
        (Ok(bytes), Some(format)) => decode_skipping_stored_rox(format, &bytes, &|_| true),
        // Only chart files have content.
        (Ok(_), None) => return,
        (Err(reason), _) => Err(reason),
    };
    match decoded {
        Err(reason) => found.push(refused(name, None, &reason)),
        Ok(DecodedFile { charts, refused: others }) => {
            found.extend(charts.into_iter().map(|chart| Hashed::Chart(local_chart(name, chart))));
            found.extend(others.into_iter().map(|other| refused(name, Some(other.chart), &other.reason)));
        }
    }
}

fn local_chart(file: &str, chart: ChartDraft) -> LocalChart {
    let metadata = chart.metadata;
    LocalChart {
        file: file.to_owned(),
        hash: chart.hash,
        note_hash_version: NOTE_HASH_VERSION,
        variant: chart.variant,
        variant_version: chart.variant.map(|_| VARIANT_VERSION),
        keys: chart.numbers.keys,
        title: metadata.title,
        artist: metadata.artist,
        creator: metadata.creator,
        difficulty: metadata.difficulty,
    }
}

fn refused(file: &str, chart: Option<String>, reason: &Refusal) -> Hashed {
    let (kind, reason) = (RefusalKind::from(reason), reason.to_string());
    Hashed::Refused(RefusedFile { file: file.to_owned(), chart, kind, reason })
}
