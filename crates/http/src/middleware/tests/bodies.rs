//! Requests with a body.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::routing::post;
use futures_util::stream;
use tokio::time::{Instant, sleep};

use super::*;
use crate::JsonRequest;

/// A service that allows one request in flight, and how many requests with a body it has handled. The handler
/// takes as many seconds as the body says.
fn app() -> (Router, Arc<AtomicUsize>) {
    let handled = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&handled);
    let wait = async move |JsonRequest(seconds): JsonRequest<u64>| {
        counter.fetch_add(1, Ordering::SeqCst);
        sleep(Duration::from_secs(seconds)).await;
    };
    let routes = Routes::new().route(Group::Lookup, "/get", get(async || "read")).post_route(
        Group::Bulk,
        "/post",
        post(wait),
    );
    (PublicApi::new(routes, rate_limiter(240, ""), &config(1), Sampler::OFF).into_router(), handled)
}

async fn send_body(app: &Router, body: Body) -> StatusCode {
    send_typed(app, "application/json", body).await.status()
}

async fn send_typed(app: &Router, content_type: &str, body: Body) -> axum::response::Response {
    let request = Request::post("/post").header("host", "test").header("content-type", content_type);
    app.clone().oneshot(request.body(body).unwrap()).await.unwrap()
}

/// A body that is complete when `end` completes.
fn body_until(end: impl Future<Output = Result<&'static str, Infallible>> + Send + 'static) -> Body {
    Body::from_stream(stream::once(end))
}

#[tokio::test]
async fn bodies_are_received_before_requests_are_in_flight() {
    let (app, handled) = app();
    let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let body = {
        let (entered, release) = (Arc::clone(&entered), Arc::clone(&release));
        body_until(async move {
            entered.notify_one();
            release.notified().await;
            Ok("0")
        })
    };
    let waiting = tokio::spawn({
        let app = app.clone();
        async move { send_body(&app, body).await }
    });
    entered.notified().await;
    assert_eq!(send(&app, "GET", "/get", &[]).await.status, 200);
    assert_eq!(send_body(&app, "0".into()).await, 503, "as many bodies as requests in flight");
    assert_eq!(handled.load(Ordering::SeqCst), 0);
    release.notify_one();
    assert_eq!(waiting.await.unwrap(), 200);
    assert_eq!(send_body(&app, "0".into()).await, 200);
    assert_eq!(handled.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn request_of_a_client_that_disconnects_is_not_handled() {
    let (app, handled) = app();
    let segments = [Ok("0"), Err("the client has disconnected")];
    assert_eq!(send_body(&app, Body::from_stream(stream::iter(segments))).await, 400);
    assert_eq!(handled.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn deadline_begins_after_the_body() {
    let (app, _) = app();
    let half = Duration::from_millis(500);
    for (seconds, status, duration) in [("4", 200, Duration::from_secs(4)), ("6", 503, DEADLINE)] {
        let started = Instant::now();
        let body = body_until(async move {
            sleep(half).await;
            Ok(seconds)
        });
        assert_eq!(send_body(&app, body).await, status);
        let elapsed = started.elapsed();
        assert_eq!(elapsed.as_secs(), duration.as_secs(), "{elapsed:?} with half a second for the body");
    }
}

#[tokio::test(start_paused = true)]
async fn connection_is_closed_after_an_unread_body() {
    let (app, _) = app();
    let endless = body_until(std::future::pending());
    for (content_type, body, status, closes) in [
        ("application/json", "0".into(), 200, false),
        ("application/json", "x".into(), 400, false),
        ("application/json", endless, 408, true),
        ("application/json", " ".repeat(1 << 18).into(), 413, true),
        ("text/plain", "0".into(), 415, true),
    ] {
        let response = send_typed(&app, content_type, body).await;
        let connection = response.headers().get("connection").map(|value| value.to_str().unwrap());
        assert_eq!((response.status().as_u16(), connection), (status, closes.then_some("close")));
    }
}
