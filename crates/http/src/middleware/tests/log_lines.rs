//! The log lines of requests.

use std::io;
use std::sync::{Mutex, PoisonError};

use serde_json::json;
use tracing::level_filters::LevelFilter;

use super::*;

/// Collects what is logged.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output {
    /// The lines of this crate, which are removed.
    fn take(&self) -> Vec<Value> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        let lines = String::from_utf8(bytes).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["target"].as_str().unwrap().starts_with("chart_index_http")).collect()
    }
}

/// Sends these requests and returns the log lines of this crate.
async fn log(level: LevelFilter, sampler: Sampler, requests: &[(&str, &str)]) -> Vec<Value> {
    let output = Output::default();
    let writer = output.clone();
    let subscriber =
        tracing_subscriber::fmt().json().with_max_level(level).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let levels = ["ERROR", "WARN", "DEBUG"];
    let levels = if level >= LevelFilter::DEBUG { &levels[..] } else { &levels[..2] };
    wait_until_recorded(async || {
        send_all(Sampler::OFF, &[("GET", "/panic"), ("GET", "/unavailable")]).await;
        let lines = output.take();
        levels.iter().all(|level| lines.iter().any(|line| line["level"] == *level))
    })
    .await;
    send_all(sampler, requests).await;
    output.take()
}

async fn send_all(sampler: Sampler, requests: &[(&str, &str)]) {
    let routes = routes(Arc::default(), Arc::default());
    let app = PublicApi::new(routes, rate_limiter(240, PEER), &config(8), sampler).into_router();
    for (method, path) in requests {
        let headers = [("x-request-id", "one"), ("host", "secret-host"), ("user-agent", "secret-agent")];
        let request = Request::builder().method(*method).uri(*path);
        send_exactly(&app, request, &headers).await;
    }
}

#[tokio::test(start_paused = true)]
async fn server_errors_are_logged_once_a_second_and_type() {
    let requests: Vec<_> =
        ["/unavailable?q=secret", "/panic", "/endless", "/overloaded"].map(|path| ("GET", path)).repeat(3);
    let lines = log(LevelFilter::INFO, Sampler::OFF, &requests).await;
    let line = |route: &str, status: u16, error_type: &str, error: &str| {
        json!({
            "message": "request failed", "request_id": "one", "method": "GET", "route": route,
            "status": status, "error.type": error_type, "error": error, "suppressed": 0,
        })
    };
    let logged: Vec<_> =
        lines.iter().map(|line| (line["level"].as_str().unwrap(), &line["fields"])).collect();
    assert_eq!(
        logged,
        [
            ("WARN", &line("/unavailable", 503, "unavailable", "unavailable: secret of the store")),
            ("ERROR", &line("/panic", 500, "internal", "internal error: handler panicked")),
            ("WARN", &line("/endless", 503, "deadline-exceeded", "deadline exceeded")),
            (
                "WARN",
                &line("/overloaded", 503, "overloaded", "overloaded: too many fills or searches in flight")
            ),
        ]
    );
}

#[tokio::test]
async fn client_errors_are_not_logged() {
    let requests = [("GET", "/nothing"), ("POST", "/large/a"), ("GET", "/large/a")];
    let lines = log(LevelFilter::INFO, Sampler::OFF, &requests).await;
    assert!(lines.is_empty(), "{lines:?}");
}

#[tokio::test]
async fn debug_lines_have_neither_path_nor_host() {
    let requests =
        [("GET", "/large/secret-name?q=secret"), ("PURGE", "/secret-path"), ("GET", "/secret-path")];
    let lines = log(LevelFilter::DEBUG, Sampler::OFF, &requests).await;
    let handled: Vec<_> = lines
        .iter()
        .map(|line| {
            assert!(!line.to_string().contains("secret"), "{line}");
            let fields = &line["fields"];
            assert_eq!(
                (&fields["message"], &fields["request_id"]),
                (&"request handled".into(), &"one".into())
            );
            assert!(fields["latency_ms"].as_f64().unwrap() >= 0.0);
            (
                fields["method"].clone(),
                fields["route"].clone(),
                fields["status"].clone(),
                fields["error.type"].clone(),
            )
        })
        .collect();
    assert_eq!(
        handled,
        [
            (json!("GET"), json!("/large/{name}"), json!(200), Value::Null),
            (json!("_OTHER"), Value::Null, json!(404), json!("not-found")),
            (json!("GET"), Value::Null, json!(404), json!("not-found")),
        ]
    );
}

/// The log adds the ids of the span that is current.
#[tokio::test]
async fn lines_of_a_sampled_request_are_in_its_span() {
    for (sampler, span) in [(Sampler::new(1.0).unwrap(), json!("request")), (Sampler::OFF, Value::Null)] {
        let lines = log(LevelFilter::DEBUG, sampler, &[("GET", "/unavailable")]).await;
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines.iter().all(|line| line["span"]["name"] == span), "{lines:?}");
    }
}
