//! Measures the ingest of an unchanged library, for one or several builds of `chart-indexer`.
//!
//! ```text
//! TEST_DATABASE_URL=… [REINGEST_NOTES=…] bench-reingest SETS ROUNDS [PROGRAM…]
//! ```
//!
//! It writes a library of `SETS` chartsets with one chart each, and lets each program (by default that of the same
//! build) ingest it into its own database. Each round ingests the unchanged library again, and once more after deleting
//! the digests of its metadata, so that files are compared by content. CPU time is that of the program and of
//! PostgreSQL together; it depends less on the load of the machine than elapsed time does.
#![expect(clippy::print_stdout, reason = "a program that prints its measurements")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chart_index_tests::TestDatabase;

/// The default number of notes per chart: a file of 3 KB, one block of the file system. Most real files have ten times
/// as many notes (`REINGEST_NOTES`).
const NOTES: u64 = 100;
/// The metadata of a file is trusted only some time after the last change; this is a little longer.
const SETTLE_TIME: Duration = Duration::from_secs(4);

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = || -> Result<u64> {
        let argument = arguments.next().context("usage: bench-reingest SETS ROUNDS [PROGRAM…]")?;
        Ok(argument.parse()?)
    };
    let (sets, rounds) = (number()?, number()?);
    let mut programs: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    if programs.is_empty() {
        programs.push(std::env::current_exe()?.with_file_name("chart-indexer"));
    }
    let folder = tempfile::tempdir()?;
    write_library(folder.path(), sets)?;
    let admin_url = std::env::var("TEST_DATABASE_URL").context("TEST_DATABASE_URL is not set")?;
    let mut candidates = Vec::new();
    for program in programs {
        candidates.push(Candidate::new(program, folder.path(), &admin_url, sets)?);
    }
    wait(SETTLE_TIME);
    for round in 1..=rounds {
        for candidate in &mut candidates {
            candidate.measure(folder.path(), sets, round)?;
        }
    }
    for candidate in candidates {
        candidate.print(sets);
    }
    Ok(())
}

/// A program under test, with the database that it filled.
struct Candidate {
    program: PathBuf,
    database: TestDatabase,
    unchanged: Vec<RunTime>,
    by_content: Vec<RunTime>,
}

/// The time of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RunTime {
    elapsed: Duration,
    cpu: Duration,
}

impl Candidate {
    fn new(program: PathBuf, library: &Path, admin_url: &str, sets: u64) -> Result<Self> {
        let database = TestDatabase::create_on(admin_url);
        let candidate = Self { program, database, unchanged: Vec::new(), by_content: Vec::new() };
        let _ = candidate.run(&["migrate"])?;
        let first = candidate.ingest(library, &format!("{sets} chartsets added"))?;
        let RunTime { elapsed, cpu } = first;
        println!("{}: first ingest {elapsed:.2?}, CPU {cpu:.2?}", candidate.program.display());
        let _ = candidate.database.psql("VACUUM ANALYZE");
        Ok(candidate)
    }

    fn measure(&mut self, library: &Path, sets: u64, round: u64) -> Result<()> {
        let expected = format!("0 chartsets added, {sets} unchanged, 0 updated");
        // A warm-up: the first run after the files were written reads them again.
        if round == 1 {
            let _ = self.ingest(library, &expected)?;
        }
        self.unchanged.push(self.ingest(library, &expected)?);
        let _ = self.database.psql("UPDATE ingest_fingerprints SET metadata_digest = NULL");
        let _ = self.database.psql("VACUUM ANALYZE ingest_fingerprints");
        self.by_content.push(self.ingest(library, &expected)?);
        let program = self.program.display();
        for (name, times) in [("unchanged", &self.unchanged), ("by content", &self.by_content)] {
            if let Some(RunTime { elapsed, cpu }) = times.last() {
                println!("round {round}: {program}: {name} {elapsed:.2?}, CPU {cpu:.2?}");
            }
        }
        Ok(())
    }

    fn ingest(&self, library: &Path, expected: &str) -> Result<RunTime> {
        let cpu = || -> Result<Duration> {
            let postgres = self.database.psql("SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)");
            Ok(cpu_time_of_children("self")? + cpu_time_of_children(&postgres)?)
        };
        let (before, start) = (cpu()?, Instant::now());
        let output = self.run(&["ingest", library.to_str().context("the path is not UTF-8")?])?;
        let elapsed = start.elapsed();
        ensure!(output.contains(expected), "expected {expected}: {output}");
        Ok(RunTime { elapsed, cpu: cpu()?.saturating_sub(before) })
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        let output = command.args(arguments).env("DATABASE_URL", self.database.url()).output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{arguments:?} failed: {error}");
        Ok(String::from_utf8(output.stdout)?)
    }

    fn print(self, sets: u64) {
        let per_set = |time: Duration| time.as_secs_f64() * 1e6 / Duration::from_secs(sets).as_secs_f64();
        for (name, times) in [("unchanged", self.unchanged), ("by content", self.by_content)] {
            if times.is_empty() {
                continue;
            }
            let elapsed = median(times.iter().map(|time| time.elapsed).collect());
            let cpu = median(times.iter().map(|time| time.cpu).collect());
            println!(
                "{}: {name}: median {elapsed:.2?}, {:.0} us of CPU time per chartset",
                self.program.display(),
                per_set(cpu)
            );
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The CPU time of the children of a process that have ended.
fn cpu_time_of_children(process: &str) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("no program name")?;
    let ticks =
        |field: usize| fields.split_whitespace().nth(field).and_then(|ticks| ticks.parse::<u64>().ok());
    let (user, system) = (ticks(13).context("no user time")?, ticks(14).context("no system time")?);
    // USER_HZ is 100 on Linux.
    Ok(Duration::from_millis((user + system) * 10))
}

#[expect(clippy::disallowed_methods, reason = "it blocks no async runtime")]
fn wait(duration: Duration) {
    std::thread::sleep(duration);
}

fn write_library(root: &Path, sets: u64) -> Result<()> {
    let notes = match std::env::var("REINGEST_NOTES") {
        Ok(notes) => notes.parse().context("REINGEST_NOTES is not a number")?,
        Err(_) => NOTES,
    };
    for set in 1..=sets {
        let folder = root.join(format!("alpha/{set} Artist - Title {set}"));
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("Artist - Title (creator) [Hard].osu"), chart(set, notes)?)?;
    }
    Ok(())
}

/// A chart with notes that differ from those of all other sets.
fn chart(set: u64, notes: u64) -> Result<String> {
    let mut text = format!(
        "osu file format v14\n\n[General]\nAudioFilename: a.mp3\nMode: 3\n\n[Metadata]\nTitle:Title {set}\n\
         TitleUnicode:Title {set}\nArtist:Artist\nArtistUnicode:Artist\nCreator:creator\nVersion:Hard\n\
         Tags:one two three\nBeatmapID:{set}\nBeatmapSetID:{set}\n\n[Difficulty]\nCircleSize:4\n\
         OverallDifficulty:8\n\n[TimingPoints]\n0,400,4,1,0,50,1,0\n\n[HitObjects]\n"
    );
    for note in 0..notes {
        let shift = if note == 1 {
            set % 300
        } else if note == 2 {
            set / 300
        } else {
            0
        };
        let (column, start) = ((note % 4 * 2 + 1) * 64, note * 2_000 + shift);
        writeln!(text, "{column},192,{start},1,0,0:0:0:0:")?;
    }
    Ok(text)
}
