//! The packages in `clients`, installed as a program installs them, over a real instance.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test panics if its set-up fails")]

mod link;
mod npm;
mod python;
mod rust;
mod slow_link;
mod types;

use std::path::Path;
use std::process::{Command, Output};

use chart_index_tests::{IndexerRun, Library, Service, TestDatabase, indexer, indexer_command, samples};

/// The number of charts of the library that the index does not know. It has several batches.
const UNKNOWN: u32 = 1_200;

/// An index of the sample library.
async fn serve_samples() -> (TestDatabase, Service) {
    let database = TestDatabase::create().await;
    indexer(database.url(), &["migrate"]).succeeded();
    indexer(database.url(), &["ingest", samples().to_str().expect("UTF-8")]).succeeded();
    indexer(database.url(), &["filter"]).succeeded();
    let service = Service::start(database.url());
    (database, service)
}

/// The lines that `chart-indexer hash` prints for a path.
fn hashed(path: &Path) -> String {
    let run = IndexerRun::run(&mut indexer_command("", &["hash", path.to_str().expect("UTF-8")]));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run.stdout
}

/// A library with the samples, charts that the index does not know, and archives in archives.
fn library() -> Library {
    use chart_index_tests::ChartSpec;
    let library = Library::new();
    for number in 0..UNKNOWN {
        library.osu(&format!("unknown/{number}.osu"), ChartSpec::numbered(number));
    }
    for set in ["one", "two"] {
        library.osu(&format!("sets/{set}/a.osu"), ChartSpec::default());
        library.pack(&format!("sets/{set}"), &format!("sets/{set}.osz"));
    }
    library.pack("sets", "sets.zip");
    library.file("damaged.osz", "no archive");
    let copied = Command::new("cp").arg("-r").arg(samples()).arg(library.root().join("samples")).status();
    assert!(copied.expect("cp").success());
    library
}

/// The standard output of a program that succeeded.
fn succeeded(name: &str, output: &Output) -> String {
    let (stdout, stderr) =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).into();
    assert!(output.status.success(), "{name}: {}: {stdout}{stderr}", output.status);
    stdout
}

/// The program of a README that says which charts of a folder an index knows, and where they are from: over a link
/// of 256 kbit/s to an index that refuses its first requests.
async fn finds_the_charts_of_a_folder(mut program: Command) {
    let (_database, service) = serve_samples().await;
    let link = link::Link::start(service.address()).await;
    let library = library();
    let root = library.argument();
    let output = tokio::task::spawn_blocking({
        let arguments = [link.base(), root.clone()];
        move || program.args(arguments).output().expect("the program starts")
    });
    let output = output.await.expect("the program ends");
    let printed = succeeded("the program", &output);
    check_output(&printed, &String::from_utf8_lossy(&output.stderr), &root);
    link.check();
}

/// Compares what the program prints with what `chart-indexer hash` and the samples say. The npm package has other
/// words for its reasons.
fn check_output(printed: &str, errors: &str, root: &str) {
    let lines: Vec<serde_json::Value> =
        hashed(Path::new(root)).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let (charts, refused): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line["hash"].is_string());
    let file = |line: &serde_json::Value| line["file"].as_str().expect("a path").to_owned();
    let files: Vec<String> = charts.into_iter().map(file).collect();
    assert_eq!(printed.lines().count(), files.len());
    for (line, file) in printed.lines().zip(&files) {
        let (status, rest) = line.split_once(' ').expect("a status");
        let urls = rest.strip_prefix(file.as_str()).unwrap_or_else(|| panic!("{line}: {file}"));
        let is_sample = file.starts_with(&format!("{root}/samples/"));
        assert_eq!(status, if is_sample { "known" } else { "unknown" }, "{line}");
        assert!(is_sample || urls.trim().is_empty(), "{line}");
    }
    assert!(printed.contains(" https://alpha.example/sets/900101"), "{printed}");
    for line in refused {
        let expected = format!("{}: ", file(line));
        assert!(errors.contains(&expected), "{expected}: {errors}");
    }
}
