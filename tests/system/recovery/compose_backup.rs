//! The service `backup` of `docker-compose.yml`: its dumps, and restores of them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use chart_index_tests::{ChartSpec, Library, PrivatePostgres, TestDatabase, indexer, within, workspace_root};

/// A database whose owner is not a superuser, as in Compose, and a folder for its dumps.
struct Backups {
    _server: PrivatePostgres,
    url: String,
    port: String,
    folder: tempfile::TempDir,
}

impl Backups {
    fn create() -> Self {
        let server = PrivatePostgres::start_without_durability();
        TestDatabase::psql_on(server.url(), "CREATE ROLE owner LOGIN");
        TestDatabase::psql_on(server.url(), "CREATE DATABASE owned OWNER owner");
        let (address, _) = server.url().rsplit_once('/').expect("a database");
        let (_, port) = address.rsplit_once(':').expect("a port");
        let (url, port) = (format!("postgres://owner@127.0.0.1:{port}/owned"), port.to_owned());
        indexer(&url, &["migrate"]).succeeded();
        Self { _server: server, url, port, folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// The script of the service.
    fn script(&self) -> Command {
        let settings =
            [("PGHOST", "127.0.0.1"), ("PGPORT", &self.port), ("PGUSER", "owner"), ("PGDATABASE", "owned")];
        let mut command = Command::new("sh");
        command.arg(workspace_root().join("compose/backup/backup.sh")).envs(settings);
        command.env("BACKUPS", self.folder.path()).env("BACKUP_KEEP", "2");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.script().args(arguments).output().expect("sh starts")
    }

    /// Runs the script, which has to succeed.
    fn succeed(&self, arguments: &[&str]) {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// The complete dumps, sorted.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("a folder");
        let names = entries.map(|entry| entry.expect("a file").file_name().into_string().expect("UTF-8"));
        let mut names: Vec<_> = names.filter(|name| name.strip_suffix(".dump").is_some()).collect();
        names.sort_unstable();
        names
    }

    fn ingest(&self, sets: std::ops::Range<u32>) {
        let library = Library::new();
        for number in sets {
            library.osu(&format!("alpha/{} set/a.osu", number + 1), ChartSpec::numbered(number));
        }
        indexer(&self.url, &["ingest", &library.argument()]).succeeded();
    }

    fn chartsets(&self) -> String {
        TestDatabase::psql_on(&self.url, "SELECT count(*) FROM chartsets")
    }
}

#[test]
fn dumps_are_kept_and_restored() {
    let backups = Backups::create();
    backups.ingest(0..2);
    assert!(!backups.run(&["check"]).status.success());
    for day in 1..=3 {
        fs::write(backups.folder.path().join(format!("chart_index-2020010{day}T000000Z.dump")), "old")
            .expect("a file");
    }
    age(&backups.folder.path().join("chart_index-20200103T000000Z.dump"));
    backups.succeed(&["once"]);
    let names = backups.names();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(names[0], "chart_index-20200103T000000Z.dump");
    backups.succeed(&["check"]);

    let dump = names[1].as_str();
    backups.ingest(2..5);
    assert_eq!(backups.chartsets(), "5");
    // A dump that is not complete leaves the database as it is.
    let bytes = fs::read(backups.folder.path().join(dump)).expect("a dump");
    fs::write(backups.folder.path().join("half"), &bytes[..bytes.len() / 2]).expect("a file");
    assert!(!backups.run(&["restore", "half"]).status.success());
    fs::remove_file(backups.folder.path().join("half")).expect("a file");
    assert_eq!(backups.chartsets(), "5");
    // Twice: also a database that was restored before.
    for _ in 0..2 {
        backups.succeed(&["restore", dump]);
        for command in ["migrate", "verify"] {
            indexer(&backups.url, &[command]).succeeded();
        }
        assert_eq!(backups.chartsets(), "2");
        backups.succeed(&["once"]);
    }
    let last = backups.names().last().expect("a dump").clone();
    backups.succeed(&["restore", &last]);
    assert_eq!(backups.chartsets(), "2");
}

#[tokio::test]
async fn service_dumps_if_the_last_dump_is_old() {
    let backups = Backups::create();
    let old = backups.folder.path().join("chart_index-20200103T000000Z.dump");
    fs::write(&old, "old").expect("a file");
    age(&old);
    let unreachable = backups.script().env("PGPORT", "1").arg("once").output().expect("sh starts");
    assert!(!unreachable.status.success());
    assert_eq!(backups.names().len(), 1, "{:?}", backups.names());
    let mut service = backups.script().spawn().expect("sh starts");
    within(Duration::from_secs(30), async || backups.run(&["check"]).status.success().then_some(())).await;
    let stopped = Command::new("kill").arg(service.id().to_string()).status().expect("kill starts");
    assert!(stopped.success());
    assert!(service.wait().expect("a process").success());
    assert_eq!(backups.names().len(), 2);
}

/// Makes a file two days old.
fn age(file: &Path) {
    let touched =
        Command::new("touch").args(["--date", "2 days ago"]).arg(file).status().expect("touch starts");
    assert!(touched.success());
}
