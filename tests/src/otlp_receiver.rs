//! A receiver of traces, as an OpenTelemetry collector is.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Receives OTLP over HTTP on a loopback address, in a thread with its own runtime, so that a test may wait for
/// a program while it exports. Dropping the value stops it.
#[derive(Debug)]
pub struct OtlpReceiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<ReceivedSpan>>>,
    _stop: oneshot::Sender<()>,
}

/// A span as an exporter sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedSpan {
    /// The name of the operation.
    pub name: String,
    /// Its kind, e.g. `client`.
    pub kind: String,
    /// In hexadecimal.
    pub trace_id: String,
    /// In hexadecimal.
    pub id: String,
    /// The id of its parent; empty for a root span.
    pub parent_id: String,
    /// Values are converted to text.
    pub attributes: BTreeMap<String, String>,
    /// The names of the attributes whose values are integers.
    pub integers: BTreeSet<String>,
}

impl OtlpReceiver {
    /// Starts to listen on a free port.
    pub fn start() -> Self {
        Self::start_with(false)
    }

    /// Starts one that rejects everything by "Partial Success" (OTLP specification).
    pub fn start_rejecting() -> Self {
        Self::start_with(true)
    }

    fn start_with(rejects: bool) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        listener.set_nonblocking(true).expect("a non-blocking listener");
        let received = Arc::<Mutex<Vec<ReceivedSpan>>>::default();
        let (stop, stopped) = oneshot::channel::<()>();
        thread::spawn({
            let received = Arc::clone(&received);
            move || run(listener, &received, rejects, stopped)
        });
        Self { address, received, _stop: stop }
    }

    /// The base URL, for `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The spans that were received so far, in the order in which they arrived.
    pub fn spans(&self) -> Vec<ReceivedSpan> {
        self.received.lock().expect("no thread panicked").clone()
    }
}

fn run(
    listener: std::net::TcpListener,
    received: &Arc<Mutex<Vec<ReceivedSpan>>>,
    rejects: bool,
    stopped: oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener).expect("a listener");
        tokio::select! {
            () = accept(listener, received, rejects) => {}
            _ = stopped => {}
        }
    });
}

async fn accept(listener: TcpListener, received: &Arc<Mutex<Vec<ReceivedSpan>>>, rejects: bool) {
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let received = Arc::clone(received);
        tokio::spawn(async move {
            let service = service_fn(|request| respond(request, &received, rejects));
            // An error ends the connection of an exporter that stopped.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Responds like a collector: 200 with an empty message, or one that rejects all, or 400 to a body that is not
/// a valid message.
async fn respond(
    request: Request<Incoming>,
    received: &Mutex<Vec<ReceivedSpan>>,
    rejects: bool,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes);
    let spans = body.ok().and_then(|body| spans(&path, body));
    let rejected = spans.as_ref().filter(|_| rejects).map(|spans| ExportTracePartialSuccess {
        rejected_spans: i64::try_from(spans.len()).expect("few spans"),
        error_message: "rejected".to_owned(),
    });
    let message = ExportTraceServiceResponse { partial_success: rejected };
    let mut response = Response::new(Full::from(message.encode_to_vec()));
    *response.status_mut() = if spans.is_some() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    received.lock().expect("no thread panicked").extend(spans.unwrap_or_default());
    Ok(response)
}

/// The spans of a request; `None` if it is not valid.
fn spans(path: &str, body: Bytes) -> Option<Vec<ReceivedSpan>> {
    let request = ExportTraceServiceRequest::decode(body).ok().filter(|_| path == "/v1/traces")?;
    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    Some(scopes.flat_map(|scope| scope.spans).map(ReceivedSpan::from).collect())
}

impl From<Span> for ReceivedSpan {
    fn from(span: Span) -> Self {
        let kind = SpanKind::try_from(span.kind).unwrap_or_default().as_str_name();
        Self {
            kind: kind.trim_start_matches("SPAN_KIND_").to_lowercase(),
            trace_id: hex(&span.trace_id),
            id: hex(&span.span_id),
            parent_id: hex(&span.parent_span_id),
            integers: span.attributes.iter().filter(|a| is_integer(a)).map(|a| a.key.clone()).collect(),
            attributes: span.attributes.into_iter().map(attribute).collect(),
            name: span.name,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn is_integer(attribute: &KeyValue) -> bool {
    matches!(attribute.value, Some(AnyValue { value: Some(Value::IntValue(_)) }))
}

fn attribute(KeyValue { key, value, .. }: KeyValue) -> (String, String) {
    let text = match value.and_then(|AnyValue { value }| value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        Some(Value::BoolValue(value)) => value.to_string(),
        other => format!("{other:?}"),
    };
    (key, text)
}
