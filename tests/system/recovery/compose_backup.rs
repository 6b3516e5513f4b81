//! The service `backup` of `docker-compose.yml`: its dumps, and restores of them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use chart_index_system_tests::Process;
use chart_index_tests::{ChartSpec, Library, PrivatePostgres, TestDatabase, indexer, within, workspace_root};

/// A timeout that no passing test reaches.
const TIMEOUT: Duration = Duration::from_secs(30);

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

    /// Runs the script, which has to succeed; returns what it prints.
    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// The value of a metric that the script has written for node-exporter.
    fn metric(&self, of: &str, name: &str) -> Option<u64> {
        let metrics = fs::read_to_string(self.folder.path().join(format!("{of}.prom"))).ok()?;
        let prefix = format!("chart_index_backup_{name}{{chart_index_backup=\"{of}\"}} ");
        let mut values = metrics.lines().filter_map(|line| line.strip_prefix(&prefix));
        Some(values.next().expect("a sample").parse().expect("a number"))
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
        assert_eq!(backups.succeed(&["restore", dump]), format!("restored {dump}\n"));
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

/// Without a dump, and with an old one.
#[tokio::test]
async fn service_dumps_and_reports_failures() {
    let backups = Backups::create();
    let unreachable = backups.script().env("PGPORT", "1").arg("once").output().expect("sh starts");
    assert!(!unreachable.status.success());
    let mut failing = Process::start(backups.script().env("PGPORT", "1"));
    within(TIMEOUT, async || backups.metric("dump", "last_failure_seconds").filter(|time| *time > 0)).await;
    assert_eq!(backups.metric("dump", "last_success_seconds"), Some(0));
    assert_eq!(backups.metric("dump", "interval_seconds"), Some(24 * 3600));
    let unfinished = fs::read_dir(backups.folder.path()).expect("a folder").flatten();
    let unfinished: Vec<_> = unfinished.map(|entry| entry.file_name()).collect();
    assert_eq!(unfinished, ["dump.prom"], "a dump that failed takes no room");
    assert_eq!(failing.terminate(), Some(0));

    let old = backups.folder.path().join("chart_index-20200103T000000Z.dump");
    fs::write(&old, "old").expect("a file");
    age(&old);
    let mut service = Process::start(&mut backups.script());
    within(TIMEOUT, async || backups.metric("dump", "last_success_seconds").filter(|time| *time > 0)).await;
    assert!(backups.metric("dump", "size_bytes") > Some(0));
    backups.succeed(&["check"]);
    assert_eq!(service.terminate(), Some(0));
    assert_eq!(backups.names().len(), 2);
}

/// To a folder, as a remote of rclone.
#[tokio::test]
async fn dumps_are_copied_elsewhere() {
    let backups = Backups::create();
    backups.succeed(&["once"]);
    let old = backups.folder.path().join("chart_index-20200103T000000Z.dump");
    fs::write(&old, "old").expect("a file");
    let (remote, configuration) = (tempfile::tempdir(), tempfile::NamedTempFile::new());
    let (remote, configuration) = (remote.expect("a folder"), configuration.expect("a file"));
    let text = format!("[offsite]\ntype = alias\nremote = {}\n", remote.path().display());
    fs::write(configuration.path(), text).expect("a file");
    let copy = |remote: &str| {
        let mut command = backups.script();
        command.arg("copy").env("BACKUP_REMOTE", remote).env("RCLONE_CONFIG", configuration.path());
        Process::start(&mut command)
    };
    let mut failing = copy("elsewhere:dumps");
    within(TIMEOUT, async || backups.metric("copy", "last_failure_seconds").filter(|time| *time > 0)).await;
    assert_eq!(backups.metric("copy", "last_success_seconds"), Some(0));
    assert_eq!(failing.terminate(), Some(0));
    let mut service = copy("offsite:dumps");
    within(TIMEOUT, async || backups.metric("copy", "last_success_seconds").filter(|time| *time > 0)).await;
    assert_eq!(service.terminate(), Some(0));
    let copies = fs::read_dir(remote.path().join("dumps")).expect("a folder").flatten();
    let mut copies: Vec<_> = copies.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect();
    copies.sort_unstable();
    assert_eq!(copies, backups.names());
}

/// Makes a file two days old.
fn age(file: &Path) {
    let touched =
        Command::new("touch").args(["--date", "2 days ago"]).arg(file).status().expect("touch starts");
    assert!(touched.success());
}
