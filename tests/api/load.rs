//! More requests than PostgreSQL can answer at once.

use std::time::Duration;

use tokio::task::JoinSet;

use super::*;

/// What the rate limit admits from one address in a minute.
const LISTS: usize = 240;

/// Every list of the database takes 100 ms of waiting, and nothing else does.
const SLOW_LISTS: &str = "ALTER TABLE chartsets RENAME TO stored_chartsets;
     CREATE FUNCTION slow_down() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
     BEGIN
         IF current_query() LIKE '%AS counted%' THEN PERFORM pg_sleep(0.05); END IF;
         RETURN true;
     END $$;
     CREATE VIEW chartsets AS SELECT * FROM stored_chartsets WHERE slow_down()";

/// The lists that PostgreSQL works on.
const RUNNING: &str = "SELECT count(*) FROM pg_stat_activity
     WHERE query LIKE '%AS counted%' AND state = 'active' AND pid <> pg_backend_pid()
       AND datname = current_database()";

/// One address that asks for as many different lists as it may takes nothing from lookups and health checks.
#[tokio::test(flavor = "multi_thread")]
async fn lists_take_nothing_from_lookups() {
    let database = TestDatabase::create().await;
    let library = Library::new();
    library.osu("alpha/1 one/a.osu", ChartSpec::default());
    indexer(database.url(), &["migrate"]).succeeded();
    indexer(database.url(), &["ingest", &library.argument()]).succeeded();
    let _ = database.psql(SLOW_LISTS);
    let variables = [("POSTGRES_MAX_SEARCHES", "8")];
    let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
    let service = Service::start_with(database.url(), &options);
    let (client, private) = (service.client(), service.private_client());

    let mut lists = JoinSet::new();
    for number in 0..LISTS {
        let client = client.clone();
        lists.spawn(async move { client.get(&format!("/api/chartsets?lengthMax={}", 1_000 + number)).await });
    }
    let running = async || database.psql(RUNNING).parse::<u32>().ok().filter(|running| *running >= 8);
    let (running, _) = within(Duration::from_secs(3), running).await;
    assert_eq!(running, 8);
    let mut lookups = JoinSet::new();
    for number in 0..40 {
        let client = client.clone();
        lookups.spawn(async move { client.get(&format!("/api/charts/{number:064}")).await.status });
    }
    for _ in 0..10 {
        assert_eq!(private.get("/readyz").await.status, 200);
    }
    assert!(lookups.join_all().await.iter().all(|status| *status == 200));

    let answers = lists.join_all().await;
    let answered = answers.iter().filter(|answer| answer.status == 200).count();
    assert!(answered * 2 > LISTS, "{answered} of {LISTS}");
    for shed in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!(shed.status, 503);
        assert!(!shed.header("retry-after").is_empty());
    }
}
