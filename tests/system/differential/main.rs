//! Note hashes of generated files are those that other readers give: simfiles with the Python package simfile,
//! `.osu` with the npm packages osu-parsers and osu-mania-stable. Constructs that these treat in another way
//! than the games are not generated; the tests of `chartfile` have them.
//!
//! Hashes are compared exactly. Both sides compute times in double precision, in another order of additions, so
//! a time may be on either side of the middle of two microseconds; where that could change a millisecond,
//! either hash is right (`reference_hash`). Beats are written with three decimals where they are not on a row,
//! so none of them is so near to the middle of two rows that the single precision of the game decides.
//!
//! `DIFFERENTIAL_SEED` repeats a run, and `DIFFERENTIAL_KEEP` is a folder in which the files stay.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]

mod comparison;
mod osu_files;
mod reference_hash;
mod simfile_notes;
mod simfile_timing;
mod simfiles;

use std::fmt::Debug;
use std::path::PathBuf;
use std::process::Command;

use chart_index_tests::{Random, workspace_root};

use crate::comparison::{Counts, Indexed, Reference};
use crate::osu_files::{DIFFICULTY, OsuFile};
use crate::simfiles::Simfile;

/// Files of a run, and of each run of the long form.
const FILES: usize = 2_000;

/// Runs of the long form.
const LONG_RUNS: u64 = 50;

/// The first seed: that of the variable, or always the same.
fn seed() -> u64 {
    let seed = std::env::var("DIFFERENTIAL_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("DIFFERENTIAL_SEED={seed}");
    seed
}

fn chart_libraries(command: &str) -> Command {
    let mut program = Command::new(workspace_root().join("scripts/chart-libraries"));
    program.arg(command);
    program
}

/// Generated files in folders of their own.
struct Folder {
    path: PathBuf,
    _temporary: Option<tempfile::TempDir>,
}

impl Folder {
    fn create() -> Self {
        if let Some(path) = std::env::var_os("DIFFERENTIAL_KEEP") {
            return Self { path: path.into(), _temporary: None };
        }
        let temporary = tempfile::tempdir().unwrap();
        Self { path: temporary.path().to_path_buf(), _temporary: Some(temporary) }
    }

    /// Writes a file into a folder that names its feature, and returns its path.
    fn write(&self, index: usize, feature: impl Debug, name: &str, text: &str) -> String {
        let folder = self.path.join(format!("{index:04} {feature:?}"));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// What this project and another reader give.
    fn read(&self, reader: &str) -> (Indexed, Reference) {
        let mut command = chart_libraries(reader);
        (Indexed::run(&self.path), Reference::run(command.arg(&self.path)))
    }
}

fn compare_simfiles(seed: u64, counts: &mut Counts) {
    let mut random = Random::new(seed);
    let folder = Folder::create();
    let files: Vec<(String, Simfile)> = (0..FILES)
        .map(|index| {
            let file = Simfile::generate(&mut random);
            (folder.write(index, file.feature, file.file_name(), &file.text()), file)
        })
        .collect();
    let (indexed, reference) = folder.read("read-simfiles");
    for (path, file) in &files {
        for chart in &file.charts {
            counts.compare(path, chart.difficulty, (&indexed, &reference));
        }
    }
}

fn compare_osu_files(seed: u64, counts: &mut Counts) {
    let mut random = Random::new(seed);
    let folder = Folder::create();
    let files: Vec<String> = (0..FILES)
        .map(|index| {
            let file = OsuFile::generate(&mut random);
            folder.write(index, file.feature, "chart.osu", &file.text())
        })
        .collect();
    let (indexed, reference) = folder.read("read-osu");
    for path in &files {
        counts.compare(path, DIFFICULTY, (&indexed, &reference));
    }
}

#[test]
fn simfiles_have_the_notes_of_simfile() {
    let mut counts = Counts::default();
    compare_simfiles(seed(), &mut counts);
    counts.check();
}

#[test]
fn osu_files_have_the_notes_of_osu_parsers() {
    let mut counts = Counts::default();
    compare_osu_files(seed(), &mut counts);
    counts.check();
}

#[test]
#[ignore = "100,000 files: make test-full"]
fn long_simfiles_have_the_notes_of_simfile() {
    let (first, mut counts) = (seed(), Counts::default());
    (0..LONG_RUNS).for_each(|run| compare_simfiles(first + run, &mut counts));
    counts.check();
}

#[test]
#[ignore = "100,000 files: make test-full"]
fn long_osu_files_have_the_notes_of_osu_parsers() {
    let (first, mut counts) = (seed(), Counts::default());
    (0..LONG_RUNS).for_each(|run| compare_osu_files(first + run, &mut counts));
    counts.check();
}
