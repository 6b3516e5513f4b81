//! Ingest when PostgreSQL rejects a chartset or is unavailable, and when it is interrupted.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use chart_index_tests::{PrivatePostgres, RunningIndexer, within};

use super::table_locks::{block_table, release, wait_until_blocked};
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
    let (mut child, _lock) = database.start_ingest(&library).await;
    let sequence = || database.0.psql("SELECT last_sequence FROM change_feed").parse::<u64>().unwrap();
    let followed_to = sequence();
    server.kill();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(stderr.any(|line| line.contains("retrying in")));
    server.restart();
    // What a mirror has read of the feed is not lost: it would have to begin again.
    assert!(sequence() >= followed_to);
    let run = finish(child);
    assert_eq!(run.code, Some(0), "{}", stderr.collect::<Vec<_>>().join("\n"));
    assert_eq!(database.0.psql("SELECT count(*) FROM chartsets"), SETS.to_string());
    database.assert_complete();
}

#[tokio::test]
async fn interrupted_ingest_leaves_complete_chartsets() {
    for signal in ["INT", "TERM"] {
        let database = Database::new().await;
        let library = many_sets();
        let run = database.interrupt_ingest(&library, signal).await;
        assert_eq!(run.code, Some(130), "{signal}: {}", run.stderr);
        assert!(run.stdout.contains("added"), "the summary is printed: {}", run.stdout);
        let partial = "SELECT count(*) FROM (SELECT 1 FROM chartsets LEFT JOIN chartset_charts ON chartset_id = id \
                       GROUP BY id HAVING count(chart_hash) <> 3) AS partial";
        assert_eq!(database.0.psql(partial), "0");
        let stored: u32 = database.0.psql("SELECT count(*) FROM chartsets").parse().unwrap();
        assert!((1..SETS).contains(&stored), "{stored} sets were stored before the interruption");
        // Its changes have numbers, and its charts are in the hash filter.
        database.assert_complete();
        let rest = format!("{} chartsets added, {stored} unchanged", SETS - stored);
        assert!(database.ingest(&library).contains(&rest));
    }
}

#[tokio::test]
async fn ingest_can_be_interrupted_at_its_end() {
    let (database, library) = (Database::new().await, Library::new());
    library.osu("alpha/1 one/a.osu", ChartSpec::default());
    let lock = block_table(&database, "chart_percentiles").await;
    let mut child = indexer_command(database.0.url(), &["ingest", &library.argument()]).spawn().unwrap();
    wait_until_blocked(&database, "chart_percentiles").await;
    send_signal(child.id(), "TERM");
    let (code, _) = within(TIMEOUT, async || child.try_wait().unwrap()).await;
    assert_eq!(code.code(), Some(130));
    assert_eq!(database.0.psql("SELECT count(completed_at_ms) FROM last_ingest"), "0");
    release(&database, lock);
    database.assert_complete();
    // It is no failure if the reader of the summary closes it.
    let mut command = indexer_command(database.0.url(), &["ingest", &library.argument()]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(database.0.psql("SELECT count(completed_at_ms) FROM last_ingest"), "1");
}

#[tokio::test]
async fn ingest_without_its_report_is_not_complete() {
    let (database, library) = (Database::new().await, Library::new());
    library.osu("alpha/1 one/a.osu", ChartSpec::default());
    let run = database.try_run(&["ingest", &library.argument(), "--report", "/dev/full"]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert_eq!(database.0.psql("SELECT count(completed_at_ms) FROM last_ingest"), "0");
}

#[tokio::test]
async fn ingest_can_be_interrupted_during_an_outage() {
    let server = PrivatePostgres::start();
    let database = Database(TestDatabase::create_on(server.url()));
    database.run(&["migrate"]);
    let library = many_sets();
    let (mut child, _lock) = database.start_ingest(&library).await;
    server.kill();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(stderr.any(|line| line.contains("retrying in")));
    send_signal(child.id(), "TERM");
    // 10 s for the chartsets in progress, and 5 s for the hash filter.
    let (code, _) = within(Duration::from_secs(20), async || child.try_wait().unwrap()).await;
    assert_eq!(code.code(), Some(130));
}

#[tokio::test]
async fn follow_completes_a_killed_ingest() {
    let database = Database::new().await;
    assert_eq!(database.interrupt_ingest(&many_sets(), "KILL").await.code, None);
    let mut follow = RunningIndexer::start(&mut indexer_command(database.0.url(), &["follow"]));
    // Before the first pause it numbers what was left, and builds the filter.
    within(TIMEOUT, async || (database.0.psql("SELECT count(*) FROM hash_filters") != "0").then_some(()))
        .await;
    database.assert_complete();
    follow.terminate();
    assert_eq!(follow.wait(), Some(130));
}

const SETS: u32 = 300;
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
    /// Starts an ingest, and returns when it has stored some of the chartsets and waits for the returned lock.
    async fn start_ingest(&self, library: &Library) -> (Child, Child) {
        self.0.psql(&format!(
            "CREATE TABLE blocked ();
             CREATE FUNCTION wait_after_some() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF (SELECT count(*) FROM chartsets) > {} THEN PERFORM FROM blocked; END IF;
                 RETURN NULL;
             END $$;
             CREATE TRIGGER wait_after_some AFTER INSERT ON chartsets EXECUTE FUNCTION wait_after_some()",
            SETS / 10
        ));
        let lock = block_table(self, "blocked").await;
        let child = indexer_command(self.0.url(), &["ingest", &library.argument()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until_blocked(self, "blocked").await;
        (child, lock)
    }

    /// Sends a signal to an ingest that has stored some of the chartsets, and waits for its end.
    async fn interrupt_ingest(&self, library: &Library, signal: &str) -> IndexerRun {
        let (child, lock) = self.start_ingest(library).await;
        send_signal(child.id(), signal);
        release(self, lock);
        finish(child)
    }

    /// Fails unless the last hash filter contains all charts, and nothing is found wrong.
    fn assert_complete(&self) {
        let filter = self.0.psql("SELECT hashes FROM hash_filters ORDER BY sequence DESC LIMIT 1");
        assert_eq!(filter, self.0.psql("SELECT count(*) FROM charts"));
        assert!(self.run(&["verify"]).contains(", 0 findings"));
    }
}

fn finish(child: Child) -> IndexerRun {
    let output = child.wait_with_output().unwrap();
    IndexerRun {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
