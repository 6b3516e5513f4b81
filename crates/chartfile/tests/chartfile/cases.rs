//! Small files that the games read in a way of their own, each in a folder of `tests/cases/<format>` with
//! `expected.osu`, a plain file with the same notes. A folder without one has a reason in [`REFUSED`].

use std::fs;
use std::path::{Path, PathBuf};

use chart_index_chartfile::{ChartFormat, Refusal, decode};
use chart_index_domain::{InvalidKeyCount, NoteHash};

/// The cases that are refused.
const REFUSED: &[(&str, Refusal)] = &[
    ("osu/spinner-in-mania", Refusal::Indeterminate { what: "the column of a spinner is random" }),
    ("qua/qua-7k-scratch-unused", Refusal::KeyCount(InvalidKeyCount(8))),
    ("qua/qua-7k-scratch-used", Refusal::KeyCount(InvalidKeyCount(8))),
    ("qua/qua-lane-zero", Refusal::NotPlayed { reason: "a note in a lane below 1" }),
];

fn cases_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

/// The note hashes of a file.
fn read(path: &Path) -> Result<Vec<NoteHash>, Refusal> {
    let format = ChartFormat::from_path(path.to_str().expect("a UTF-8 path")).expect("a chart file");
    let file = decode(format, &fs::read(path).expect("a readable file"))?;
    Ok(file.charts.iter().map(|chart| chart.hash).collect())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable entry").path()).collect();
    paths.sort();
    paths
}

/// Compares all cases in a folder with what they expect.
fn check_cases(format: &str) {
    let cases = entries(&cases_folder().join(format));
    assert!(!cases.is_empty());
    for case in cases {
        let name =
            format!("{format}/{}", case.file_name().and_then(|name| name.to_str()).expect("a UTF-8 name"));
        let (expected, inputs): (Vec<_>, Vec<_>) =
            entries(&case).into_iter().partition(|path| path.ends_with("expected.osu"));
        let [input] = &inputs[..] else { panic!("{name} has {} inputs", inputs.len()) };
        let refusal =
            REFUSED.iter().find(|(refused, _)| *refused == name).map(|(_, refusal)| refusal.clone());
        let expected = match (&expected[..], refusal) {
            ([expected], None) => read(expected),
            ([], Some(refusal)) => Err(refusal),
            _ => panic!("{name} has either an expected file or a reason"),
        };
        assert_eq!(read(input), expected, "{name}");
    }
}

#[test]
fn osu_cases_are_read_as_in_the_game() {
    check_cases("osu");
}

#[test]
fn qua_cases_are_read_as_in_the_game() {
    check_cases("qua");
}

#[test]
fn simfile_cases_are_read_as_in_the_game() {
    check_cases("simfiles");
}

#[test]
fn every_refused_case_exists() {
    for (name, _) in REFUSED {
        assert!(cases_folder().join(name).is_dir(), "{name}");
    }
}
