//! `chart-indexer hash`: the note hashes of chart files, without a database.

mod lines;
mod lookup;

use std::fs::{DirEntry, File};
use std::io::{BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chart_index_chartfile::archive::{self, ArchivedFile, EntryError};
use chart_index_chartfile::{ChartFormat, DecodedFile, decode_file_name, decode_skipping_stored_rox};
use reqwest::Url;
use walkdir::WalkDir;

use crate::hash::lines::Lines;
use crate::hash::lookup::Lookup;
use crate::input_files::read_file;
use crate::library::{chart_format, is_archive};

/// Writes one JSON object per chart, and per file or chart without a note hash, for all chart files and
/// archives at or below the paths, in the order of their names. An `.sm` file beside an `.ssc` file is not
/// read, unless a path names it. A file that `path` itself names must be a chart file or an archive.
///
/// The lines of charts have what the instance at `lookup` knows of them.
///
/// # Errors
///
/// A path cannot be read or is neither a folder, a chart file nor an archive, the instance cannot be asked, or
/// the output cannot be written.
///
/// It is not an error if the reader of the output closes it.
pub(crate) async fn hash(paths: &[PathBuf], lookup: Option<&Url>, output: &mut impl Write) -> Result<()> {
    // An error of the connection to the instance is not a `std::io::Error` itself, but its cause may be one.
    let is_closed = |error: &anyhow::Error| {
        let error = error.downcast_ref::<std::io::Error>();
        error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    };
    let instance = lookup.map(Lookup::new).transpose()?;
    match write_lines(paths, Lines::new(output, instance.as_ref())).await {
        Err(error) if is_closed(&error) => Ok(()),
        result => result,
    }
}

async fn write_lines<W: Write>(paths: &[PathBuf], mut lines: Lines<'_, W>) -> Result<()> {
    for path in paths {
        let metadata = path.metadata().with_context(|| format!("cannot read {}", path.display()))?;
        if !metadata.is_dir() && chart_format(path).is_none() && !is_archive(path) {
            anyhow::bail!("{} is neither a folder, a chart file nor an archive", path.display());
        }
        let mut replaced = ReplacedSimfiles::default();
        for entry in WalkDir::new(path).sort_by_file_name() {
            let entry = entry.with_context(|| format!("cannot list {}", path.display()))?;
            // Only regular files, unless it is the path itself: a symbolic link may lead anywhere.
            let is_named = entry.depth() == 0 && metadata.is_file();
            if is_named || entry.file_type().is_file() && !replaced.contains(entry.path()) {
                hash_file(entry.path(), &mut lines).await?;
            }
        }
    }
    lines.finish().await
}

/// The `.sm` files that the game does not read, for the `.ssc` file of their folder.
#[derive(Default)]
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

async fn hash_file<W: Write>(path: &Path, lines: &mut Lines<'_, W>) -> Result<()> {
    let name: PathBuf = path.iter().map(|part| PathBuf::from(decode_file_name(part).into_owned())).collect();
    let name = name.display().to_string();
    if let Some(format) = chart_format(path) {
        let content = read_file(path).map_err(|error| EntryError::Unreadable { reason: error.to_string() });
        return write_file(&name, Some(format), content, lines).await;
    }
    if !is_archive(path) {
        return Ok(());
    }
    let archive = match File::open(path) {
        Ok(file) => archive::read_chart_files(BufReader::new(file)).map_err(EntryError::from),
        Err(error) => Err(EntryError::Unreadable { reason: error.to_string() }),
    };
    let files = match archive {
        Ok(files) => files,
        Err(error) => return lines.write_refused(&name, None, &error).await,
    };
    for ArchivedFile { archive, path, content } in files {
        let format = ChartFormat::from_path(&path);
        let parts = [Some(name.clone()), archive, Some(path).filter(|path| !path.is_empty())];
        let name = parts.into_iter().flatten().collect::<Vec<_>>().join("/");
        write_file(&name, format, content, lines).await?;
    }
    Ok(())
}

async fn write_file<W: Write>(
    name: &str,
    format: Option<ChartFormat>,
    content: Result<Vec<u8>, EntryError>,
    lines: &mut Lines<'_, W>,
) -> Result<()> {
    let decoded = match (content, format) {
        // The hash does not need the ROX file.
        (Ok(bytes), Some(format)) => {
            decode_skipping_stored_rox(format, &bytes, &|_| true).map_err(Into::into)
        }
        // Only chart files have content.
        (Ok(_), None) => return Ok(()),
        (Err(error), _) => Err(error),
    };
    let DecodedFile { charts, refused } = match decoded {
        Ok(decoded) => decoded,
        Err(error) => return lines.write_refused(name, None, &error).await,
    };
    for chart in charts {
        lines.write_chart(name, chart).await?;
    }
    for refused in refused {
        lines.write_refused(name, Some(refused.chart), &refused.reason.into()).await?;
    }
    Ok(())
}
