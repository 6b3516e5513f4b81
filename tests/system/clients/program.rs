//! The program that the READMEs and the site show: it says which charts of a folder an index knows.

use std::path::Path;
use std::process::Command;

use chart_index_system_tests::run;
use chart_index_tests::{ChartSpec, IndexerRun, Library, Service, TestDatabase, hash_command, samples};

use crate::link::Link;

/// The number of charts of the library that the index does not know. It has several batches.
const UNKNOWN: u32 = 1_200;

/// An index of the sample library.
pub(crate) async fn serve_samples() -> (TestDatabase, Service) {
    let database = TestDatabase::with_samples().await;
    let service = Service::start(database.url());
    (database, service)
}

/// The lines that `chart-hash` prints for a path.
pub(crate) fn hashed(path: &Path) -> String {
    let run = IndexerRun::run(&mut hash_command(&[path.to_str().expect("UTF-8")]));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run.stdout
}

/// A library with the samples, charts that the index does not know, and archives in archives.
pub(crate) fn library() -> Library {
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
    run(Command::new("cp").arg("-r").arg(samples()).arg(library.root().join("samples")));
    library
}

/// The program finds the charts of a folder over a link of 512 kbit/s, to an index that refuses its first
/// requests.
pub(crate) async fn finds_the_charts_of_a_folder(mut program: Command) {
    let (_database, service) = serve_samples().await;
    let link = Link::start(service.address()).await;
    let library = library();
    let root = library.argument();
    program.args([&link.base(), &root]);
    let output = tokio::task::spawn_blocking(move || program.output().expect("the program starts"));
    let output = output.await.expect("the program ends");
    let [printed, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("UTF-8"));
    assert!(output.status.success(), "{printed}{errors}");
    check_output(&printed, &errors, &root);
    link.check();
}

/// Compares what the program prints with what `chart-hash` and the samples say. The npm package has
/// other words for its reasons.
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
