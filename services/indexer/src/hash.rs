//! `chart-indexer hash`: the note hashes of chart files, without a database.

mod lines;

use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use anyhow::Result;
use chart_index_client::{ChartIndex, hash_folder};
use reqwest::Url;

use crate::hash::lines::Lines;
use crate::instance::instance;

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
    let instance = lookup.map(|base| instance(base).build()).transpose()?;
    match write_lines(paths, instance.as_ref(), output).await {
        Err(error) if is_closed(&error) => Ok(()),
        result => result,
    }
}

async fn write_lines(
    paths: &[PathBuf],
    instance: Option<&ChartIndex>,
    output: &mut impl Write,
) -> Result<()> {
    let mut lines = Lines::new(output, instance);
    for path in paths {
        for found in hash_folder(path)? {
            lines.write(found?).await?;
        }
    }
    lines.finish().await
}
