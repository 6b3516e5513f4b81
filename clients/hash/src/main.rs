//! The program `chart-hash`: the note hashes of chart files.
#![expect(clippy::print_stderr, reason = "it has no log")]

mod lines;

use std::io::{BufWriter, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use chart_index_cli::escape_controls;
use chart_index_client::{ChartIndex, Pause, hash_folder};
use clap::Parser;
use url::Url;

use crate::lines::Lines;

/// Print the note hash of every chart in files, folders and archives
///
/// Writes JSON Lines: one object per chart, with the file, the note hash, the number of keys and the names, and
/// one per file or chart without a note hash, with the reason.
#[derive(Debug, Parser)]
#[command(name = "chart-hash", version, max_term_width = 100)]
struct Arguments {
    /// Chart files (.osu, .qua, .sm, .ssc), archives (.olz, .osz, .qp, .smzip, .zip), and folders that contain
    /// them. An .sm file beside an .ssc file is only read if it is named
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Add what the index at this base address knows of each chart, e.g. `https://charts.example`, as `lookup`
    ///
    /// The hashes are sent, 1,000 in each request; no file is. Waits where the index limits requests.
    #[arg(long, value_name = "URL", value_parser = chart_index_client::parse_base)]
    lookup: Option<Url>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments =
        chart_index_cli::parse(|_: &Arguments| Ok::<_, String>(())).unwrap_or_else(|error| error.exit());
    // An error of the connection to the index is not a `std::io::Error` itself, but its cause may be one.
    let is_closed = |error: &anyhow::Error| {
        let error = error.downcast_ref::<std::io::Error>();
        error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    };
    match hash(&arguments, &mut BufWriter::new(std::io::stdout().lock())).await {
        // It is not an error if the reader of the output closes it.
        Err(error) if !is_closed(&error) => {
            print(&format!("{error:#}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Writes a line for each chart, and for each file or chart without a note hash, in the order of their names.
///
/// # Errors
///
/// A path cannot be read or is neither a folder, a chart file nor an archive, the index cannot be asked, or the
/// output cannot be written.
async fn hash(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let index = arguments.lookup.as_ref().map(index).transpose()?;
    let mut lines = Lines::new(output, index.as_ref());
    for path in &arguments.paths {
        for found in hash_folder(path)? {
            lines.write(found?).await?;
        }
    }
    lines.finish().await
}

/// The index with this base address, which says when it waits.
fn index(base: &Url) -> Result<ChartIndex, chart_index_client::Error> {
    let host = base.host_str().unwrap_or_default().to_owned();
    let on_pause = move |Pause { status, duration, .. }: Pause| {
        print(&format!("{host} refuses requests with {status}: continues in {} s", duration.as_secs()));
    };
    let user_agent = concat!("chart-hash/", env!("CARGO_PKG_VERSION"));
    ChartIndex::builder(base.as_str(), user_agent).on_pause(on_pause).build()
}

/// Writes a line to standard error.
fn print(message: &str) {
    eprintln!("chart-hash: {}", escape_controls(message));
}
