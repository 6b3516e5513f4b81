//! Records exchanges with a Meilisearch server, and replays them where there is none.
//!
//! `make record-search` runs the tests of `recorded_exchanges` against a real server, through a proxy that
//! records every request and response. Otherwise the same tests run against the recorded exchanges.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chart_index_search::{FORMAT, NodeConfig};
use chart_index_tests::PrivateMeilisearch;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::TcpListener;

/// A request and its response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Exchange {
    method: String,
    path: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    body: Value,
    pub(crate) response: RecordedResponse,
}

/// The response of a server, with the headers that matter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedResponse {
    pub(crate) status: u16,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

/// The status of a response that is never sent: the connection is closed instead.
pub(crate) const CONNECTION_CLOSED: u16 = 0;

/// Whether this run records exchanges.
pub(crate) fn recording() -> bool {
    std::env::var_os("RECORD_SEARCH").is_some()
}

/// Runs a test: with a new server, which is prepared and then recorded, or with the recorded exchanges.
pub(crate) async fn record_or_replay(
    name: &str,
    prepare: impl AsyncFnOnce(&NodeConfig),
    check: impl AsyncFnOnce(&NodeConfig),
) {
    record_or_replay_with(name, &[], prepare, check).await;
}

/// The same with command-line arguments of the server.
pub(crate) async fn record_or_replay_with(
    name: &str,
    arguments: &[&str],
    prepare: impl AsyncFnOnce(&NodeConfig),
    check: impl AsyncFnOnce(&NodeConfig),
) {
    if !recording() {
        return replay(recorded(name), check).await;
    }
    let server = PrivateMeilisearch::start_with(arguments);
    prepare(&config(&server.url())).await;
    let recorder = Arc::new(Recorder { upstream: server.url(), exchanges: Mutex::default() });
    let url = serve(Arc::clone(&recorder) as Arc<dyn Responder>).await;
    check(&config(&url)).await;
    record(name, &recorder.exchanges.lock().unwrap());
}

/// Runs a test with exchanges, all of which have to be requested, in this order. Does nothing in a run that
/// records exchanges.
pub(crate) async fn replay(exchanges: Vec<Exchange>, check: impl AsyncFnOnce(&NodeConfig)) {
    if recording() {
        return;
    }
    let replayer = Arc::new(Replayer { remaining: Mutex::new(exchanges.into_iter().rev().collect()) });
    let url = serve(Arc::clone(&replayer) as Arc<dyn Responder>).await;
    check(&config(&url)).await;
    let remaining = replayer.remaining.lock().unwrap();
    assert!(remaining.is_empty(), "never requested: {remaining:?}");
}

/// Serves exchanges by method and path, any number of times, and returns the URL. A search takes a while, so
/// that several are in flight at once.
pub(crate) async fn serve_repeatedly(exchanges: Vec<Exchange>) -> String {
    serve(Arc::new(Repeater { exchanges }) as Arc<dyn Responder>).await
}

struct Repeater {
    exchanges: Vec<Exchange>,
}

#[async_trait::async_trait]
impl Responder for Repeater {
    async fn respond(&self, method: String, path: String, _: Value) -> RecordedResponse {
        let found = self.exchanges.iter().find(|next| (&next.method, &next.path) == (&method, &path));
        let exchange = found.unwrap_or_else(|| panic!("{method} {path} is not recorded"));
        if exchange.is_search() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        exchange.response.clone()
    }
}

pub(crate) fn recorded(name: &str) -> Vec<Exchange> {
    serde_json::from_slice(&std::fs::read(path(name)).unwrap()).unwrap()
}

/// Writes exchanges to a file. Of consecutive reads of an unfinished task only the first is recorded.
pub(crate) fn record(name: &str, exchanges: &[Exchange]) {
    let mut exchanges = exchanges.to_vec();
    exchanges.dedup_by(|next, previous| next.path == previous.path && next.reads_unfinished_task());
    let mut json = serde_json::to_string_pretty(&exchanges).unwrap();
    json.push('\n');
    std::fs::write(path(name), json).unwrap();
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(format!("{name}.json"))
}

fn config(url: &str) -> NodeConfig {
    NodeConfig::new(url.parse().unwrap(), None)
}

/// Responds to requests.
#[async_trait::async_trait]
trait Responder: Send + Sync {
    async fn respond(&self, method: String, path: String, body: Value) -> RecordedResponse;
}

