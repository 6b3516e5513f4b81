//! The log never delays a request.

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
