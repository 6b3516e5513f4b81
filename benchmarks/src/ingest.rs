//! Ingest against reading alone: how much of the speed of parse + hash + ROX encoding on all cores is left when
//! the charts go into PostgreSQL.
//!
//! `bench-ingest LIBRARY [COPIES] [ROUNDS]` makes copies of a library under changed ids, then runs
//! `chart-indexer ingest --dry-run` and `chart-indexer ingest` in turn, each round into an empty database.
#![expect(clippy::print_stdout, reason = "a program that prints its measurements")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chart_index_tests::{TestDatabase, indexer};
use walkdir::WalkDir;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let library = PathBuf::from(arguments.next().context("usage: bench-ingest LIBRARY [COPIES] [ROUNDS]")?);
    let copies: u32 = arguments.next().map_or(Ok(200), |copies| copies.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |rounds| rounds.parse())?;
    let folder = tempfile::tempdir()?;
    copy_library(&library, folder.path(), copies)?;
    let (mut alone, mut stored) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        alone.push(timed(&["ingest", "--dry-run"], folder.path(), "postgres://127.0.0.1:1/none")?);
        let admin_url = std::env::var("TEST_DATABASE_URL").context("run it with `make bench`")?;
        let database = TestDatabase::create_on(&admin_url);
        ensure!(indexer(database.url(), &["migrate"]).code == Some(0), "the database cannot be migrated");
        stored.push(timed(&["ingest"], folder.path(), database.url())?);
        let (alone, stored) = (alone[round - 1], stored[round - 1]);
        println!("round {round}: reading alone {alone:.2?}, ingest {stored:.2?}");
    }
    let (alone, stored) = (median(alone), median(stored));
    println!(
        "{copies} copies of {}, median of {rounds}: reading alone {alone:.2?}, ingest {stored:.2?}, {:.0} % of its speed",
        library.display(),
        100.0 * alone.as_secs_f64() / stored.as_secs_f64(),
    );
    Ok(())
}

/// Links every file of the library into copies whose set and pack ids are changed.
fn copy_library(library: &Path, target: &Path, copies: u32) -> Result<()> {
    for entry in WalkDir::new(library).min_depth(3) {
        let entry = entry?;
        if !entry.file_type().is_file() {
            continue;
        }
        let below = entry.path().strip_prefix(library)?;
        for copy in 1..=copies {
            let path = target.join(changed_id(below, copy));
            std::fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
            if std::fs::hard_link(entry.path(), &path).is_err() {
                std::fs::copy(entry.path(), &path)?;
            }
        }
    }
    Ok(())
}

/// `alpha/12 name/…` becomes `alpha/12<copy> name/…`; a folder without an id gets another name.
fn changed_id(below: &Path, copy: u32) -> PathBuf {
    let mut parts: Vec<String> = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let (id, name) = parts[1].split_once(' ').unwrap_or((&parts[1], ""));
    parts[1] = match id.parse::<u32>() {
        Ok(id) => format!("{} {name}", (id % 10_000) * 1_000 + copy),
        Err(_) => format!("{} {copy}", parts[1]),
    };
    parts.iter().collect()
}

fn timed(command: &[&str], library: &Path, database_url: &str) -> Result<Duration> {
    let library = library.to_str().context("a readable path")?;
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
