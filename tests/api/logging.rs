//! The log never delays a request, and does not grow with the number of requests.

use chart_index_tests::PrivatePostgres;

use super::*;

/// Far more than the requests need, far less than for ever.
const PROMPT: Duration = Duration::from_mins(1);

/// Standard error is a pipe that nobody reads. At this level each request logs several lines: a few hundred fill it.
#[tokio::test]
async fn a_blocked_log_delays_no_request_and_not_the_end() {
    let database = TestDatabase::create().await;
    indexer(database.url(), &["migrate"]).succeeded();
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
    tokio::time::timeout(PROMPT, requests).await.expect("requests are answered while nobody reads the log");
    service.terminate();
    let ended = tokio::task::spawn_blocking(move || service.wait());
    let code = tokio::time::timeout(PROMPT, ended).await.expect("the program ends").unwrap();
    assert_eq!(code, Some(0));
}

/// The last lines are written before the program ends.
#[tokio::test]
async fn the_log_is_complete_at_the_end() {
    let database = TestDatabase::create().await;
    let mut service = Service::start(database.url());
    service.terminate();
    assert_eq!(service.wait(), Some(0));
    let last = || service.log().last().filter(|line| line.contains("\"stopped\"")).cloned();
    within(PROMPT, async || last()).await;
}

/// Requests during the outage.
const REQUESTS: u8 = 200;

/// While PostgreSQL is unavailable, the log has a line a second at most, which tells how many it stands for.
#[tokio::test]
async fn an_outage_does_not_fill_the_log() {
    let postgres = PrivatePostgres::start();
    // What is above the limit of fills is shed, which is not logged.
    let options =
        ServiceOptions { variables: &[("MAX_FILLS_IN_FLIGHT", "200")], ..ServiceOptions::default() };
    let service = Service::start_with(postgres.url(), &options);
    postgres.kill();
    let before = std::time::Instant::now();
    let client = service.client();
    let mut requests = tokio::task::JoinSet::new();
    for number in 0..REQUESTS {
        let (client, hash) = (client.clone(), blake3::hash(&[number]).to_hex());
        requests.spawn(async move { client.get(&format!("/api/charts/{hash}")).await.status });
    }
    assert!(requests.join_all().await.iter().all(|status| *status == 503));
    let seconds = before.elapsed().as_secs();
    // One more, after a second in which nothing is logged, tells of all that were suppressed.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(client.get(&format!("/api/charts/{}", "0".repeat(64))).await.status, 503);
    let of_requests = || -> Vec<serde_json::Value> {
        let lines = service.log();
        let entries = lines.iter().filter_map(|line| serde_json::from_str(line).ok());
        entries.filter(|entry: &serde_json::Value| entry["fields"]["message"] == "request failed").collect()
    };
    let told = |lines: &[serde_json::Value]| -> u64 {
        lines.iter().map(|line| 1 + line["fields"]["suppressed"].as_u64().unwrap()).sum()
    };
    let (lines, _) =
        within(PROMPT, async || Some(of_requests()).filter(|lines| told(lines) == u64::from(REQUESTS) + 1))
            .await;
    assert!(lines.len() as u64 <= seconds + 3, "{} lines in {seconds} s", lines.len());
}
