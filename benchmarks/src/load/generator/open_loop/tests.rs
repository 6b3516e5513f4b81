//! Latencies and late starts of the open loop, against servers in the same thread.

use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use chart_index_domain::NoteHash;
use tokio::net::TcpListener;

use super::*;
use crate::scenario::Expected;

const HASH: NoteHash = NoteHash::from_bytes([7; 32]);

/// A load from 100 clients, for a second, of a server with one path, to which it responds after this future.
async fn run<F>(
    rate: u32,
    connections: u32,
    wait: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> OpenLoopOutcome
where
    F: Future<Output = ()> + Send + 'static,
{
    let respond = move || {
        let waited = wait();
        async move {
            waited.await;
            ([(ETAG, "\"tag\"")], format!(r#"{{"chartHash":"{HASH}","status":"unknown"}}"#))
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/chart", get(respond))).await });
    let request = Request::new("/chart".to_owned(), Expected::UnknownChart(HASH));
    let load = OpenLoop {
        address,
        requests: Arc::new(Requests::in_order(vec![request])),
        clients: Clients { first: 0, addresses: 100, abuser_one_in: None },
        rate,
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(1),
        connections,
        may_reject: false,
    };
    load.run().await.unwrap()
}

#[tokio::test]
async fn late_starts_of_a_busy_generator_are_counted() {
    // The server occupies the thread of the generator for 20 ms, in which two more requests are due.
    let busy = || async {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(20) {}
    };
    let outcome = run(100, 8, busy).await;
    assert!(outcome.late > 0, "{outcome:?}");
}

#[tokio::test]
async fn latency_counts_from_the_intended_start() {
    // One connection and 50 ms per response: the queue grows by 30 ms with each request.
    let outcome = run(50, 1, || tokio::time::sleep(Duration::from_millis(50))).await;
    assert!(outcome.accepted.max >= 49 * 30_000, "{outcome:?}");
    assert!(outcome.queued > 40 && outcome.late <= 1, "{outcome:?}");
}
