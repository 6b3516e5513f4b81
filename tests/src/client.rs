//! An HTTP client that returns responses unchanged: it follows no redirects and decodes nothing.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame};
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};

/// A builder of HTTP clients that use neither a proxy nor TLS.
///
/// The HTTP client of the telemetry turns TLS on, without a provider of cryptography: then no client is built
/// unless the process has one. A client without certificates does not read those of the system, which takes as
/// long as many requests.
pub fn http_client_builder() -> reqwest::ClientBuilder {
    // An error means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Shorter than HEADER_READ_TIMEOUT_MS: a server may close an idle connection just when a request is sent.
    let idle = Duration::from_secs(5);
    reqwest::Client::builder().no_proxy().tls_certs_only([]).pool_idle_timeout(idle)
}

/// Sends requests to one service, over connections that stay open.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
}

/// A response whose body was read to its end.
#[derive(Debug, Clone)]
pub struct Response {
    /// The HTTP status.
    pub status: StatusCode,
    /// The headers, repeated ones included.
    pub headers: HeaderMap,
    /// The body as it was sent, after any content encoding.
    pub body: Vec<u8>,
}

impl Client {
    /// A client of the service at this address.
    pub fn new(address: SocketAddr) -> Self {
        Self::build(address, None)
    }

    /// A client that connects from this address of the machine.
    pub fn with_local_address(address: SocketAddr, local: Ipv4Addr) -> Self {
        Self::build(address, Some(local.into()))
    }

    fn build(address: SocketAddr, local: Option<IpAddr>) -> Self {
        let builder = http_client_builder().redirect(reqwest::redirect::Policy::none()).local_address(local);
        let http = builder.build().expect("an HTTP client");
        Self { http, base: format!("http://{address}") }
    }

    /// `GET path`, which may have a query string.
    pub async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path, &[]).await
    }

    /// `GET path` with headers.
    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        self.request(Method::GET, path, headers).await
    }

    /// Sends a request without a body.
    pub async fn request(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Response {
        self.try_request(method, path, headers).await.expect("the service responds")
    }

    /// Sends a request without a body; an error if there is no complete response.
    pub async fn try_request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Response, reqwest::Error> {
        self.try_send(method, path, headers, None).await
    }

    /// Sends a request with a body.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> Response {
        let body = body.into();
        // Without one there is no `Content-Length` either.
        let body = (!body.is_empty()).then(|| body.into());
        self.try_send(method, path, headers, body).await.expect("the service responds")
    }

    /// `POST /api/charts/lookup`, with a query string or none.
    pub async fn look_up(&self, query: &str, body: &serde_json::Value) -> Response {
        let headers = [("content-type", "application/json")];
        self.send(Method::POST, &format!("/api/charts/lookup{query}"), &headers, body.to_string()).await
    }

    /// The metrics of a private listener.
    pub async fn metrics(&self) -> String {
        String::from_utf8(self.get("/metrics").await.body).expect("UTF-8")
    }

    /// The value of a metric with its labels, e.g. `hits_total{kind="a"}`.
    pub async fn metric(&self, metric: &str) -> Option<f64> {
        let metrics = self.metrics().await;
        metrics.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' ')?.parse().ok())
    }

    /// Sends a request with a body that never ends.
    pub async fn send_endless(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Response {
        let body = reqwest::Body::wrap(EndlessBody);
        self.try_send(method, path, headers, Some(body)).await.expect("the service responds")
    }

    /// Sends a request with a body; an error if there is no complete response.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<reqwest::Body>,
    ) -> Result<Response, reqwest::Error> {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if let Some(body) = body {
            request = request.body(body);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await?;
        Ok(Response {
            status: response.status(),
            headers: response.headers().clone(),
            body: response.bytes().await?.to_vec(),
        })
    }
}

/// A body of which no byte is ever sent.
struct EndlessBody;

impl Body for EndlessBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

impl Response {
    /// The value of a header, or an empty string.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a readable header"))
    }

    /// Parses the body; panics if it is not JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }
}

/// Paths of every kind for these charts and chartsets: known and unknown charts, ROX files, lists and details.
/// The status of each response is 200.
pub fn paths_of_all_kinds(hashes: &[String], chartsets: &[String]) -> Vec<String> {
    let known = hashes.iter().flat_map(|hash| {
        [format!("/api/charts/{hash}"), format!("/api/charts/{hash}/rox"), format!("/api/charts/{hash}")]
    });
    let unknown = (0..hashes.len()).map(|number| format!("/api/charts/{number:064}"));
    let lists = (0..hashes.len()).map(|number| format!("/api/chartsets?lengthMax={}&perPage=5", 60 + number));
    let details = chartsets.iter().map(|id| format!("/api/chartsets/{id}"));
    known.chain(unknown).chain(lists).chain(details).collect()
}
