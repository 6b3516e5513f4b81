//! What commands print: lines of JSON on standard error where `LOG_FORMAT=json`, and no control characters of
//! others.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::time::Duration;

use chart_index_tests::http_server::{self, response};
use chart_index_tests::{RunningIndexer, within};
use serde_json::{Value, json};

use super::exports::{Exported, forge, forged};
use super::refusals::zip_of;
use super::*;

/// A timeout that no passing test reaches.
const TIMEOUT: Duration = Duration::from_mins(1);
/// An address at which nothing listens.
const NOWHERE: &str = "http://127.0.0.1:1";
/// What sets the title of a terminal, clears it, and begins a line that another command could have printed.
const HOSTILE: &str = "\u{1b}]0;PWNED\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{7f}\r\nrefused: forged line";

/// The lines of a log in JSON, as level and message.
fn log(stderr: &str) -> Vec<(String, String)> {
    let entry = |line: &str| {
        let entry: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(entry["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{line}")).to_owned();
        (text(&entry["level"]), text(&entry["fields"]["message"]))
    };
    stderr.lines().map(entry).collect()
}

/// Runs a command that logs JSON.
fn run_logging(database_url: &str, arguments: &[&str]) -> (Option<i32>, Vec<(String, String)>) {
    let mut command = indexer_command(database_url, arguments);
    let run = IndexerRun::run(command.env("LOG_FORMAT", "json"));
    (run.code, log(&run.stderr))
}

#[tokio::test]
async fn every_line_of_every_command_is_json() {
    let (database, empty) = (Database::new().await, Database::new().await);
    let (library, folder) = (Library::new(), tempfile::tempdir().unwrap());
    let without_charts = folder.path().to_str().unwrap();
    library.osu("alpha/1 one/a.osu", ChartSpec::default());
    library.osu("alpha/loose.osu", ChartSpec::default());
    database.ingest(&library);
    let (hash, root) = ("0".repeat(64), library.argument());
    let search = ["--meilisearch-url", NOWHERE, "--meilisearch-api-key", "key"];
    for (arguments, code, expected) in [
        (&["migrate"][..], 0, None),
        (&["ingest", &root], 0, Some(("WARN", "chart files directly in"))),
        (&["ingest", without_charts], 0, Some(("WARN", "no chart files in"))),
        (&["verify"], 0, None),
        (&["backfill"], 0, None),
        (&["filter"], 0, None),
        (&["removals", "export"], 0, None),
        (&["export", without_charts], 0, None),
        (&["ingest", "/nowhere"], 1, Some(("ERROR", "/nowhere"))),
        (&["import", "/nowhere"], 1, Some(("ERROR", "/nowhere"))),
        (&["remove", "--from", "/nowhere"], 1, Some(("ERROR", "/nowhere"))),
        (&["replace-rox", &hash, "--from", "/nowhere"], 1, Some(("ERROR", "/nowhere"))),
        (&["mirror", NOWHERE, "--once"], 1, Some(("ERROR", "is no mirror"))),
        (&["objects", "gc"], 2, Some(("ERROR", "OBJECT_STORE_URL"))),
        (&[&["sync"], &search[..]].concat(), 1, Some(("ERROR", "1 of 1 nodes"))),
        (&[&["rebuild"], &search[..]].concat(), 1, Some(("ERROR", "1 of 1 nodes"))),
        (&[&["verify", "--search"], &search[..]].concat(), 1, Some(("ERROR", "1 of 1 nodes"))),
        (&["ingest"], 2, Some(("ERROR", "required arguments"))),
        (&["--log-filter", "off", "import", "/nowhere"], 1, Some(("ERROR", "/nowhere"))),
    ] {
        let (found, lines) = run_logging(database.0.url(), arguments);
        assert_eq!(found, Some(code), "{arguments:?}: {lines:?}");
        let last = lines.last().map(|(level, message)| (&**level, &**message));
        match (expected, last) {
            (None, _) => (),
            (Some((level, part)), Some((last, message))) if level == last && message.contains(part) => (),
            _ => panic!("{arguments:?}: {lines:?}"),
        }
    }
    let (code, lines) = run_logging(empty.0.url(), &["mirror", NOWHERE, "--once"]);
    assert_eq!((code, lines.is_empty()), (Some(1), false));
    let (code, lines) = run_logging("postgres://nobody@127.0.0.1:1/none", &["ingest", &root]);
    assert_eq!((code, lines.is_empty()), (Some(1), false));
}

/// Also what they repeat, and why they end.
#[tokio::test]
async fn every_line_of_a_running_command_is_json() {
    let database = Database::new().await;
    let folder = tempfile::tempdir().unwrap();
    let downloads = folder.path().to_str().unwrap();
    let search = ["--meilisearch-url", NOWHERE, "--meilisearch-api-key", "key"];
    let (follow, mirror) =
        ([&["follow"], &search[..]].concat(), ["mirror", NOWHERE, "--downloads", downloads]);
    for (url, arguments, expected) in [
        (database.0.url(), &follow[..], "127.0.0.1"),
        (database.0.url(), &mirror, "127.0.0.1"),
        ("postgres://nobody@127.0.0.1:1/none", &mirror, "cannot use the database"),
    ] {
        let mut running = RunningIndexer::start(&mut indexer_command(url, arguments));
        let lines = || log(&running.log().join("\n"));
        let has = |level: &str, part: &str| {
            lines().iter().any(|(found, message)| found == level && message.contains(part)).then_some(())
        };
        within(TIMEOUT, async || has("WARN", expected)).await;
        running.terminate();
        within(TIMEOUT, async || has("WARN", "interrupted: ")).await;
        assert_eq!(running.wait(), Some(130), "{arguments:?}");
    }
}

