//! The HTTP client beneath the SDK, with connection reuse, timeouts, and errors that retain status and
//! `Retry-After`.
//!
//! The client that the SDK brings loses `Retry-After`, and allocates and zeroes 8 MiB for every `POST`. This
//! one is hyper-util's and not reqwest, which takes 30,000 instructions more for a search, 9 % of an uncached
//! list.

use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chart_index_instrumentation::ErrorType;
use futures_util::AsyncReadExt as _;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method as Verb, Request, Response, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use meilisearch_sdk::errors::Error as SdkError;
use meilisearch_sdk::request::{HttpClient, Method};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};

use crate::metrics::NodeOperations;
use crate::{ApiKey, NodeConfig};

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// An idle connection is closed after this time.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// A longer `Retry-After` is cut to this.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);

/// TCP keepalive: the idle time before the first probe, the interval, and the number of probes.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(5), 3);
/// `TCP_USER_TIMEOUT`: sent data may remain unacknowledged for this time.
#[cfg(target_os = "linux")]
const USER_TIMEOUT: Duration = Duration::from_secs(30);

type Connector = HttpsConnector<HttpConnector>;
type Connections = Client<Connector, Full<Bytes>>;

/// Sends requests to one node. Clones share the connections.
#[derive(Clone)]
pub(crate) struct Transport {
    connector: Connector,
    /// The pool of open connections. Replaced as a whole after a timeout.
    connections: Arc<Mutex<Connections>>,
    authorization: Option<HeaderValue>,
    timeout: Duration,
    operations: Arc<NodeOperations>,
}

