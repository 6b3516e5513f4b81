//! Compares what `chart-hash` gives for the files of a folder with what another reader gives.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use chart_index_tests::program_command;
use serde_json::Value;

use crate::reference_hash::{ReferenceNote, UNDECIDED, hashes};

/// A chart of a file: the key of a result.
type ChartKey = (String, String);

/// What a reader gives for a chart: its possible note hashes, or why there is none.
type Read = Result<BTreeSet<String>, String>;

/// What the other reader gives.
pub(crate) struct Reference(HashMap<ChartKey, Read>);

impl Reference {
    /// Runs a script that prints a JSON object for each chart.
    pub(crate) fn run(command: &mut Command) -> Self {
        let mut charts = HashMap::new();
        for line in json_lines(command) {
            let notes =
                line["notes"].as_array().map(|notes| notes.iter().map(reference_note).collect::<Vec<_>>());
            let read = match (&line["error"], notes) {
                (Value::String(error), _) => Err(error.clone()),
                (_, Some(notes)) => hashes(keys(&line), &notes).map_err(str::to_owned),
                _ => panic!("neither notes nor an error: {line}"),
            };
            charts.insert((text(&line, "file"), text(&line, "chart")), read);
        }
        Self(charts)
    }

    /// The result of a chart, or of its file.
    fn read(&self, file: &str, chart: &str) -> Read {
        let of_file = || self.0.get(&(file.to_owned(), String::new()));
        let read = self.0.get(&(file.to_owned(), chart.to_owned())).or_else(of_file);
        read.cloned().unwrap_or_else(|| Err("no such chart".to_owned()))
    }
}

fn keys(line: &Value) -> u8 {
    line["keys"].as_u64().and_then(|keys| u8::try_from(keys).ok()).unwrap_or(0)
}

fn reference_note(note: &Value) -> ReferenceNote {
    ReferenceNote {
        start_us: note[0].as_f64().expect("a time"),
        column: note[1].as_i64().and_then(|column| u8::try_from(column).ok()).unwrap_or(u8::MAX),
        end_us: note[2].as_f64(),
    }
}

fn text(line: &Value, field: &str) -> String {
    line[field].as_str().unwrap_or_default().to_owned()
}

fn json_lines(command: &mut Command) -> Vec<Value> {
    let output = command.output().expect("the command starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.stdout.is_empty(), "{command:?} prints nothing: {errors}");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// What this project gives for the files below a folder.
pub(crate) struct Indexed {
    charts: HashMap<ChartKey, String>,
    /// Of each file, since a file has a chart once.
    hashes: HashMap<String, BTreeSet<String>>,
    refusals: HashMap<String, String>,
}

impl Indexed {
    pub(crate) fn run(folder: &Path) -> Self {
        let mut indexed = Self { charts: HashMap::new(), hashes: HashMap::new(), refusals: HashMap::new() };
        for line in json_lines(program_command("chart-hash").arg(folder)) {
            let file = text(&line, "file");
            if let Some(hash) = line["hash"].as_str() {
                indexed.charts.insert((file.clone(), text(&line, "difficulty")), hash.to_owned());
                indexed.hashes.entry(file).or_default().insert(hash.to_owned());
            } else {
                indexed.refusals.entry(file).or_default().push_str(&text(&line, "reason"));
            }
        }
        indexed
    }

    /// Whether a chart is what the other reader gives.
    fn agrees(&self, file: &str, chart: &str, read: &Read) -> bool {
        let hash = self.charts.get(&(file.to_owned(), chart.to_owned()));
        match (hash, read) {
            (Some(hash), Ok(possible)) => possible.contains(hash),
            (None, Ok(possible)) => self.hashes.get(file).is_some_and(|hashes| !hashes.is_disjoint(possible)),
            (Some(_), Err(_)) => false,
            (None, Err(_)) => true,
        }
    }

    fn describe(&self, file: &str, chart: &str) -> String {
        let hash = self.charts.get(&(file.to_owned(), chart.to_owned())).cloned();
        let refusal = || self.refusals.get(file).cloned().unwrap_or_else(|| "no such chart".to_owned());
        hash.unwrap_or_else(refusal)
    }
}

/// How many charts there were of each kind.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    charts: usize,
    /// Without a note hash in both.
    refused: usize,
    /// With too many times in the middle of two microseconds.
    undecided: usize,
    /// Charts that differ.
    different: Vec<String>,
}

impl Counts {
    /// Compares a chart of a file.
    pub(crate) fn compare(&mut self, file: &str, chart: &str, (indexed, reference): (&Indexed, &Reference)) {
        self.charts += 1;
        let read = reference.read(file, chart);
        if read.as_ref().is_err_and(|error| error == UNDECIDED) {
            self.undecided += 1;
        } else if !indexed.agrees(file, chart, &read) {
            self.different.push(format!("{file} {chart}: {read:?}, here {}", indexed.describe(file, chart)));
        } else if read.is_err() {
            self.refused += 1;
        }
    }

    /// Prints the counts and checks them.
    pub(crate) fn check(&self) {
        let Self { charts, refused, undecided, different } = self;
        println!("{charts} charts, {refused} without a note hash, {undecided} undecided");
        for chart in different {
            println!("DIFFERENT {chart}");
        }
        assert!(different.is_empty(), "{} charts differ", different.len());
        assert!(50 * (refused + undecided) < *charts, "too many charts have no note hash");
    }
}
