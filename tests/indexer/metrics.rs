//! The metrics of an ingest, at `/metrics`.

use chart_index_tests::{RunningIndexer, within};

use super::*;

/// A timeout that no passing test reaches.
const TIMEOUT: std::time::Duration = std::time::Duration::from_mins(1);

/// A lock stops the ingest after the first song folder, which is refused.
#[tokio::test]
async fn ingest_serves_its_metrics() {
    let database = Database::new().await;
    let library = Library::new();
    library.file("alpha/1 refused/a.osu", "nothing");
    library.osu("alpha/2 stored/a.osu", ChartSpec::numbered(1));
    let mut lock = database.0.start_psql("BEGIN; LOCK TABLE chartsets IN SHARE MODE; SELECT pg_sleep(600)");
    let locks =
        |condition: &str| database.0.locks(&format!("relation = 'chartsets'::regclass AND {condition}"));
    within(TIMEOUT, async || (locks("mode = 'ShareLock' AND granted") == 1).then_some(())).await;
    let mut ingest =
        RunningIndexer::start(&mut indexer_command(database.0.url(), &["ingest", &library.argument()]));
    let chartsets =
        |outcome| format!("chart_index_ingest_chartsets_total{{chart_index_outcome=\"{outcome}\"}}");
    within(TIMEOUT, async || {
        let is_waiting = locks("NOT granted") == 1;
        (is_waiting && ingest.metric(&chartsets("refused")).await == Some(1.0)).then_some(())
    })
    .await;
    assert_eq!(ingest.metric(&chartsets("added")).await, Some(0.0));
    let refusals = ingest.samples("chart_index_ingest_refusals_total").await;
    let counted: Vec<_> = refusals.iter().filter(|sample| !sample.ends_with(" 0")).collect();
    assert_eq!(counted, ["chart_index_ingest_refusals_total{chart_index_reason=\"other_game_mode\"} 1"]);
    assert_eq!(ingest.client().get("/livez").await.status, 200);
    assert_eq!(ingest.client().get("/readyz").await.status, 200);

    let _ = database.0.psql(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
         WHERE datname = current_database() AND query LIKE 'BEGIN; LOCK%'",
    );
    lock.wait().unwrap();
    assert_eq!(ingest.wait(), Some(0));
    assert_eq!(database.titles().len(), 1);
}

/// As beside `follow` in one container.
#[tokio::test]
async fn metrics_address_in_use_ends_permanent_commands_only() {
    let used = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = used.local_addr().unwrap().to_string();
    let expected = format!("METRICS_LISTEN: cannot listen on {address}: ");
    let library = Library::new();
    library.osu("alpha/1 set/a.osu", ChartSpec::numbered(1));
    let root = library.argument();
    for (command, code) in [(&["follow"][..], 1), (&["ingest", "--dry-run", &root], 0)] {
        let run = IndexerRun::run(
            indexer_command("postgres://127.0.0.1:1/none", command).env("METRICS_LISTEN", &address),
        );
        assert!(run.code == Some(code) && run.stderr.contains(&expected), "{command:?}: {}", run.stderr);
    }
}

#[tokio::test]
async fn follow_tells_when_an_ingest_was_last_complete() {
    let database = Database::new().await;
    let library = Library::new();
    library.osu("alpha/1 set/a.osu", ChartSpec::numbered(1));
    database.ingest(&library);
    let follow = RunningIndexer::start(&mut indexer_command(database.0.url(), &["follow"]));
    let time = async |name| follow.metric(&format!("chart_index_ingest_last_{name}_seconds")).await;
    let (complete, _) = within(TIMEOUT, async || time("success").await.filter(|time| *time > 0.0)).await;
    assert!(time("start").await < Some(complete));

    // PostgreSQL rejects the chartset.
    database.0.psql("ALTER TABLE chartsets ADD CHECK (id IS NULL) NOT VALID");
    library.osu("alpha/2 set/a.osu", ChartSpec::numbered(2));
    let failed = database.try_run(&["ingest", &library.argument()]);
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    within(TIMEOUT, async || time("start").await.filter(|start| *start > complete)).await;
    assert_eq!(time("success").await, Some(complete));
}