/// Why a request has no usable response. The SDK passes it on inside its `Error::Other`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransportError {
    #[error("{0}")]
    Configuration(&'static str),
    #[error("the connection failed")]
    Disconnected(#[source] Box<dyn StdError + Send + Sync>),
    #[error("no response within {0:?}")]
    TimedOut(Duration),
    #[error("{status} {code}: {message}")]
    Status { status: u16, code: String, message: String, retry_after: Option<Duration> },
    #[error("the body cannot be parsed")]
    InvalidBody(#[source] serde_json::Error),
}

/// The JSON body of an error response of Meilisearch.
#[derive(Deserialize, Default)]
struct ErrorBody {
    #[serde(default)]
    message: String,
    #[serde(default)]
    code: String,
}

impl Transport {
    /// A client with a timeout for every request.
    pub(crate) fn new(config: &NodeConfig, timeout: Duration) -> Result<Self, TransportError> {
        let connector = connector(config)?;
        let connections = Arc::new(Mutex::new(connections(connector.clone())));
        let authorization = config.api_key.as_ref().map(ApiKey::authorization);
        Ok(Self { connector, connections, authorization, timeout, operations: Arc::default() })
    }

    /// Discards all open connections: requests that start later open new ones. Call it after a timeout: when
    /// one connection went silent without being closed, others often did as well, and each would cost a
    /// timeout.
    pub(crate) fn discard_connections(&self) {
        *self.connections.lock().unwrap_or_else(PoisonError::into_inner) =
            connections(self.connector.clone());
    }

    fn connections(&self) -> Connections {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Option<Duration>, Bytes), TransportError> {
        let exchange = async {
            let sent = self.connections().request(request).await;
            let response = sent.map_err(|error| TransportError::Disconnected(error.into()))?;
            let (status, retry_after) = (response.status(), retry_after(&response));
            let body = response
                .into_body()
                .collect()
                .await
                .map_err(|error| TransportError::Disconnected(error.into()))?;
            Ok((status, retry_after, body.to_bytes()))
        };
        tokio::time::timeout(self.timeout, exchange).await.unwrap_or_else(|_| {
            self.discard_connections();
            Err(TransportError::TimedOut(self.timeout))
        })
    }

    async fn exchange<Output: DeserializeOwned>(
        &self,
        verb: Verb,
        url: String,
        body: Option<(&str, Vec<u8>)>,
        expected_status: u16,
    ) -> Result<Output, SdkError> {
        let mut request = Request::builder()
            .method(verb)
            .uri(url)
            .header(USER_AGENT, concat!("chart-index/", env!("CARGO_PKG_VERSION")));
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let mut bytes = Bytes::new();
        if let Some((content_type, content)) = body {
            request = request.header(CONTENT_TYPE, content_type);
            bytes = content.into();
        }
        let request = request.body(Full::new(bytes)).map_err(|_| SdkError::InvalidRequest)?;
        let operation = self.operations.of(request.method(), request.uri().path());
        let response = operation.observe(self.respond(request, expected_status), error_type).await;
        let body = response.map_err(sdk_error)?;
        let body: &[u8] = if body.is_empty() { b"null" } else { &body };
        parse(body).map_err(|error| sdk_error(TransportError::InvalidBody(error)))
    }

    /// Sends a request and returns the body of a response with the expected status.
    async fn respond(
        &self,
        request: Request<Full<Bytes>>,
        expected_status: u16,
    ) -> Result<Bytes, TransportError> {
        let (status, retry_after, body) = self.send(request).await?;
        if status.as_u16() == expected_status {
            return Ok(body);
        }
        let ErrorBody { message, code } = serde_json::from_slice(&body).unwrap_or_default();
        Err(TransportError::Status { status: status.as_u16(), code, message, retry_after })
    }
}

#[async_trait]
impl HttpClient for Transport {
    async fn request<Query, Body, Output>(
        &self,
        url: &str,
        method: Method<Query, Body>,
        expected_status_code: u16,
    ) -> Result<Output, SdkError>
    where
        Query: Serialize + Send + Sync,
        Body: Serialize + Send + Sync,
        Output: DeserializeOwned + 'static + Send,
    {
        let (verb, url) = (verb(&method), with_query(url, method.query())?);
        let body = method.body().map(serde_json::to_vec).transpose()?;
        let body = body.map(|body| ("application/json", body));
        self.exchange(verb, url, body, expected_status_code).await
    }

    async fn stream_request<
        Query: Serialize + Send + Sync,
        Body: futures_util::AsyncRead + Send + Sync + 'static,
        Output: DeserializeOwned + 'static,
    >(
        &self,
        url: &str,
        method: Method<Query, Body>,
        content_type: &str,
        expected_status_code: u16,
    ) -> Result<Output, SdkError> {
        let (verb, url) = (verb(&method), with_query(url, method.query())?);
        let mut body = None;
        if let Some(stream) = method.into_body() {
            let mut content = Vec::new();
            let mut stream = std::pin::pin!(stream);
            stream.read_to_end(&mut content).await.map_err(|error| SdkError::Other(error.into()))?;
            body = Some((content_type, content));
        }
        self.exchange(verb, url, body, expected_status_code).await
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

fn connections(connector: Connector) -> Connections {
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .build(connector)
}

fn connector(config: &NodeConfig) -> Result<Connector, TransportError> {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let (after, interval, retries) = KEEPALIVE;
    tcp.set_keepalive(Some(after));
    tcp.set_keepalive_interval(Some(interval));
    tcp.set_keepalive_retries(Some(retries));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(USER_TIMEOUT));
    tcp.enforce_http(false);
    let provider = rustls::crypto::ring::default_provider();
    let builder = HttpsConnectorBuilder::new();
    let builder = if config.url.as_str().starts_with("https:") {
        builder.with_provider_and_native_roots(provider).map_err(|_| {
            TransportError::Configuration("the system has no root certificates to verify Meilisearch with")
        })?
    } else {
        builder.with_tls_config(tls_without_roots(provider)?)
    };
    Ok(builder.https_or_http().enable_http1().wrap_connector(tcp))
}

/// The TLS configuration of plain HTTP: no certificate is verified, so that no root certificates have to be
/// installed.
fn tls_without_roots(provider: CryptoProvider) -> Result<ClientConfig, TransportError> {
    let tls = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .map_err(|_| TransportError::Configuration("no safe TLS version is supported"))?;
    Ok(tls.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

fn verb<Q, B>(method: &Method<Q, B>) -> Verb {
    match method {
        Method::Get { .. } => Verb::GET,
        Method::Post { .. } => Verb::POST,
        Method::Patch { .. } => Verb::PATCH,
        Method::Put { .. } => Verb::PUT,
        Method::Delete { .. } => Verb::DELETE,
    }
}

/// Appends the query string, if there is one.
fn with_query<Query: Serialize>(url: &str, query: &Query) -> Result<String, SdkError> {
    Ok(format!("{url}{}", yaup::to_string(query)?))
}

/// `Retry-After` in seconds. Meilisearch sends no dates.
fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

/// Checks once that the body is UTF-8, where `from_slice` would check every string in it.
fn parse<Output: DeserializeOwned>(body: &[u8]) -> Result<Output, serde_json::Error> {
    serde_json::from_str(std::str::from_utf8(body).map_err(serde_json::Error::custom)?)
}

/// How a request failed, for its metrics. A busy node is unavailable.
const fn error_type(error: &TransportError) -> ErrorType {
    match error {
        TransportError::TimedOut(_) => ErrorType::Timeout,
        TransportError::Disconnected(_) | TransportError::Status { status: 429 | 502 | 503 | 504, .. } => {
            ErrorType::Unavailable
        }
        TransportError::Configuration(_) | TransportError::Status { .. } | TransportError::InvalidBody(_) => {
            ErrorType::Error
        }
    }
}

fn sdk_error(error: TransportError) -> SdkError {
    SdkError::Other(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_string_is_appended_to_the_url() {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Query {
            index_uids: Vec<&'static str>,
            limit: Option<u32>,
        }
        let query = Query { index_uids: vec!["a b", "c"], limit: Some(3) };
        let url = with_query("http://a/tasks", &query).unwrap();
        assert_eq!(url, "http://a/tasks?indexUids=a+b,c&limit=3");
        assert_eq!(with_query("http://a/tasks", &()).unwrap(), "http://a/tasks");
    }

    #[test]
    fn debug_does_not_print_the_key() {
        let config = NodeConfig::new("http://localhost".parse().unwrap(), "hunter2".parse().ok());
        let transport = Transport::new(&config, IDLE_TIMEOUT).unwrap();
        assert!(transport.authorization.is_some());
        assert!(!format!("{transport:?}").contains("hunter2"));
    }
}
