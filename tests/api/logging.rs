//! The log does not delay requests, and its size does not depend on the number of requests.

use chart_index_tests::PrivatePostgres;

use super::*;

const TIMEOUT: Duration = Duration::from_mins(1);

/// Standard error is a pipe that is not read. At this level a few hundred requests fill it.
#[tokio::test]
async fn blocked_log_delays_neither_requests_nor_shutdown() {
    let database = TestDatabase::migrated().await;
    let options = ServiceOptions {
        variables: &[("RUST_LOG", "trace")],
        leave_log_unread: true,
        ..ServiceOptions::default()
    };
    let mut service = Service::start_with(database.url(), &options);
    let client = service.client();
    let requests = async {
        for _ in 0..1_000 {
            assert_eq!(client.get("/api/chartsets").await.status, 200);
        }
    };
    tokio::time::timeout(TIMEOUT, requests).await.expect("requests are handled while the log is not read");
    service.terminate();
    let ended = tokio::task::spawn_blocking(move || service.wait());
    let code = tokio::time::timeout(TIMEOUT, ended).await.expect("the program ends").unwrap();
    assert_eq!(code, Some(0));
}

/// The last lines are written before the program exits.
#[tokio::test]
async fn log_is_complete_at_exit() {
    let database = TestDatabase::create().await;
    let mut service = Service::start(database.url());
    service.terminate();
    assert_eq!(service.wait(), Some(0));
    let last = || service.log().last().filter(|line| line.contains("\"stopped\"")).cloned();
    within(TIMEOUT, async || last()).await;
}

/// The number of requests during the outage.
const REQUESTS: u8 = 200;

/// While PostgreSQL is unavailable, at most one line per second is logged, with the number of suppressed ones.
#[tokio::test]
async fn outage_does_not_flood_the_log() {
    let postgres = PrivatePostgres::start();
    // Above the limit of fills requests would be shed, which is another type of error.
    let options =
        ServiceOptions { variables: &[("MAX_FILLS_IN_FLIGHT", "200")], ..ServiceOptions::default() };
    let service = Service::start_with(postgres.url(), &options);
    postgres.kill();
    let start = std::time::Instant::now();
    let client = service.client();
    let mut requests = tokio::task::JoinSet::new();
    for number in 0..REQUESTS {
        let (client, hash) = (client.clone(), blake3::hash(&[number]).to_hex());
        requests.spawn(async move { client.get(&format!("/api/charts/{hash}")).await.status });
    }
    assert!(requests.join_all().await.iter().all(|status| *status == 503));
    let seconds = start.elapsed().as_secs();
    // Another request, after a second without a line, logs the number of suppressed ones.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(client.get(&format!("/api/charts/{}", "0".repeat(64))).await.status, 503);
    let failures = || -> Vec<serde_json::Value> {
        let lines = service.log();
        let entries = lines.iter().filter_map(|line| serde_json::from_str(line).ok());
        entries.filter(|entry: &serde_json::Value| entry["fields"]["message"] == "request failed").collect()
    };
    let count = |lines: &[serde_json::Value]| -> u64 {
        lines.iter().map(|line| 1 + line["fields"]["suppressed"].as_u64().unwrap()).sum()
    };
    let (lines, _) =
        within(TIMEOUT, async || Some(failures()).filter(|lines| count(lines) == u64::from(REQUESTS) + 1))
            .await;
    assert!(lines.len() as u64 <= seconds + 3, "{} lines in {seconds} s", lines.len());
    for fields in lines.iter().map(|line| &line["fields"]) {
        assert_eq!((&fields["method"], &fields["status"]), (&"GET".into(), &503.into()), "{fields}");
        assert_eq!(fields["route"], "/api/charts/{hash}", "the template, not the path: {fields}");
        assert_eq!(fields["request_id"].as_str().map(str::len), Some(32), "{fields}");
        assert!(fields["error.type"].is_string(), "{fields}");
    }
}

/// After each statement sqlx asks whether it is to log it, which must not cost the next event of the thread.
#[tokio::test]
async fn no_event_is_lost_after_a_statement() {
    let log = async |format: &str| {
        let database = TestDatabase::migrated().await;
        let variables = [("LOG_FORMAT", format), ("WORKER_THREADS", "2")];
        let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
        let service = Service::start_with(database.url(), &options);
        let client = service.client();
        let look_up = async |number: u32| {
            let hash = blake3::hash(&number.to_le_bytes()).to_hex();
            client.get(&format!("/api/charts/{hash}")).await.status
        };
        for number in 0..20 {
            assert_eq!(look_up(number).await, 200);
        }
        database.psql("ALTER TABLE charts RENAME TO renamed");
        for number in 20..24 {
            assert_eq!(look_up(number).await, 500);
            let lines = || service.log().iter().filter(|line| line.contains("request failed")).count();
            // At most one line a second is logged.
            within(TIMEOUT, async || Some(()).filter(|()| lines() > usize::try_from(number).unwrap() - 20))
                .await;
            tokio::time::sleep(Duration::from_millis(1_100)).await;
        }
    };
    tokio::join!(log("text"), log("json"));
}
