//! `chart-indexer` and `chart-hash` with real files and a real database.
#![expect(clippy::unwrap_used, reason = "a test fails when its set-up does")]

mod backfill;
mod duplicates;
mod exports;
mod exports_renewed;
mod failures;
mod follow;
mod hash;
mod hash_lookup;
mod hostile_exports;
mod metrics;
mod mirror;
mod mirror_failures;
mod objects;
mod purges;
mod real_charts;
mod refusals;
mod reingest;
mod removals;
mod signed_exports;
mod standard_error;
mod status;
mod table_locks;
mod too_large;

use std::collections::BTreeMap;
use std::process::{Child, Command};

use chart_index_tests::{
    ChartSpec, IndexerRun, Library, TestDatabase, hash_command, indexer, indexer_command, samples,
    send_signal,
};

/// A migrated database for one test.
struct Database(TestDatabase);

impl Database {
    async fn new() -> Self {
        Self(TestDatabase::migrated().await)
    }

    async fn with_samples() -> Self {
        Self(TestDatabase::with_samples().await)
    }

    /// Runs a command that must succeed, and returns its output.
    fn run(&self, arguments: &[&str]) -> String {
        let run = self.try_run(arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {}{}", run.stdout, run.stderr);
        run.stdout
    }

    fn try_run(&self, arguments: &[&str]) -> IndexerRun {
        indexer(self.0.url(), arguments)
    }

    fn ingest(&self, library: &Library) -> String {
        self.run(&["ingest", &library.argument()])
    }

    /// Ingests with a report, and returns the summary and the lines of the report.
    fn ingest_with_report(&self, library: &Library, arguments: &[&str]) -> (String, Vec<serde_json::Value>) {
        let (run, report) = self.try_ingest_with_report(library, arguments);
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        (run.stdout, report)
    }

    fn try_ingest_with_report(
        &self,
        library: &Library,
        arguments: &[&str],
    ) -> (IndexerRun, Vec<serde_json::Value>) {
        let path = library.root().join("../report.jsonl");
        let (root, path) = (library.argument(), path.to_str().unwrap());
        let run = self.try_run(&[&["ingest", &root, "--report", path], arguments].concat());
        let report = std::fs::read_to_string(path).unwrap();
        (run, report.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    fn titles(&self) -> Vec<String> {
        let titles = self.0.psql("SELECT title FROM chartsets ORDER BY path");
        titles.lines().map(str::to_owned).collect()
    }

    /// The ids of all stored chartsets, by path.
    fn chartsets(&self) -> BTreeMap<String, String> {
        let rows = self.0.psql("SELECT path || '|' || id FROM chartsets");
        rows.lines()
            .filter_map(|row| row.rsplit_once('|'))
            .map(|(path, id)| (path.into(), id.into()))
            .collect()
    }
}

/// The line of a report about the chartset with this path.
fn line_about(report: &[serde_json::Value], path: &str) -> serde_json::Value {
    let line = report.iter().find(|line| line["path"] == path && line["chartset"].is_string());
    line.unwrap_or_else(|| panic!("no line about {path} in {report:?}")).clone()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn samples_are_ingested_and_verified() {
    let database = Database::new().await;
    let samples = samples();
    let summary = database.run(&["ingest", samples.to_str().unwrap()]);
    assert!(summary.contains("0 files refused"), "{summary}");
    assert!(database.run(&["verify"]).contains(", 0 findings"));
    let again = database.run(&["ingest", samples.to_str().unwrap()]);
    assert!(again.contains("0 chartsets added") && again.contains(" 0 updated"), "{again}");
}

/// docs/formats/records.md, "Chartsets and ids": a folder and its archive have the same id.
#[tokio::test]
async fn folder_and_archive_are_the_same_chartset() {
    let database = Database::new().await;
    let library = Library::new();
    library.osu("alpha/1 one/a.osu", ChartSpec::numbered(1));
    library.osu("alpha/no id/a.osu", ChartSpec::numbered(2));
    library.osu("beta/3 pack/song/a.osu", ChartSpec::numbered(3));
    database.ingest(&library);
    let before = database.chartsets();
    library.pack("alpha/1 one", "alpha/1 one.osz");
    library.pack("alpha/no id", "alpha/no id.zip");
    library.pack("beta/3 pack/song", "beta/3 pack/song.zip");
    assert!(database.ingest(&library).contains("0 chartsets added, 3 unchanged, 0 updated"));
    assert_eq!(database.chartsets(), before);
}

/// A folder of archives and the archive of that folder have the same chartsets.
#[tokio::test]
async fn archives_in_folders_and_archives_are_the_same_chartsets() {
    let database = Database::new().await;
    let library = Library::new();
    for (number, set) in
        (1..).zip(["alpha/sets/1 one", "alpha/sets/no id", "beta/3 pack/song", "other/sets/set"])
    {
        library.osu(&format!("{set}/a.osu"), ChartSpec::numbered(number));
        library.pack(set, &format!("{set}.osz"));
    }
    library.osu("beta/3 pack/other/a.osu", ChartSpec::numbered(5));
    let summary = database.ingest(&library);
    assert!(summary.contains("5 chartsets added") && summary.contains("0 files refused"), "{summary}");
    let before = database.chartsets();
    for folder in ["alpha/sets", "beta/3 pack", "other/sets"] {
        library.pack(folder, &format!("{folder}.zip"));
    }
    assert!(database.ingest(&library).contains("0 chartsets added, 5 unchanged, 0 updated"));
    assert_eq!(database.chartsets(), before);
    assert!(database.ingest(&library).contains("0 chartsets added, 5 unchanged, 0 updated"));
}

#[tokio::test]
async fn chartsets_of_an_archive_share_transactions() {
    let (database, library) = (Database::new().await, Library::new());
    for number in 1..=48 {
        library.osu(&format!("beta/1 pack/{number} song/a.osu"), ChartSpec::numbered(number));
    }
    library.pack("beta/1 pack", "beta/1 pack.zip");
    database.ingest(&library);
    let written = database.0.psql("SELECT count(*), count(DISTINCT xmin::text) FROM chartsets");
    let (chartsets, transactions) = written.split_once('|').unwrap();
    assert_eq!(chartsets, "48");
    assert!(transactions.parse::<u32>().unwrap() <= 4, "{transactions}");
}

#[tokio::test]
async fn verify_finds_inconsistent_rows() {
    let database = Database::new().await;
    let library = Library::new();
    library.osu("alpha/1 one/a.osu", ChartSpec::numbered(1));
    library.osu("alpha/2 two/a.osu", ChartSpec::numbered(2));
    database.ingest(&library);
    let hash = ChartSpec::numbered(1).note_hash();
    let other = ChartSpec::numbered(2).note_hash();
    let swap = format!(
        "UPDATE rox_files SET bytes = (SELECT bytes FROM rox_files WHERE hash = '\\x{other}') WHERE hash = '\\x{hash}'"
    );
    for (damage, finding) in [
        ("UPDATE charts SET note_hash_version = 2", "its note hash has version 2"),
        ("UPDATE charts SET rox_bytes = rox_bytes + 1", "rox_bytes"),
        ("UPDATE charts SET variant = decode(repeat('00', 32), 'hex')", "its variant differs"),
        (swap.as_str(), hash.as_str()),
        ("UPDATE chartsets SET bpm_max = 1000", "bpm_max"),
    ] {
        let _ = database.0.psql(damage);
        let run = database.try_run(&["verify"]);
        assert_eq!(run.code, Some(1), "{}", run.stdout);
        assert!(run.stdout.contains(finding), "{}", run.stdout);
    }
}

/// The exit code is 0 with refused files, but not if the store fails.
#[tokio::test]
async fn store_failure_is_an_error() {
    let library = Library::new();
    library.osu("alpha/1 one/a.osu", ChartSpec::default());
    let unmigrated = TestDatabase::create().await;
    let run = indexer(unmigrated.url(), &["ingest", &library.argument()]);
    assert_eq!((run.code, run.stderr.contains("chart-indexer migrate")), (Some(1), true), "{}", run.stderr);
    let run = indexer("postgres://user:hunter2@127.0.0.1:1/none", &["verify"]);
    assert_eq!((run.code, run.stderr.contains("hunter2")), (Some(1), false), "{}", run.stderr);
    let missing = Database::new().await.try_run(&["ingest", "/nowhere/at/all"]);
    assert_eq!(
        (missing.code, missing.stderr.contains("/nowhere/at/all")),
        (Some(1), true),
        "{}",
        missing.stderr
    );
}

#[test]
fn dry_run_needs_no_database() {
    let library = Library::new();
    library.osu("alpha/1 one/a.osu", ChartSpec::default());
    library.file("alpha/1 one/bad.osu", "nothing");
    let run = indexer("postgres://127.0.0.1:1/none", &["ingest", "--dry-run", &library.argument()]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stdout.contains("1 chartset decoded, none stored (1 chart); 1 file refused"),
        "{}",
        run.stdout
    );
}
