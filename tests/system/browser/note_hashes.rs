//! `services/pages/assets/chart_files.js` gives the note hashes and variants of the indexer: for samples, real
//! charts, and files with random changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chart_index_tests::{Library, Random, TestDatabase, indexer, real_charts, samples, workspace_root};

use crate::run_node_tests;

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

/// Each file in a folder of its own, so that the indexer makes a chartset of each.
struct Files {
    library: Library,
    count: usize,
}

impl Files {
    fn add(&mut self, source: &Path, bytes: &[u8]) {
        let extension = source.extension().and_then(|extension| extension.to_str()).unwrap();
        self.library.file(&format!("alpha/file {:05}/chart.{extension}", self.count), bytes);
        self.count += 1;
    }

    /// The note hashes of the charts of each file with their variants, by its path.
    async fn indexed(&self) -> BTreeMap<String, BTreeMap<String, Option<String>>> {
        let database = TestDatabase::create().await;
        indexer(database.url(), &["migrate"]).succeeded();
        indexer(database.url(), &["ingest", &self.library.argument()]).succeeded();
        let rows = database.psql(
            "SELECT path || '|' || encode(hash, 'hex') || ' ' || coalesce(encode(variant, 'hex'), '-')
             FROM chartset_charts JOIN chartsets ON id = chartset_id JOIN charts ON hash = chart_hash",
        );
        let mut hashes: BTreeMap<&str, BTreeMap<String, Option<String>>> = BTreeMap::new();
        for (folder, chart) in rows.lines().filter_map(|row| row.rsplit_once('|')) {
            let (hash, variant) = chart.split_once(' ').unwrap();
            let variant = Some(variant.to_owned()).filter(|variant| variant != "-");
            hashes.entry(folder).or_default().insert(hash.to_owned(), variant);
        }
        let files = chart_files(&self.library.root());
        let hash_of = |file: &PathBuf| {
            let path = file.strip_prefix(self.library.root()).unwrap();
            let folder = path.parent().unwrap().to_str().unwrap();
            (path.to_str().unwrap().to_owned(), hashes.remove(folder).unwrap_or_default())
        };
        let indexed: BTreeMap<_, _> = files.iter().map(hash_of).collect();
        assert!(hashes.is_empty(), "no such files: {hashes:?}");
        indexed
    }

    /// Compares the hashes of the indexer with those of the module. `tolerated` is the number of hashes that
    /// the module may leave out.
    async fn compare(&self, tolerated: usize) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("indexed.json");
        std::fs::write(&path, serde_json::to_vec(&self.indexed().await).unwrap()).unwrap();
        let variables = [
            ("NOTE_HASH_FILES", self.library.argument()),
            ("NOTE_HASH_INDEXED", path.to_str().unwrap().to_owned()),
            ("NOTE_HASH_TOLERATED", tolerated.to_string()),
        ];
        let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        run_node_tests(&["note_hash.mjs"], &variables);
    }
}

const EXTENSIONS: [&str; 4] = ["osu", "qua", "sm", "ssc"];

/// The chart files below a folder, sorted.
fn chart_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(chart_files(&path));
        } else if path.extension().and_then(|one| one.to_str()).is_some_and(|one| EXTENSIONS.contains(&one)) {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn files_of(folders: &[PathBuf]) -> (Files, Vec<PathBuf>) {
    let sources: Vec<PathBuf> = folders.iter().flat_map(|folder| chart_files(folder)).collect();
    assert!(sources.len() > 10, "{sources:?}");
    (Files { library: Library::new(), count: 0 }, sources)
}

#[tokio::test]
#[ignore = "needs Node.js: make test-system"]
async fn samples_have_the_hashes_of_the_indexer() {
    let (mut files, sources) = files_of(&[samples()]);
    for source in &sources {
        files.add(source, &std::fs::read(source).unwrap());
    }
    files.compare(0).await;
}

#[tokio::test]
#[ignore = "needs the real charts and Node.js: make test-system"]
async fn real_charts_have_the_hashes_of_the_indexer() {
    let (mut files, sources) = files_of(&[real_charts()]);
    for source in &sources {
        files.add(source, &std::fs::read(source).unwrap());
    }
    files.compare(0).await;
}

/// What each game plays, without an indexer: see `crates/chartfile/tests/cases`.
#[test]
#[ignore = "needs Node.js: make test-system"]
fn cases_have_the_notes_of_their_games() {
    run_node_tests(&["cases.mjs"], &[]);
}

/// The module may refuse a file, but never computes another hash than the indexer.
#[tokio::test]
#[ignore = "needs Node.js: make test-system"]
async fn changed_files_have_no_other_hashes() {
    let seeds = workspace_root().join("crates/chartfile/fuzz/seeds/parse_to_hash");
    let (mut files, mut sources) = files_of(&[samples()]);
    sources.retain(|source| std::fs::metadata(source).unwrap().len() < 20_000);
    let mut random = Random::new(15);
    let seed_names = ["qua", "qua_alias", "qua_five_keys", "osu", "osu_utf_16", "sm", "sm_attributes", "ssc"];
    for seed in seed_names {
        // The first byte of a seed selects the format.
        let extension = seed.split('_').next().unwrap();
        let bytes = std::fs::read(seeds.join(seed)).unwrap();
        files.add(Path::new(&format!("seed.{extension}")), bytes.get(1..).unwrap());
    }
    for _ in 0..CHANGED_FILES {
        let source = random.pick(&sources).clone();
        let text = String::from_utf8(std::fs::read(&source).unwrap()).unwrap();
        let changed = changed(&mut random, &text);
        files.add(&source, &encoded(&mut random, &changed));
    }
    // The module does not read everything that YAML allows.
    files.compare(CHANGED_FILES as usize / 5).await;
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
