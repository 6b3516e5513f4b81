//! Every kind of refusal (docs/operations/ingest.md, "Refusals") reaches `hash`, `ingest` and its report.

use std::collections::BTreeSet;
use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;

/// The file of each kind is in a folder of this name.
struct Case {
    kind: &'static str,
    file: &'static str,
    content: Vec<u8>,
}

/// No input gives these kinds: a parser panics, or a ROX file differs from its chart.
const BUGS: [&str; 2] = ["decoder_panicked", "rox_mismatch"];

/// `hash` knows no chartsets.
const NOT_BY_HASH: [&str; 1] = ["chartset_too_large"];

const TIMING: &str = "0,500,4,1,0,100,1,0";

fn case(kind: &'static str, file: &'static str, content: impl Into<Vec<u8>>) -> Case {
    Case { kind, file, content: content.into() }
}

fn osu(mode: &str, keys: u8, timing: &str, objects: &str) -> String {
    format!(
        "osu file format v14\n\n[General]\nMode: {mode}\n\n[Difficulty]\nCircleSize:{keys}\n\n\
         [TimingPoints]\n{timing}\n\n[HitObjects]\n{objects}\n"
    )
}

fn qua(header: &str, note: &str) -> String {
    format!("{header}\nTimingPoints:\n- Bpm: 120\nHitObjects:\n- {note}\n")
}

/// A chart of an `.ssc` file.
fn ssc(timing: &str) -> String {
    format!("#NOTEDATA:;#STEPSTYPE:dance-single;{timing}#NOTES:1000\n0100;\n")
}

pub(crate) fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let deflated = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, content) in entries {
        writer.start_file(*name, deflated).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn zip_of_many(count: usize, name: impl Fn(usize) -> String, content: &[u8]) -> Vec<u8> {
    let names: Vec<String> = (0..count).map(name).collect();
    zip_of(&names.iter().map(|name| (&**name, content)).collect::<Vec<_>>())
}

/// An archive with a link.
fn zip_of_link() -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_symlink("link.osu", "other.osu", SimpleFileOptions::default()).unwrap();
    writer.finish().unwrap().into_inner()
}