/// Forwards requests to a real server and records its responses.
struct Recorder {
    upstream: String,
    exchanges: Mutex<Vec<Exchange>>,
}

#[async_trait::async_trait]
impl Responder for Recorder {
    async fn respond(&self, method: String, path: String, body: Value) -> RecordedResponse {
        let response = send(&self.upstream, &method, &path, &body).await;
        let exchange = Exchange { method, path, body, response: response.clone() };
        self.exchanges.lock().unwrap().push(exchange);
        response
    }
}

/// Sends a request to a real server.
pub(crate) async fn send(server: &str, method: &str, path: &str, body: &Value) -> RecordedResponse {
    let client = chart_index_tests::http_client_builder().build().unwrap();
    let mut request = client.request(method.parse().unwrap(), format!("{server}{path}"));
    if !body.is_null() {
        request = request.header("Content-Type", "application/json").body(body.to_string());
    }
    let response = request.send().await.unwrap();
    let retry_after = response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
    let headers = retry_after.into_iter().map(|value| ("retry-after".to_owned(), value)).collect();
    let status = response.status().as_u16();
    RecordedResponse { status, headers, body: json_or_null(&response.bytes().await.unwrap()) }
}

impl Exchange {
    /// An exchange that did not pass through the recorder.
    pub(crate) fn new(method: &str, path: &str, body: Value, response: RecordedResponse) -> Self {
        Self { method: method.to_owned(), path: path.to_owned(), body, response }
    }

    /// The same request with a response that has only a status.
    pub(crate) fn with_status(&self, status: u16) -> Self {
        let response = RecordedResponse { status, headers: BTreeMap::new(), body: Value::Null };
        Self { response, ..self.clone() }
    }

    /// Whether it reads the experimental features of the node.
    pub(crate) fn reads_features(&self) -> bool {
        self.path == "/experimental-features" && self.method == "GET"
    }

    /// Whether it sets the experimental features of the node.
    pub(crate) fn sets_features(&self) -> bool {
        self.path == "/experimental-features" && self.method == "PATCH"
    }

    pub(crate) fn reads_task(&self) -> bool {
        self.path.starts_with("/tasks/")
    }

    /// Whether it sends documents to the index of chartsets.
    pub(crate) fn sends_documents(&self) -> bool {
        self.method == "POST" && self.path.starts_with(&format!("/indexes/chartsets_v{FORMAT}/documents?"))
    }

    fn reads_unfinished_task(&self) -> bool {
        let status = self.response.body["status"].as_str();
        self.reads_task() && matches!(status, Some("enqueued" | "processing"))
    }

    pub(crate) fn is_search(&self) -> bool {
        self.path == "/multi-search"
    }
}

/// Responds with recorded exchanges.
struct Replayer {
    /// In reverse order.
    remaining: Mutex<Vec<Exchange>>,
}

#[async_trait::async_trait]
impl Responder for Replayer {
    async fn respond(&self, method: String, path: String, body: Value) -> RecordedResponse {
        let next = self.remaining.lock().unwrap().pop();
        let is_next = next
            .as_ref()
            .is_some_and(|next| (&next.method, &next.path, &next.body) == (&method, &path, &body));
        match next {
            Some(next) if is_next => next.response,
            // The test fails with an unexpected error, and its output has the reason.
            next => {
                println!("received {method} {path} {body}\nexpected {next:?}");
                RecordedResponse { status: 599, headers: BTreeMap::new(), body: Value::Null }
            }
        }
    }
}

fn json_or_null(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// Serves on a free port until the runtime of the test ends.
async fn serve(responder: Arc<dyn Responder>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let responder = Arc::clone(&responder);
            let service = service_fn(move |request| handle(Arc::clone(&responder), request));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    url
}

/// Returns an error, which closes the connection, for the status [`CONNECTION_CLOSED`].
async fn handle(
    responder: Arc<dyn Responder>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let method = request.method().to_string();
    let path = request.uri().path_and_query().unwrap().to_string();
    let body = json_or_null(&request.into_body().collect().await.unwrap().to_bytes());
    let recorded = responder.respond(method, path, body).await;
    if recorded.status == CONNECTION_CLOSED {
        return Err(std::io::ErrorKind::ConnectionReset.into());
    }
    let mut response = Response::builder().status(recorded.status);
    for (name, value) in &recorded.headers {
        response = response.header(name, value);
    }
    Ok(response.body(Full::new(recorded.body.to_string().into())).unwrap())
}
