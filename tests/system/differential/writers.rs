//! One chart whose times are whole milliseconds has one note hash, whether simfile wrote it as `.sm` or `.ssc`
//! or osu-parsers as `.osu`. At 125 BPM a row of a simfile is 10 ms. The tests of `chartfile` do the same with
//! writers in Rust.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use chart_index_tests::{Random, program_command};
use serde_json::{Value, json};

use crate::chart_libraries;

const CHARTS: usize = 200;
const ROW_MS: u32 = 10;

const STEP_TYPES: [&str; 4] = ["dance-single", "pump-single", "dance-solo", "kb7-single"];

/// Start, column and end of notes in rows, in this order, which do not overlap.
fn notes(random: &mut Random, keys: u32) -> Vec<(u32, u32, Option<u32>)> {
    let mut notes = Vec::new();
    for column in 0..keys {
        let mut row = 0;
        for _ in 0..=random.below(20) {
            row += 1 + random.below(300);
            let end = random.one_in(3).then(|| row + 1 + random.below(300));
            notes.push((row, column, end));
            row = end.unwrap_or(row);
        }
    }
    notes.sort_unstable();
    notes
}

fn osu_of(keys: u32, notes: &[(u32, u32, Option<u32>)]) -> String {
    let mut text = format!(
        "osu file format v14\n\n[General]\nMode: 3\n\n[Metadata]\nTitle:Generated\nVersion:Hard\n\n[Difficulty]\n\
         CircleSize:{keys}\n\n[TimingPoints]\n0,480,4,1,0,100,1,0\n\n[HitObjects]\n"
    );
    for (row, column, end) in notes {
        let (x, start) = ((2 * column + 1) * 256 / keys, row * ROW_MS);
        _ = match end {
            Some(end) => writeln!(text, "{x},192,{start},128,0,{}:0:0:0:0:", end * ROW_MS),
            None => writeln!(text, "{x},192,{start},1,0,0:0:0:0:"),
        };
    }
    text
}

/// Writes each chart into a folder, as `chart.osu`, and returns a line of JSON for each.
fn write_charts(folder: &Path) -> String {
    let (mut random, mut lines) = (Random::new(3), String::new());
    for index in 0..CHARTS {
        let step_type = *random.pick(&STEP_TYPES);
        let keys = 4 + u32::try_from(STEP_TYPES.iter().position(|one| *one == step_type).unwrap()).unwrap();
        let notes = notes(&mut random, keys);
        let folder = folder.join(format!("{index:03}"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("chart.osu"), osu_of(keys, &notes)).unwrap();
        _ = writeln!(
            lines,
            "{}",
            json!({"folder": folder, "stepType": step_type, "keys": keys, "notes": notes})
        );
    }
    lines
}

fn run(command: &mut Command, input: &str) {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{command:?}");
}

#[test]
fn every_writer_gives_one_note_hash() {
    let folder = tempfile::tempdir().unwrap();
    let charts = write_charts(folder.path());
    run(&mut chart_libraries("write-simfiles"), &charts);
    run(chart_libraries("write-osu").arg(folder.path()), "");
    let output = program_command("chart-hash").arg(folder.path()).output().unwrap();
    let lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for index in 0..CHARTS {
        let prefix = folder.path().join(format!("{index:03}/"));
        let of_chart: Vec<&Value> = lines
            .iter()
            .filter(|line| Path::new(line["file"].as_str().unwrap()).starts_with(&prefix))
            .collect();
        let hashes: BTreeSet<Option<&str>> = of_chart.iter().map(|line| line["hash"].as_str()).collect();
        assert!(of_chart.len() == 4 && hashes.len() == 1 && !hashes.contains(&None), "{of_chart:#?}");
    }
}
