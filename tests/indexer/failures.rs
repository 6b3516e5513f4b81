//! Ingest when PostgreSQL rejects a chartset or is unavailable, and when it is interrupted.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chart_index_tests::{PrivatePostgres, TestRedis, within};

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
    let child = database.start_ingest(&library, &[]);
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
        let child = database.start_ingest(&library, &[]);
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
    let mut child = database.start_ingest(&library, &[]);
    server.kill();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(stderr.any(|line| line.contains("retrying in")));
    send(&child, "TERM");
    let (code, _) = within(Duration::from_secs(25), async || child.try_wait().unwrap()).await;
    assert_eq!(code.code(), Some(130));
}

#[tokio::test]
async fn interrupted_ingest_invalidates_stored_charts() {
    let database = Database::new().await;
    let redis = TestRedis::create();
    let library = many_sets();
    let messages = Messages::subscribe(redis.url());
    let child = database.start_ingest(&library, &[("REDIS_URL", redis.url())]);
    send(&child, "TERM");
    assert_eq!(finish(child).code, Some(130));
    let stored = database.0.psql("SELECT encode(chart_hash, 'hex') FROM chartset_charts");
    let stored: HashSet<String> = stored.lines().map(str::to_owned).collect();
    assert!(!stored.is_empty());
    within(Duration::from_secs(5), async || messages.contain_all(&stored).then_some(())).await;
}

/// Receives all messages that are published in Redis.
struct Messages {
    subscriber: Child,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Messages {
    fn subscribe(url: &str) -> Self {
        let mut command = Command::new("redis-cli");
        let mut subscriber =
            command.args(["-u", url, "PSUBSCRIBE", "*"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(subscriber.stdout.take().unwrap());
        // Three lines confirm the subscription.
        for _ in 0..3 {
            output.read_line(&mut String::new()).unwrap();
        }
        let received = Arc::new(Mutex::new(Vec::new()));
        let messages = Self { subscriber, received: received.clone() };
        std::thread::spawn(move || {
            let mut buffer = [0; 8 << 10];
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                received.lock().unwrap().extend_from_slice(&buffer[..length]);
            }
        });
        messages
    }

    /// Whether every one of these hashes is in a message.
    fn contain_all(&self, hashes: &HashSet<String>) -> bool {
        let bytes = |hash: &String| -> Vec<u8> {
            (0..32).map(|at| u8::from_str_radix(&hash[2 * at..2 * at + 2], 16).unwrap()).collect()
        };
        let mut missing: HashSet<Vec<u8>> = hashes.iter().map(bytes).collect();
        for window in self.received.lock().unwrap().windows(32) {
            missing.remove(window);
        }
        missing.is_empty()
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        let _ = self.subscriber.kill();
        let _ = self.subscriber.wait();
    }
}

const SETS: u32 = 1_000;

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
    fn start_ingest(&self, library: &Library, variables: &[(&str, &str)]) -> Child {
        let child = indexer_command(self.0.url(), &["ingest", &library.argument()])
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while self.0.psql("SELECT count(*) FROM chartsets") == "0" {}
        child
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
