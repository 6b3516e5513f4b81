//! Ingesting an unchanged library again: how many chartsets a second, by one build of `chart-indexer` or several in turn.
//!
//! `bench-reingest SETS ROUNDS [PROGRAM…]` writes a library of that many chartsets with one chart each, has each program
//! (by default the one beside it) ingest it into a database of its own, and then, round by round, ingest it again: as it
//! is, and, where the program keeps metadata, once more with that forgotten, so that the content of each file decides.
//! Processor time is that of the program and of the backends of PostgreSQL together: unlike the time that passes, it
//! says something on a machine that does other work as well.
#![expect(clippy::print_stdout, reason = "a program that prints its measurements")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chart_index_tests::TestDatabase;

/// Notes of a chart, unless `REINGEST_NOTES` sets another number: with them its file has some 3 KB, one block of the file
/// system. Files of the first game mostly have ten times as many.
const NOTES: u64 = 100;
/// How long after it was written a file may be known by its metadata, and a little more.
const SETTLED: Duration = Duration::from_secs(4);

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
    wait(SETTLED);
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

/// A program with the database that it filled.
struct Candidate {
    program: PathBuf,
    database: TestDatabase,
    knows_metadata: bool,
    unchanged: Vec<Cost>,
    by_content: Vec<Cost>,
}

/// What one run took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    elapsed: Duration,
    processor: Duration,
}

impl Candidate {
    fn new(program: PathBuf, library: &Path, admin_url: &str, sets: u64) -> Result<Self> {
        let database = TestDatabase::create_on(admin_url);
        let mut candidate =
            Self { program, database, knows_metadata: false, unchanged: Vec::new(), by_content: Vec::new() };
        let _ = candidate.run(&["migrate"])?;
        let table = "SELECT to_regclass('ingest_fingerprints') IS NOT NULL";
        candidate.knows_metadata = candidate.database.psql(table) == "t";
        let first = candidate.ingest(library, &format!("{sets} chartsets added"))?;
        println!("{}: first ingest {first:.2?}", candidate.program.display());
        let _ = candidate.database.psql("VACUUM ANALYZE");
        Ok(candidate)
    }

    fn measure(&mut self, library: &Path, sets: u64, round: u64) -> Result<()> {
        let expected = format!("0 chartsets added, {sets} unchanged, 0 updated");
        // The first run after the files were written reads them once more.
        if round == 1 {
            let _ = self.ingest(library, &expected)?;
        }
        self.unchanged.push(self.ingest(library, &expected)?);
        if self.knows_metadata {
            let _ = self.database.psql("UPDATE ingest_fingerprints SET metadata = NULL");
            let _ = self.database.psql("VACUUM ANALYZE ingest_fingerprints");
            self.by_content.push(self.ingest(library, &expected)?);
        }
        let (unchanged, by_content) = (self.unchanged.last(), self.by_content.last());
        println!("round {round}: {}: {unchanged:.2?}, by content {by_content:.2?}", self.program.display());
        Ok(())
    }

    fn ingest(&self, library: &Path, expected: &str) -> Result<Cost> {
        let processor = || -> Result<Duration> {
            let postgres = self.database.psql("SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)");
            Ok(processor_time_of_children("self")? + processor_time_of_children(&postgres)?)
        };
        let (before, start) = (processor()?, Instant::now());
        let output = self.run(&["ingest", library.to_str().context("a readable path")?])?;
        let elapsed = start.elapsed();
        ensure!(output.contains(expected), "{expected} was expected: {output}");
        Ok(Cost { elapsed, processor: processor()?.saturating_sub(before) })
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
        for (what, costs) in [("unchanged", self.unchanged), ("by content", self.by_content)] {
            if costs.is_empty() {
                continue;
            }
            let elapsed = median(costs.iter().map(|cost| cost.elapsed).collect());
            let processor = median(costs.iter().map(|cost| cost.processor).collect());
            println!(
                "{}: {what}: median {elapsed:.2?}, {:.0} us of processor time a chartset",
                self.program.display(),
                per_set(processor)
            );
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The processor time of the children of a process that have ended.
fn processor_time_of_children(process: &str) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("the name of a process is in parentheses")?;
    let ticks =
        |field: usize| fields.split_whitespace().nth(field).and_then(|ticks| ticks.parse::<u64>().ok());
    let (user, system) = (ticks(13).context("no user time")?, ticks(14).context("no system time")?);
    // Linux counts in hundredths of a second, whatever its own clock does.
    Ok(Duration::from_millis((user + system) * 10))
}

#[expect(clippy::disallowed_methods, reason = "there is no runtime whose worker it would block")]
fn wait(duration: Duration) {
    std::thread::sleep(duration);
}

fn write_library(root: &Path, sets: u64) -> Result<()> {
    let notes = match std::env::var("REINGEST_NOTES") {
        Ok(notes) => notes.parse().context("REINGEST_NOTES is no number")?,
        Err(_) => NOTES,
    };
    for set in 1..=sets {
        let folder = root.join(format!("alpha/{set} Artist - Title {set}"));
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("Artist - Title (creator) [Hard].osu"), chart(set, notes)?)?;
    }
    Ok(())
}

/// A chart whose notes no other set has.
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
