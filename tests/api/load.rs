//! More requests than PostgreSQL can handle at once.

use std::time::Duration;

use tokio::task::JoinSet;

use super::*;

/// The requests that the default rate limit admits from one address in a minute.
const LISTS: usize = 240;

/// Makes every list take 300 ms, and nothing else.
const SLOW_LISTS: &str = "ALTER TABLE chartsets RENAME TO stored_chartsets;
     CREATE FUNCTION slow_down() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
     BEGIN
         IF current_query() LIKE '%AS counted%' THEN PERFORM pg_sleep(0.15); END IF;
         RETURN true;
     END $$;
     CREATE VIEW chartsets AS SELECT * FROM stored_chartsets WHERE slow_down()";

/// The number of running list queries.
const RUNNING: &str = "SELECT count(*) FROM pg_stat_activity
     WHERE query LIKE '%AS counted%' AND state = 'active' AND pid <> pg_backend_pid()
       AND datname = current_database()";

/// A client that requests many different lists does not slow down lookups and health checks.
#[tokio::test(flavor = "multi_thread")]
async fn lists_do_not_starve_lookups() {
    let database = TestDatabase::migrated().await;
    let library = Library::new();
    library.osu("alpha/1 one/a.osu", ChartSpec::default());
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

    let responses = lists.join_all().await;
    let succeeded = responses.iter().filter(|response| response.status == 200).count();
    // Up to 120 wait; on a busy machine some of them come when others have been waiting for too long.
    assert!(succeeded * 8 > LISTS, "{succeeded} of {LISTS}");
    for shed in responses.iter().filter(|response| response.status != 200) {
        assert_eq!(shed.status, 503);
        assert!(!shed.header("retry-after").is_empty());
    }
}
