//! Ingest when PostgreSQL rejects a chartset or is unavailable, and when it is interrupted.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use chart_index_tests::{PrivatePostgres, RunningIndexer, within};

use super::*;

#[tokio::test]
async fn rejected_chartset_does_not_stop_the_ingest() {
    let database = Database::new().await;
    let _ = database.0.psql("ALTER TABLE chartsets ADD CONSTRAINT no_bad_title CHECK (title <> 'Bad')");
    let library = Library::new();
    library.osu("alpha/1 one/a.osu", ChartSpec { title: "Bad".into(), ..ChartSpec::numbered(1) });
    library.osu("alpha/2 two/a.osu", ChartSpec::numbered(2));
    for (unchanged, added) in [(0, 1), (1, 0)] {
        let (run, report) = database.try_ingest_with_report(&library, &[]);
        assert_eq!(run.code, Some(1), "{}", run.stdout);
        assert!(run.stderr.contains("PostgreSQL rejected 1 chartset"), "{}", run.stderr);
        assert!(run.stdout.contains("failed: alpha/1 one: "), "{}", run.stdout);
        let line = line_about(&report, "alpha/1 one");
        assert_eq!(line["outcome"], "failed");
        assert!(line["reason"].as_str().unwrap().contains("no_bad_title"), "{line}");
        let counts =
            format!("{added} chartset{} added, {unchanged} unchanged", if added == 1 { "" } else { "s" });
        assert!(run.stdout.contains(&counts), "{}", run.stdout);
    }
    let _ = database.0.psql("ALTER TABLE chartsets DROP CONSTRAINT no_bad_title");
    assert!(database.ingest(&library).contains("1 chartset added, 1 unchanged"));
}

#[tokio::test]
async fn ingest_survives_a_restart_of_postgresql() {
    let server = PrivatePostgres::start();
    let database = Database(TestDatabase::create_on(server.url()));
    database.run(&["migrate"]);
    let library = many_sets();
    let child = database.start_ingest(&library);
    server.kill();
    server.restart();
    let run = finish(child);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("retrying in"), "{}", run.stderr);
    assert_eq!(database.0.psql("SELECT count(*) FROM chartsets"), SETS.to_string());
    assert!(database.run(&["verify"]).contains(", 0 findings"));
}

#[tokio::test]
async fn interrupted_ingest_leaves_complete_chartsets() {
    for signal in ["INT", "TERM"] {
        let database = Database::new().await;
        let library = many_sets();
        let child = database.start_ingest(&library);
        send(&child, signal);
        let run = finish(child);
        assert_eq!(run.code, Some(130), "{signal}: {}", run.stderr);
        assert!(run.stdout.contains("added"), "the summary is printed: {}", run.stdout);
        let partial = "SELECT count(*) FROM (SELECT 1 FROM chartsets LEFT JOIN chartset_charts ON chartset_id = id \
                       GROUP BY id HAVING count(chart_hash) <> 3) AS partial";
        assert_eq!(database.0.psql(partial), "0");
        let stored: u32 = database.0.psql("SELECT count(*) FROM chartsets").parse().unwrap();
        assert!((1..SETS).contains(&stored), "{stored} sets were stored before the interruption");
        assert!(database.run(&["verify"]).contains(", 0 findings"));
        let rest = format!("{} chartsets added, {stored} unchanged", SETS - stored);
        assert!(database.ingest(&library).contains(&rest));
    }
}

#[tokio::test]
async fn ingest_can_be_interrupted_during_an_outage() {
    let server = PrivatePostgres::start();
    let database = Database(TestDatabase::create_on(server.url()));
    database.run(&["migrate"]);
    let library = many_sets();
    let mut child = database.start_ingest(&library);
    server.kill();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(stderr.any(|line| line.contains("retrying in")));
    send(&child, "TERM");
    let (code, _) = within(Duration::from_secs(25), async || child.try_wait().unwrap()).await;
    assert_eq!(code.code(), Some(130));
}

/// The changes of an ingest that was interrupted have numbers, and its charts are in the hash filter.
#[tokio::test]
async fn interrupted_ingest_builds_the_hash_filter() {
    let database = Database::new().await;
    let child = database.start_ingest(&many_sets());
    send(&child, "TERM");
    assert_eq!(finish(child).code, Some(130));
    database.assert_complete();
}

#[tokio::test]
async fn follow_completes_a_killed_ingest() {
    let database = Database::new().await;
    let child = database.start_ingest(&many_sets());
    send(&child, "KILL");
    assert_eq!(finish(child).code, None);
    let mut follow = RunningIndexer::start(&mut indexer_command(database.0.url(), &["follow"]));
    // Before the first pause it numbers what was left, and builds the filter.
    within(TIMEOUT, async || (database.0.psql("SELECT count(*) FROM hash_filters") != "0").then_some(()))
        .await;
    database.assert_complete();
    follow.terminate();
    assert_eq!(follow.wait(), Some(130));
}

const SETS: u32 = 1_000;
/// A timeout that no passing test reaches.
const TIMEOUT: Duration = Duration::from_mins(1);

fn many_sets() -> Library {
    let library = Library::new();
    for set in 0..SETS {
        for chart in 0..3 {
            library.osu(&format!("alpha/{} set/{chart}.osu", set + 1), ChartSpec::numbered(set * 3 + chart));
        }
    }
    library
}

impl Database {
    /// Starts an ingest and waits until it has stored the first chartset.
    fn start_ingest(&self, library: &Library) -> Child {
        let child = indexer_command(self.0.url(), &["ingest", &library.argument()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while self.0.psql("SELECT count(*) FROM chartsets") == "0" {}
        child
    }

    /// Fails unless all changes have numbers, and the last hash filter contains all charts.
    fn assert_complete(&self) {
        assert_eq!(self.0.psql("SELECT count(*) FROM pending_changes"), "0");
        let filter = self.0.psql("SELECT hashes FROM hash_filters ORDER BY sequence DESC LIMIT 1");
        assert_eq!(filter, self.0.psql("SELECT count(*) FROM charts"));
        assert!(self.run(&["verify"]).contains(", 0 findings"));
    }
}

fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
}

fn finish(child: Child) -> IndexerRun {
    let output = child.wait_with_output().unwrap();
    IndexerRun {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
