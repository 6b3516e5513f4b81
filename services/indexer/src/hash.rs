//! `chart-indexer hash`: the note hashes of chart files, without a database.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chart_index_chartfile::archive::{self, EntryError};
use chart_index_chartfile::{ChartFormat, DecodedFile, decode_file_name, decode_skipping_stored_rox};
use chart_index_domain::{ChartDraft, KeyCount, NOTE_HASH_VERSION, NoteHash};
use serde::Serialize;
use walkdir::WalkDir;

use crate::input_files::read_file;
use crate::library::{chart_format, is_archive};
use crate::refusal_kind::RefusalKind;

/// A line of the output.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Line<'a> {
    Chart(ChartLine<'a>),
    Refused(RefusedLine<'a>),
}

/// A chart.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ChartLine<'a> {
    file: &'a str,
    hash: NoteHash,
    note_hash_version: u32,
    keys: KeyCount,
    title: &'a str,
    artist: &'a str,
    creator: &'a str,
    difficulty: &'a str,
}

/// A file or chart without a note hash.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RefusedLine<'a> {
    file: &'a str,
    /// The chart, if other charts of the file have a hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    chart: Option<&'a str>,
    kind: RefusalKind,
    reason: String,
}

impl<'a> ChartLine<'a> {
    fn new(file: &'a str, chart: &'a ChartDraft) -> Self {
        let metadata = &chart.metadata;
        Self {
            file,
            hash: chart.hash,
            note_hash_version: NOTE_HASH_VERSION,
            keys: chart.numbers.keys,
            title: &metadata.title,
            artist: &metadata.artist,
            creator: &metadata.creator,
            difficulty: &metadata.difficulty,
        }
    }
}

/// Writes one JSON object per chart, and per file or chart without a note hash, for all chart files and archives at or below
/// the paths, in the order of their names. A file that `path` itself names must be a chart file or an archive.
///
/// # Errors
///
/// A path cannot be read or is neither a folder, a chart file nor an archive, or the output cannot be written.
///
/// It is no error if the reader of the output closes it.
pub(crate) fn hash(paths: &[PathBuf], output: &mut impl Write) -> Result<()> {
    let is_closed = |error: &anyhow::Error| {
        let error = error.root_cause().downcast_ref::<std::io::Error>();
        error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    };
    match write_lines(paths, output) {
        Err(error) if is_closed(&error) => Ok(()),
        result => result,
    }
}

fn write_lines(paths: &[PathBuf], output: &mut impl Write) -> Result<()> {
    for path in paths {
        let metadata = path.metadata().with_context(|| format!("cannot read {}", path.display()))?;
        if !metadata.is_dir() && chart_format(path).is_none() && !is_archive(path) {
            anyhow::bail!("{} is neither a folder, a chart file nor an archive", path.display());
        }
        for entry in WalkDir::new(path).sort_by_file_name() {
            let entry = entry.with_context(|| format!("cannot list {}", path.display()))?;
            // Only regular files, unless it is the path itself: a symbolic link may lead anywhere.
            if entry.file_type().is_file() || entry.depth() == 0 && metadata.is_file() {
                hash_file(entry.path(), output)?;
            }
        }
    }
    output.flush().context("cannot write the output")
}

fn hash_file(path: &Path, output: &mut impl Write) -> Result<()> {
    let name: PathBuf = path.iter().map(|part| PathBuf::from(decode_file_name(part).into_owned())).collect();
    let name = name.display().to_string();
    if let Some(format) = chart_format(path) {
        let content = read_file(path).map_err(|error| EntryError::Unreadable { reason: error.to_string() });
        return write_file(&name, format, content, output);
    }
    if !is_archive(path) {
        return Ok(());
    }
    let archive = match File::open(path) {
        Ok(file) => archive::read_chart_files(BufReader::new(file)).map_err(EntryError::from),
        Err(error) => Err(EntryError::Unreadable { reason: error.to_string() }),
    };
    match archive {
        Err(error) => write_refused(&name, None, &error, output),
        Ok(files) => files.into_iter().try_for_each(|file| {
            let Some(format) = ChartFormat::from_path(&file.path) else { return Ok(()) };
            write_file(&format!("{name}/{}", file.path), format, file.content, output)
        }),
    }
}

/// Writes the charts of a file.
fn write_file(
    name: &str,
    format: ChartFormat,
    content: Result<Vec<u8>, EntryError>,
    output: &mut impl Write,
) -> Result<()> {
    // The hash does not need the ROX file.
    let decoded = content.and_then(|bytes| Ok(decode_skipping_stored_rox(format, &bytes, &|_| true)?));
    match decoded {
        Err(error) => write_refused(name, None, &error, output),
        Ok(DecodedFile { charts, refused }) => {
            for chart in &charts {
                write_line(&Line::Chart(ChartLine::new(name, chart)), output)?;
            }
            refused.into_iter().try_for_each(|refused| {
                write_refused(name, Some(&refused.chart), &refused.reason.into(), output)
            })
        }
    }
}

fn write_refused(name: &str, chart: Option<&str>, error: &EntryError, output: &mut impl Write) -> Result<()> {
    let (kind, reason) = (RefusalKind::from(error), error.to_string());
    write_line(&Line::Refused(RefusedLine { file: name, chart, kind, reason }), output)
}

fn write_line(line: &Line<'_>, output: &mut impl Write) -> Result<()> {
    serde_json::to_writer(&mut *output, line)
        .map_err(std::io::Error::from)
        .context("cannot write the output")?;
    output.write_all(b"\n").context("cannot write the output")
}
