//! The open loop against servers in the same thread.

use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use chart_index_domain::NoteHash;
use tokio::net::TcpListener;

use super::*;
use crate::scenario::Expected;
use crate::verify::LIMIT;

const HASH: NoteHash = NoteHash::from_bytes([7; 32]);

fn unknown() -> String {
    format!(r#"{{"chartHash":"{HASH}","status":"unknown"}}"#)
}

/// A server with one path, `/chart`.
async fn server<F>(respond: F) -> SocketAddr
where
    F: Fn() -> (StatusCode, String) + Clone + Send + Sync + 'static,
{
    let respond = move || {
        let (status, body) = respond();
        async move { (status, [(ETAG, "\"tag\"")], body) }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/chart", get(respond))).await });
    address
}

fn load(address: SocketAddr, rate: u32, clients: u32) -> OpenLoop {
    let request = Request::new("/chart".to_owned(), Expected::UnknownChart(HASH));
    OpenLoop {
        address,
        requests: Arc::new(Requests::in_order(vec![request])),
        clients: Clients { first: 0, addresses: clients, abuser_one_in: None },
        rate,
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(1),
        connections: 8,
        may_reject: false,
    }
}

#[tokio::test]
async fn every_request_is_sent_and_verified() {
    let address = server(|| (StatusCode::OK, unknown())).await;
    let start = Instant::now();
    let outcome = load(address, 200, 100).run().await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(990), "request 199 is due after 995 ms");
    assert_eq!((outcome.requests, outcome.accepted.count), (200, 200), "{outcome:?}");
    let problems = [&outcome.errors, &outcome.wrong, &outcome.violations].map(|problems| problems.count);
    assert_eq!(problems, [0, 0, 0], "{outcome:?}");
    assert_eq!(outcome.statuses, [(200, 200)].into());
}

#[tokio::test]
async fn wrong_response_is_found() {
    let number = AtomicU64::new(0);
    let number = Arc::new(number);
    let address = server(move || match number.fetch_add(1, Ordering::Relaxed) {
        50 => (StatusCode::OK, unknown().replace("unknown", "known")),
        60 => (StatusCode::NOT_FOUND, String::new()),
        _ => (StatusCode::OK, unknown()),
    });
    let outcome = load(address.await, 100, 100).run().await.unwrap();
    assert_eq!(outcome.wrong.count, 2, "{outcome:?}");
}

#[tokio::test]
async fn over_admission_is_found() {
    let address = server(|| (StatusCode::OK, unknown())).await;
    let rate = u32::try_from(LIMIT).unwrap() + 10;
    let outcome = load(address, rate, 1).run().await.unwrap();
    assert_eq!(outcome.violations.count, 1, "{outcome:?}");
}

#[tokio::test]
async fn late_starts_of_a_busy_generator_are_counted() {
    // The server occupies the thread of the generator for 20 ms, in which two more requests are due.
    let address = server(|| {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(20) {}
        (StatusCode::OK, unknown())
    });
    let outcome = load(address.await, 100, 100).run().await.unwrap();
    assert!(outcome.late > 0, "{outcome:?}");
}

#[tokio::test]
async fn latency_counts_from_the_intended_start() {
    // One connection and 50 ms per response: the queue grows by 30 ms with each request.
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let respond = || async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            ([(ETAG, "\"tag\"")], unknown())
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().route("/chart", get(respond))).await });
        address
    };
    let outcome = OpenLoop { connections: 1, ..load(address, 50, 100) }.run().await.unwrap();
    assert!(outcome.accepted.max >= 49 * 30_000, "{outcome:?}");
    assert!(outcome.queued > 40 && outcome.late <= 1, "{outcome:?}");
}