/// A progress bar is drawn where the log is text.
#[tokio::test]
async fn json_has_no_progress_bar() {
    let database = Database::new().await;
    let library = Library::new();
    library.osu("alpha/1 one/a.osu", ChartSpec::default());
    for format in ["text", "json"] {
        let ingest = indexer_command(database.0.url(), &["ingest", "--full", &library.argument()]);
        let words = [ingest.get_program()].into_iter().chain(ingest.get_args());
        let words: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
        // Standard error is a terminal.
        let mut terminal = Command::new("script");
        terminal.args(["-qec", &format!("{} >/dev/null", words.join(" ")), "/dev/null"]);
        terminal.envs([("LOG_FORMAT", format), ("DATABASE_URL", database.0.url())]).stdin(Stdio::null());
        let run = IndexerRun::run(&mut terminal);
        assert_eq!((run.code, run.stdout.contains('\u{1b}')), (Some(0), format == "text"), "{}", run.stdout);
    }
}

/// Asserts that the output has no control characters but the ends of its lines, that it begins no line that
/// another text has begun, and that letters of all scripts are as they were.
fn assert_escaped(output: &str) {
    let control = output.chars().find(|character| {
        *character != '\n' && (character.is_control() || matches!(character, '\u{202a}'..='\u{202e}'))
    });
    assert_eq!(control, None, "{output:?}");
    assert!(output.lines().all(|line| !line.starts_with("refused: forged")), "{output:?}");
    assert!(output.contains("forged line") && !output.contains("\\u{65cb}"), "{output:?}");
}

#[tokio::test]
async fn hostile_names_are_escaped() {
    let database = Database::new().await;
    let library = Library::new();
    let name = format!("旋律 {HOSTILE}");
    library.file(&format!("alpha/1 one/{name}.osu"), "no chart");
    library.file(&format!("alpha/2 {name}/a.osu"), "no chart");
    let archive = zip_of(&[(&format!("{name}.osu"), b"no chart")]);
    library.file(&format!("alpha/3 {name}.osz"), archive);
    let not_utf8 = library.root().join("alpha/4 four").join(OsStr::from_bytes(b"\xff\x9b\x1b[2J.osu"));
    fs::create_dir(not_utf8.parent().unwrap()).unwrap();
    fs::write(not_utf8, "no chart").unwrap();

    let summary = database.ingest(&library);
    assert_eq!(summary.matches("refused: ").count() - summary.matches("refused: forged").count(), 4);
    assert!(summary.contains("旋律"), "{summary}");
    assert_escaped(&summary);

    let report = library.root().join("../report.jsonl");
    database.run(&["ingest", &library.argument(), "--report", report.to_str().unwrap()]);
    let hashed = IndexerRun::run(&mut hash_command(&[&library.argument()])).stdout;
    for json in [hashed, fs::read_to_string(report).unwrap()] {
        assert_escaped(&json);
        let files: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let has_name = |line: &Value| line["file"].as_str().unwrap().contains(&name);
        assert_eq!(files.iter().filter(|line| has_name(line)).count(), 3, "JSON has the name itself");
    }

    let missing = format!("/nowhere/{name}");
    let of_indexer = ["ingest", "import"].map(|command| database.try_run(&[command, &missing]));
    for run in of_indexer.into_iter().chain([IndexerRun::run(&mut hash_command(&[&missing]))]) {
        assert_eq!(run.code, Some(1));
        assert_escaped(&run.stderr);
    }
}

#[tokio::test]
async fn texts_of_other_servers_are_escaped() {
    let (database, library) = (Database::new().await, Library::new());
    library.osu("alpha/1 one/a.osu", ChartSpec::default());
    let body = json!({ "detail": HOSTILE }).to_string();
    let server = http_server::serve(move |_| response("500 Internal Server Error", &body));
    let root = library.argument();
    let run = IndexerRun::run(&mut hash_command(&[&root, "--lookup", &server]));
    assert_eq!(run.code, Some(1));
    assert_escaped(&run.stderr);
    for format in ["text", "json"] {
        let mut command = indexer_command(database.0.url(), &["mirror", &server, "--once"]);
        let run = IndexerRun::run(command.env("LOG_FORMAT", format));
        assert_eq!(run.code, Some(1));
        assert_escaped(&run.stderr);
        if format == "json" {
            let lines = log(&run.stderr);
            assert!(lines.iter().any(|(_, message)| message.contains(HOSTILE)), "{lines:?}");
        }
    }
}

#[tokio::test]
async fn headers_of_hostile_archives_are_escaped() {
    let exported = Exported::shared().await;
    let database = Database::new().await;
    let mut named = tar::Header::new_gnu();
    named.as_mut_bytes()[..HOSTILE.len()].copy_from_slice(HOSTILE.as_bytes());
    named.set_size(0);
    named.set_cksum();
    let mut sized = named.clone();
    sized.as_old_mut().size = *b"\x1b]0;PWNED\x07\n ";
    sized.set_cksum();
    for header in [named, sized] {
        let content = [&header.as_bytes()[..], &[0; 1024]].concat();
        let folder = forged(&exported.export, |export| forge(export, "rox.tar", &content));
        let run = database.try_run(&["import", folder.path().to_str().unwrap()]);
        assert_eq!((run.code, run.stderr.contains("PWNED")), (Some(1), true), "{}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        let control = run.stderr.trim_end_matches('\n').chars().find(|character| character.is_control());
        assert_eq!(control, None, "{:?}", run.stderr);
    }
}
