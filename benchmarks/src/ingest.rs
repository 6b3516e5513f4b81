//! Compares the time of an ingest with that of decoding alone (parsing, hashing and ROX encoding on all cores).
//!
//! ```text
//! bench-ingest LIBRARY [COPIES] [ROUNDS]
//! ```
//!
//! It copies a library under changed ids, then runs `chart-indexer ingest --dry-run` and `chart-indexer ingest`
//! alternately, each round with an empty database, on a PostgreSQL server of its own that waits for the disk as
//! in production.
#![expect(clippy::print_stdout, reason = "a program that prints its measurements")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chart_index_tests::{PrivatePostgres, TestDatabase, indexer};
use walkdir::WalkDir;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let library = PathBuf::from(arguments.next().context("usage: bench-ingest LIBRARY [COPIES] [ROUNDS]")?);
    let copies: u32 = arguments.next().map_or(Ok(200), |copies| copies.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |rounds| rounds.parse())?;
    let folder = tempfile::tempdir()?;
    copy_library(&library, folder.path(), copies)?;
    let postgres = PrivatePostgres::start();
    let (mut dry_runs, mut ingests) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        dry_runs.push(timed(&["ingest", "--dry-run"], folder.path(), "postgres://127.0.0.1:1/none")?);
        let database = TestDatabase::create_on(postgres.url());
        ensure!(indexer(database.url(), &["migrate"]).code == Some(0), "migrating the database failed");
        ingests.push(timed(&["ingest"], folder.path(), database.url())?);
        let (dry_run, ingest) = (dry_runs[round - 1], ingests[round - 1]);
        println!("round {round}: dry run {dry_run:.2?}, ingest {ingest:.2?}");
    }
    let (dry_run, ingest) = (median(dry_runs), median(ingests));
    println!(
        "{copies} copies of {}, median of {rounds}: dry run {dry_run:.2?}, ingest {ingest:.2?}, {:.0} % of its speed",
        library.display(),
        100.0 * dry_run.as_secs_f64() / ingest.as_secs_f64(),
    );
    Ok(())
}

/// Hard-links every file of the library into copies with changed set and pack ids.
fn copy_library(library: &Path, target: &Path, copies: u32) -> Result<()> {
    for entry in WalkDir::new(library).min_depth(3) {
        let entry = entry?;
        if !entry.file_type().is_file() {
            continue;
        }
        let relative = entry.path().strip_prefix(library)?;
        for copy in 1..=copies {
            let path = target.join(path_of_copy(relative, copy));
            std::fs::create_dir_all(path.parent().context("a file without a folder")?)?;
            if std::fs::hard_link(entry.path(), &path).is_err() {
                std::fs::copy(entry.path(), &path)?;
            }
        }
    }
    Ok(())
}

/// The path of a copy: `alpha/12 name/…` becomes `alpha/12<copy> name/…`; a folder without an id gets a suffix.
fn path_of_copy(path: &Path, copy: u32) -> PathBuf {
    let mut parts: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let (id, name) = parts[1].split_once(' ').unwrap_or((&parts[1], ""));
    parts[1] = match id.parse::<u32>() {
        Ok(id) => format!("{} {name}", (id % 10_000) * 1_000 + copy),
        Err(_) => format!("{} {copy}", parts[1]),
    };
    parts.iter().collect()
}

fn timed(command: &[&str], library: &Path, database_url: &str) -> Result<Duration> {
    let library = library.to_str().context("the path is not UTF-8")?;
    let arguments: Vec<&str> = command.iter().copied().chain([library]).collect();
    let start = Instant::now();
    let run = indexer(database_url, &arguments);
    let elapsed = start.elapsed();
    ensure!(run.code == Some(0), "{command:?} failed: {}", run.stderr);
    Ok(elapsed)
}

fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort();
    durations[durations.len() / 2]
}
