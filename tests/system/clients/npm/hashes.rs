//! The note hashes, variants and texts of the package are those of the indexer: for samples, cases, real
//! charts, and files with random changes.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use chart_index_system_tests::run;
use chart_index_tests::{ChartSpec, Library, Random, real_charts, samples, workspace_root};
use serde_json::{Value, json};

use super::{node, programs, script};

const CHANGED_FILES: u32 = 1_000;

/// What replaces or joins the text of a line.
const FRAGMENTS: &[&str] = &[
    "",
    " ",
    "\t",
    ",",
    ":",
    "-",
    "- ",
    "  ",
    "#",
    "'",
    "\"",
    "[]",
    "0",
    "-1",
    "4",
    "7",
    "9999999999",
    "1e3",
    ".5",
    "+2",
    "\u{a0}",
    "\u{85}",
    "\u{2028}",
    "\r",
    "\u{feff}",
    "|",
    ">-",
    "&a",
    "*a",
    "!x",
    "Mode: Keys5",
    "Mode: 3",
    "[HitObjects]",
    "[General]",
    "HitObjects:",
    "- StartTime: 5",
    "  Lane: 2",
    "  EndTime: 700",
    "EndTime: 5",
    "CircleSize:5",
    "CircleSize: 4.9",
    "---",
    "// x",
    "0,500,4,1,0,100,1,0",
    "64,192,100,1,0,",
    "192,192,100,128,0,900:0:0:0:0:",
    "-5,0,3000,1,0",
    "600,0,3001,5,0",
    "~",
    "null",
    "{}",
    ";",
    "\\",
    "/",
    "1000",
    "2M0L",
    "3004",
    "10[5]00",
    "000",
    "{1|n|0|0}000",
    "#NOTES:dance-single:x:Edit:9:0:\n1001\n;",
    "#NOTEDATA:;",
    "#STEPSTYPE:pump-single;",
    "#BPMS:0=150,4=0.5,8=1e4;",
    "#BPMS:0=150,4=-150;",
    "#STOPS:2=1.25,3=-0.5;",
    "#DELAYS:0=0.3,5=-1;",
    "#WARPS:2=0.75;",
    "#FAKES:1=2;",
    "#OFFSET:-0.1;",
    "#BPMS:0=120,2=99999999,3=120;",
    "#FREEZES:1=0.5,1=0.25;",
    "#STOPS:1.3333=0.1,-1=4,2r=0.5;",
    "#WARPS:1=0.001,4=3;",
    "#VERSION:0.69;",
    "#LABELS:0=a;",
    "#NOTES2:1000\n2000\n0100\n3000\n;",
    "K",
    "F030",
    "64,192,2000,129,0,0:0",
    "64,192,2000,2,0,L|100:0,2,90",
    "64,192,2000,12,0,2500",
    "192,192,2E+03,1,0,0:0:0:0:",
    "192,192,2000,1,0,0",
    "1000,-50,4,1,0,100,0,0",
    "osu file format v128",
    "osu file format v3",
    "[Other]",
    "[7]",
    "HasScratchKey: true",
    "  Type: Mine",
    "  KeySounds:\n  - Sample: 1",
    "Bpm: .inf",
    "QuaVersion: 2",
];

/// The fields of a chart that are compared. Texts in other encodings than Unicode are not decoded in
/// JavaScript.
const IDENTITY: &[&str] = &["hash", "variant", "keys"];
const TEXTS: &[&str] = &["hash", "variant", "keys", "title", "artist", "creator", "difficulty"];

/// What the lines of a program say of charts, and the names of the files and charts without a hash.
struct Hashed {
    charts: BTreeSet<String>,
    refused: Vec<String>,
}

impl Hashed {
    fn new(lines: &str, fields: &[&str]) -> Self {
        let (mut charts, mut refused) = (BTreeSet::new(), Vec::new());
        for line in lines.lines() {
            let line: Value = serde_json::from_str(line).expect("JSON");
            let values: Vec<&Value> = fields.iter().map(|field| &line[field]).collect();
            if line.get("hash").is_some() {
                charts.insert(json!([line["file"], values]).to_string());
            } else {
                refused.push(line["file"].as_str().expect("a path").to_owned());
            }
        }
        Self { charts, refused }
    }
}

/// What the package and `chart-hash` say of a folder.
fn hashed(folder: &Path, fields: &[&str]) -> [Hashed; 2] {
    let printed = run(node().arg("hash.mjs").arg(folder));
    let expected = crate::program::hashed(folder);
    [Hashed::new(&printed, fields), Hashed::new(&expected, fields)]
}

/// The charts that the package leaves out. It must have no other ones than the indexer.
fn missing_charts(folder: &Path, fields: &[&str]) -> BTreeSet<String> {
    let [package, indexer] = hashed(folder, fields);
    let other: Vec<_> = package.charts.difference(&indexer.charts).collect();
    assert!(other.is_empty() && package.charts.len() > 10, "{other:#?}");
    indexer.charts.difference(&package.charts).cloned().collect()
}

/// What each game plays. The indexer refuses what the package refuses, apart from archives in bzip2.
#[test]
fn samples_and_cases_have_the_charts_of_the_indexer() {
    assert_eq!(missing_charts(&samples(), TEXTS), BTreeSet::new());
    let missing = missing_charts(&workspace_root().join("crates/chartfile/tests/cases"), TEXTS);
    let is_bzip2 = |chart: &String| chart.contains("archives/bzip2/");
    assert!(missing.len() == 1 && missing.iter().all(is_bzip2), "{missing:#?}");
}

