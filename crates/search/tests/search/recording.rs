//! Exchanges with a Meilisearch server: recorded once, replayed everywhere.
//!
//! `make record-search` runs the tests of the contract against a real server, through a proxy that writes down every
//! request and its answer. Without it the same tests run against what was written down.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chart_index_search::NodeConfig;
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

/// A request, and what a server answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Exchange {
    method: String,
    path: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    body: Value,
    pub(crate) answer: Answer,
}

/// What a server answered, with the headers that matter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

/// The status of an answer that never comes: the connection is closed.
pub(crate) const BROKEN: u16 = 0;

/// Whether exchanges are recorded in this run.
pub(crate) fn recording() -> bool {
    std::env::var_os("RECORD_SEARCH").is_some()
}

/// Runs a part of the contract: against a new server, prepared and then recorded, or against the record.
pub(crate) async fn contract(
    name: &str,
    prepare: impl AsyncFnOnce(&NodeConfig),
    check: impl AsyncFnOnce(&NodeConfig),
) {
    contract_with(name, &[], prepare, check).await;
}

/// The same with a server that is started with those arguments.
pub(crate) async fn contract_with(
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
    let url = serve(Arc::clone(&recorder) as Arc<dyn Answers>).await;
    check(&config(&url)).await;
    record(name, &recorder.exchanges.lock().unwrap());
}

/// Runs a check against exchanges; each has to be asked for, in this order.
pub(crate) async fn replay(exchanges: Vec<Exchange>, check: impl AsyncFnOnce(&NodeConfig)) {
    let replayer = Arc::new(Replayer { left: Mutex::new(exchanges.into_iter().rev().collect()) });
    let url = serve(Arc::clone(&replayer) as Arc<dyn Answers>).await;
    check(&config(&url)).await;
    let left = replayer.left.lock().unwrap();
    assert!(left.is_empty(), "never asked for: {left:?}");
}

/// Answers from exchanges by method and path alone, as often as it is asked. A search takes some time, so that several
/// are in flight at once. Gives the address.
pub(crate) async fn serve_repeatedly(exchanges: Vec<Exchange>) -> String {
    serve(Arc::new(Repeater { exchanges }) as Arc<dyn Answers>).await
}

struct Repeater {
    exchanges: Vec<Exchange>,
}

#[async_trait::async_trait]
impl Answers for Repeater {
    async fn answer(&self, method: String, path: String, _: Value) -> Answer {
        let found = self.exchanges.iter().find(|next| (&next.method, &next.path) == (&method, &path));
        let exchange = found.unwrap_or_else(|| panic!("{method} {path} is not recorded"));
        if exchange.is_search() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        exchange.answer.clone()
    }
}

/// The exchanges of that name.
pub(crate) fn recorded(name: &str) -> Vec<Exchange> {
    serde_json::from_slice(&std::fs::read(path(name)).unwrap()).unwrap()
}

/// Writes exchanges down. Of the looks at a task that is not over yet the first stands for all.
pub(crate) fn record(name: &str, exchanges: &[Exchange]) {
    let mut exchanges = exchanges.to_vec();
    exchanges.dedup_by(|next, kept| next.path == kept.path && next.looks_at_open_task());
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

/// What answers requests.
#[async_trait::async_trait]
trait Answers: Send + Sync {
    async fn answer(&self, method: String, path: String, body: Value) -> Answer;
}

/// Hands requests on to a real server and writes down what it answers.
struct Recorder {
    upstream: String,
    exchanges: Mutex<Vec<Exchange>>,
}

#[async_trait::async_trait]
impl Answers for Recorder {
    async fn answer(&self, method: String, path: String, body: Value) -> Answer {
        let answer = ask(&self.upstream, &method, &path, &body).await;
        let exchange = Exchange { method, path, body, answer: answer.clone() };
        self.exchanges.lock().unwrap().push(exchange);
        answer
    }
}

/// Asks a real server.
pub(crate) async fn ask(server: &str, method: &str, path: &str, body: &Value) -> Answer {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut request = client.request(method.parse().unwrap(), format!("{server}{path}"));
    if !body.is_null() {
        request = request.header("Content-Type", "application/json").body(body.to_string());
    }
    let answer = request.send().await.unwrap();
    let retry_after = answer.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
    let headers = retry_after.into_iter().map(|value| ("retry-after".to_owned(), value)).collect();
    let status = answer.status().as_u16();
    Answer { status, headers, body: json_or_null(&answer.bytes().await.unwrap()) }
}

impl Exchange {
    /// An exchange that was not seen by the recorder.
    pub(crate) fn new(method: &str, path: &str, body: Value, answer: Answer) -> Self {
        Self { method: method.to_owned(), path: path.to_owned(), body, answer }
    }

    /// The same request with a response of that status, without anything else.
    pub(crate) fn answered_by(&self, status: u16) -> Self {
        let answer = Answer { status, headers: BTreeMap::new(), body: Value::Null };
        Self { answer, ..self.clone() }
    }

    /// Whether it asks for the features of the node.
    pub(crate) fn tells_features(&self) -> bool {
        self.path == "/experimental-features" && self.method == "GET"
    }

    /// Whether it switches features of the node.
    pub(crate) fn switches_features(&self) -> bool {
        self.path == "/experimental-features" && self.method == "PATCH"
    }

    /// Whether it asks how a task stands.
    pub(crate) fn is_look_at_task(&self) -> bool {
        self.path.starts_with("/tasks/")
    }

    /// Whether it sends documents to the index of chartsets.
    pub(crate) fn sends_documents(&self) -> bool {
        self.method == "POST" && self.path.starts_with("/indexes/chartsets/documents?")
    }

    fn looks_at_open_task(&self) -> bool {
        let status = self.answer.body["status"].as_str();
        self.path.starts_with("/tasks/") && matches!(status, Some("enqueued" | "processing"))
    }

    /// Whether it is a search.
    pub(crate) fn is_search(&self) -> bool {
        self.path.ends_with("/search")
    }
}

/// Answers with what was written down.
struct Replayer {
    /// The next one last.
    left: Mutex<Vec<Exchange>>,
}

#[async_trait::async_trait]
impl Answers for Replayer {
    async fn answer(&self, method: String, path: String, body: Value) -> Answer {
        let next = self.left.lock().unwrap().pop();
        let asked = next
            .as_ref()
            .is_some_and(|next| (&next.method, &next.path, &next.body) == (&method, &path, &body));
        match next {
            Some(next) if asked => next.answer,
            // The test sees an error that it does not expect, and the reason in its output.
            next => {
                println!("asked for {method} {path} {body}\nwhere {next:?} was next");
                Answer { status: 599, headers: BTreeMap::new(), body: Value::Null }
            }
        }
    }
}

fn json_or_null(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// Serves on a port of its own until the runtime of the test ends.
async fn serve(answers: Arc<dyn Answers>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let answers = Arc::clone(&answers);
            let service = service_fn(move |request| respond(Arc::clone(&answers), request));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    url
}

/// An error, and so a connection that is closed without a response, for an answer of [`BROKEN`].
async fn respond(
    answers: Arc<dyn Answers>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let method = request.method().to_string();
    let path = request.uri().path_and_query().unwrap().to_string();
    let body = json_or_null(&request.into_body().collect().await.unwrap().to_bytes());
    let answer = answers.answer(method, path, body).await;
    if answer.status == BROKEN {
        return Err(std::io::ErrorKind::ConnectionReset.into());
    }
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    Ok(response.body(Full::new(answer.body.to_string().into())).unwrap())
}