fn replaced(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    for at in 0..=bytes.len() - from.len() {
        if bytes[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
    }
    bytes
}

fn charts() -> Vec<Case> {
    let note = "64,192,1000,1,0,0:0:0:0:";
    let simfile = "#BPMS:0=120;#NOTES:dance-double::Hard:1:0:10000000;";
    vec![
        case("file_too_large", "a.osu", vec![b' '; (16 << 20) + 1]),
        case("decoding_limit", "a.sm", "#A".to_owned() + &":".repeat(1_000_000)),
        case("other_game_mode", "a.osu", osu("0", 4, TIMING, note)),
        case("unknown_game_mode", "a.qua", qua("Mode: Keys300", "Lane: 1")),
        case("no_notes", "a.osu", osu("3", 4, TIMING, "")),
        case("key_count", "a.osu", osu("3", 9, TIMING, note)),
        case("column", "a.qua", qua("Mode: Keys4", "Lane: 5")),
        case(
            "note_inside_long_note",
            "a.osu",
            osu("3", 4, TIMING, &format!("64,192,500,128,0,2000:0:0:0:0:\n{note}")),
        ),
        case("time_out_of_range", "a.ssc", ssc("") + &ssc("#STOPS:0=9e30;")),
        case("no_bpm", "a.qua", "Mode: Keys4\nHitObjects:\n- Lane: 1\n"),
        case("not_played", "a.qua", qua("QuaVersion: 2\nMode: Keys4", "Lane: 1")),
        case("indeterminate", "a.osu", osu("3", 4, TIMING, "256,192,1000,8,0,2000,0:0:0:0:")),
        case("undecodable", "a.qua", "HitObjects: {"),
        case("no_chart", "a.sm", simfile),
    ]
}

fn archives() -> Vec<Case> {
    let chart = osu("3", 4, TIMING, "64,192,1000,1,0,0:0:0:0:");
    let chart = chart.as_bytes();
    // The writer would write other names.
    let unsafe_path = replaced(zip_of(&[("xx/a.osu", chart)]), b"xx/", b"../");
    let same_name = replaced(zip_of(&[("a.osu", chart), ("b.osu", chart)]), b"b.osu", b"a.osu");
    let damaged = replaced(zip_of(&[("a.osu", chart)]), b"PK\x01\x02", b"PK\x01\x03");
    let encrypted = replaced(zip_of(&[("a.osu", chart)]), &[20, 0, 0, 0], &[20, 0, 1, 0]);
    let deepest = zip_of(&[("b.zip", &zip_of(&[("c.zip", &zip_of(&[("a.osu", chart)]))]))]);
    vec![
        case("unreadable", "a.osz", encrypted),
        case("unreadable_archive", "a.osz", damaged),
        case("archive_entries", "a.zip", zip_of_many(50_001, |number| number.to_string(), b"")),
        case("archive_chart_files", "a.zip", zip_of_many(4_097, |number| format!("{number}.osu"), b"")),
        case(
            "archive_too_large",
            "a.zip",
            zip_of_many(13, |number| format!("{number}.osu"), &vec![b' '; 16 << 20]),
        ),
        case("unsafe_path", "a.zip", unsafe_path),
        case("not_a_file", "a.zip", zip_of_link()),
        case("duplicate_name", "a.zip", same_name),
        case("nested_archive", "a.zip", deepest),
    ]
}

/// The kinds in the first table of the section.
fn documented_kinds() -> BTreeSet<String> {
    let page = std::fs::read_to_string(chart_index_tests::workspace_root().join("docs/operations/ingest.md"))
        .unwrap();
    let section = page.split_once("## Refusals").unwrap().1.split_once("\n## ").unwrap().0;
    let table = section.split_once("| `kind` |").unwrap().1.split_once("\n\n").unwrap().0;
    let cells = table.lines().filter_map(|row| row.strip_prefix("| `")?.split(" |").next());
    cells
        .flat_map(|cell| cell.split('`'))
        .filter(|kind| kind.contains(char::is_alphabetic))
        .map(str::to_owned)
        .collect()
}

/// The refusals in lines of JSON: the folder of the file below `other`, and the kind.
fn refusals(lines: &[serde_json::Value]) -> BTreeSet<(String, String)> {
    let refused = lines.iter().filter(|line| line["kind"].is_string());
    refused
        .map(|line| {
            let (file, kind) = (line["file"].as_str().unwrap(), line["kind"].as_str().unwrap());
            let (_, below) = file.split_once("other/").unwrap();
            assert!(!line["reason"].as_str().unwrap().is_empty(), "{line}");
            assert!(line.get("outcome").is_none_or(|outcome| outcome == "refused"), "{line}");
            (below.split('/').next().unwrap().to_owned(), kind.to_owned())
        })
        .collect()
}

#[tokio::test]
async fn every_kind_is_reported() {
    let library = Library::new();
    let mut expected = BTreeSet::from(NOT_BY_HASH);
    for Case { kind, file, content } in charts().into_iter().chain(archives()) {
        library.file(&format!("other/{kind}/{file}"), content);
        expected.insert(kind);
    }
    // One more than a chartset may have, which `hash` reads in vain.
    for number in 0..=1_024 {
        library.file(
            &format!("other/chartset_too_large/{number}.sm"),
            "#NOTES:dance-double::Hard:1:0:10000000;",
        );
    }
    let bugs = BTreeSet::from(BUGS.map(str::to_owned));
    let of_each = |kinds: &BTreeSet<&str>| -> BTreeSet<_> {
        kinds.iter().map(|&kind| (kind.to_owned(), kind.to_owned())).collect()
    };
    let kinds: BTreeSet<String> = expected.iter().map(|&kind| kind.to_owned()).collect();
    assert_eq!(documented_kinds(), &kinds | &bugs);

    let database = Database::new().await;
    for arguments in [&["--dry-run"][..], &[]] {
        let (summary, report) = database.ingest_with_report(&library, arguments);
        assert_eq!(refusals(&report), of_each(&expected), "{arguments:?}");
        for kind in &expected {
            assert!(summary.contains(&format!("refused: other/{kind}")), "{kind}: {summary}");
        }
    }
    let run = IndexerRun::run(&mut hash_command(&[&library.argument()]));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let lines: Vec<_> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for kind in NOT_BY_HASH {
        expected.remove(kind);
    }
    let mut found = refusals(&lines);
    found.retain(|(folder, _)| folder != "chartset_too_large");
    assert_eq!(found, of_each(&expected));
}