/// Archives in archives, what systems and other programs leave in folders, and what cannot be read.
#[test]
fn folders_are_read_as_the_indexer_reads_them() {
    let files = Library::new();
    let write_set = |folder: &str| {
        for number in 0..3 {
            files.osu(&format!("{folder}/{number}.osu"), ChartSpec::numbered(number));
        }
    };
    let simfile = "#TITLE:a;#BPMS:0=120;#NOTES:dance-single::Hard:1:0:1000;";
    let ssc = "#VERSION:0.83;#BPMS:0=120;#NOTEDATA:;#STEPSTYPE:dance-single;#NOTES:0100;";
    let write_song = |folder: &str| {
        for (path, content) in [
            ("a.sm", simfile),
            ("b.SSC", ssc),
            ("sub/a.sm", simfile),
            ("._c.ssc", ssc),
            ("notes.txt", "none"),
            ("damaged.zip", "none"),
            ("none.osu", ""),
        ] {
            files.file(&format!("{folder}/{path}"), content);
        }
    };
    write_set("sets/set");
    files.pack("sets/set", "sets/set.osz");
    files.pack("sets", "sets.zip");
    write_song("packed");
    files.pack("packed", "packed.smzip");
    write_set("set");
    write_song("song");
    std::os::unix::fs::symlink(files.root().join("set"), files.root().join("link")).expect("a link");
    let [package, indexer] = hashed(&files.root(), TEXTS);
    assert_eq!(package.charts, indexer.charts);
    assert_eq!((package.charts.len(), package.refused.len()), (10, 4));
    assert_eq!(BTreeSet::from_iter(package.refused), BTreeSet::from_iter(indexer.refused));
}

#[test]
#[ignore = "needs the real charts: make test-system"]
fn real_charts_have_the_hashes_of_the_indexer() {
    assert_eq!(missing_charts(&real_charts(), IDENTITY), BTreeSet::new());
}

/// The rules of the readers without a case, and the test vectors.
#[test]
fn rules_and_vectors_are_those_of_the_formats() {
    run(node().arg("--test").args(["rules.mjs", "vectors.mjs"].map(|name| programs().join(name))));
    run(script().args(["oldest", "--test"]).arg(programs().join("rules.mjs")));
}

/// The package may refuse a file, but never computes another hash than the indexer.
#[test]
fn changed_files_have_no_other_hashes() {
    let files = Library::new();
    let sources: Vec<PathBuf> = chart_files(&samples())
        .into_iter()
        .filter(|source| fs::metadata(source).expect("a file").len() < 20_000)
        .collect();
    let mut random = Random::new(15);
    let seeds = workspace_root().join("crates/chartfile/fuzz/seeds/parse_to_hash");
    for seed in ["qua", "qua_alias", "qua_five_keys", "osu", "osu_utf_16", "sm", "sm_attributes", "ssc"] {
        // The first byte of a seed selects the format.
        let extension = seed.split('_').next().expect("a name");
        let bytes = fs::read(seeds.join(seed)).expect("a file");
        files.file(&format!("seeds/{seed}/chart.{extension}"), bytes.get(1..).expect("its content"));
    }
    for number in 0..CHANGED_FILES {
        let source = random.pick(&sources).clone();
        let changed = changed(&mut random, &fs::read_to_string(&source).expect("UTF-8"));
        let extension = source.extension().and_then(|extension| extension.to_str()).expect("a format");
        files.file(&format!("{number}/chart.{extension}"), encoded(&mut random, &changed));
    }
    let missing = missing_charts(&files.root(), IDENTITY);
    // It does not read everything that YAML allows.
    assert!(missing.len() <= CHANGED_FILES as usize / 5, "{missing:#?}");
}

/// The chart files below a folder, sorted.
fn chart_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.is_dir() {
            files.extend(chart_files(&path));
        } else if path
            .extension()
            .is_some_and(|one| ["osu", "qua", "sm", "ssc"].map(OsStr::new).contains(&one))
        {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// A text with a few changed lines.
fn changed(random: &mut Random, text: &str) -> String {
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    for _ in 0..=random.below(3) {
        let count = u32::try_from(lines.len()).unwrap();
        let line = random.below(count) as usize;
        let fragment = *random.pick(FRAGMENTS);
        match random.below(7) {
            0 => fragment.clone_into(&mut lines[line]),
            1 => lines.insert(line, fragment.to_owned()),
            2 => lines[line].push_str(fragment),
            3 => lines[line].insert_str(0, fragment),
            4 => {
                let other = random.below(count) as usize;
                lines.swap(line, other);
            }
            5 => {
                let copy = lines[line].clone();
                lines.insert(line, copy);
            }
            _ => {
                let digit = char::from_digit(random.below(10), 10).unwrap();
                lines[line] = lines[line].replacen(char::is_numeric, &digit.to_string(), 1);
            }
        }
    }
    lines.join("\n")
}

/// The bytes of a text: mostly UTF-8, else with carriage returns, a damaged byte, or UTF-16.
fn encoded(random: &mut Random, text: &str) -> Vec<u8> {
    match random.below(10) {
        0 => text.replace('\n', "\r\n").into_bytes(),
        1 => std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect(),
        2 => std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect(),
        3 => {
            let mut bytes = text.as_bytes().to_vec();
            let position = random.below(u32::try_from(bytes.len()).unwrap()) as usize;
            bytes[position] = u8::try_from(random.below(256)).unwrap();
            bytes
        }
        _ => text.as_bytes().to_vec(),
    }
}
