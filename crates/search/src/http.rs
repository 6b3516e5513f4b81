//! The HTTP client under the SDK: connections that are reused, time-outs, bodies in one piece, and errors that keep
//! their status and `Retry-After`.

use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
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
use rustls::{ClientConfig, RootCertStore};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};

use crate::{ApiKey, NodeConfig, SearchError};

/// How long a connection that nobody uses is kept.
const IDLE: Duration = Duration::from_mins(1);
/// More than any `Retry-After` that is meant seriously.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(1);

/// When the system begins to check a connection over which nothing is received, how often it does, and how many checks
/// without a response close the connection.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(5), 3);
/// How long what was sent may go unacknowledged before the system closes the connection.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

type Connector = HttpsConnector<HttpConnector>;
type Connections = Client<Connector, Full<Bytes>>;

/// Talks to one node. Clones share the connections.
#[derive(Clone)]
pub(crate) struct Transport {
    connector: Connector,
    /// The connections that are open. Replaced as a whole when one of them goes silent.
    connections: Arc<Mutex<Connections>>,
    authorization: Option<HeaderValue>,
    timeout: Duration,
}

/// Why a request has no answer that can be used. It travels through the SDK inside its `Error::Other`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("no connection, or it broke")]
    NoAnswer(#[source] Box<dyn StdError + Send + Sync>),
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    #[error("{status} {code}: {message}")]
    Status { status: u16, code: String, message: String, retry_after: Option<Duration> },
    #[error("an answer that is not what it should be")]
    Unreadable(#[source] serde_json::Error),
}

/// The form of every error of Meilisearch.
#[derive(Deserialize, Default)]
struct ErrorBody {
    #[serde(default)]
    message: String,
    #[serde(default)]
    code: String,
}

impl Transport {
    /// A client of the node that gives up on a request after that time.
    pub(crate) fn new(config: &NodeConfig, timeout: Duration) -> Result<Self, SearchError> {
        let connector = connector(config)?;
        let connections = Arc::new(Mutex::new(connections(connector.clone())));
        let authorization = config.api_key.as_ref().map(authorization).transpose()?;
        Ok(Self { connector, connections, authorization, timeout })
    }

    /// Leaves every connection that is open now: requests that begin after this use new ones. After a timeout: a
    /// connection that went silent without being closed often is not the only one, and the pool hands the others out
    /// one by one, each for a timeout of its own.
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
    ) -> Result<(StatusCode, Option<Duration>, Bytes), Failure> {
        let exchange = async {
            let sent = self.connections().request(request).await;
            let response = sent.map_err(|error| Failure::NoAnswer(error.into()))?;
            let (status, retry_after) = (response.status(), retry_after(&response));
            let body =
                response.into_body().collect().await.map_err(|error| Failure::NoAnswer(error.into()))?;
            Ok((status, retry_after, body.to_bytes()))
        };
        tokio::time::timeout(self.timeout, exchange).await.unwrap_or_else(|_| {
            self.discard_connections();
            Err(Failure::TimedOut(self.timeout))
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
        let (status, retry_after, body) = self.send(request).await.map_err(other)?;
        if status.as_u16() == expected_status {
            let body: &[u8] = if body.is_empty() { b"null" } else { &body };
            return parse(body).map_err(|error| other(Failure::Unreadable(error)));
        }
        let ErrorBody { message, code } = serde_json::from_slice(&body).unwrap_or_default();
        Err(other(Failure::Status { status: status.as_u16(), code, message, retry_after }))
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
        .pool_idle_timeout(IDLE)
        .build(connector)
}

fn connector(config: &NodeConfig) -> Result<Connector, SearchError> {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(config.connect_timeout));
    let (after, interval, retries) = KEEPALIVE;
    tcp.set_keepalive(Some(after));
    tcp.set_keepalive_interval(Some(interval));
    tcp.set_keepalive_retries(Some(retries));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    tcp.enforce_http(false);
    let provider = rustls::crypto::ring::default_provider();
    let builder = HttpsConnectorBuilder::new();
    let builder = if config.url.as_str().starts_with("https:") {
        builder.with_provider_and_native_roots(provider).map_err(|_| {
            SearchError::Configuration("the system has no certificates to check Meilisearch's with")
        })?
    } else {
        // Nobody's certificate will be checked, so none has to be found.
        let tls = ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .map_err(|_| SearchError::Configuration("TLS has no version that is safe"))?;
        builder.with_tls_config(tls.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
    };
    Ok(builder.https_or_http().enable_http1().wrap_connector(tcp))
}

fn authorization(key: &ApiKey) -> Result<HeaderValue, SearchError> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose())).map_err(|_| {
        SearchError::Configuration("the key of Meilisearch holds a character that no header may hold")
    })?;
    value.set_sensitive(true);
    Ok(value)
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

/// The query string begins with its `?`, or is empty.
fn with_query<Query: Serialize>(url: &str, query: &Query) -> Result<String, SdkError> {
    Ok(format!("{url}{}", yaup::to_string(query)?))
}

/// Only seconds: Meilisearch sends no dates.
fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_RETRY_AFTER))
}

/// As text that is checked once, where the parser would check every string in it.
fn parse<Output: DeserializeOwned>(body: &[u8]) -> Result<Output, serde_json::Error> {
    serde_json::from_str(std::str::from_utf8(body).map_err(serde_json::Error::custom)?)
}

fn other(failure: Failure) -> SdkError {
    SdkError::Other(Box::new(failure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_string_is_appended_to_the_route() {
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
    fn a_key_that_no_header_can_carry_is_refused_and_not_shown() {
        let mut config = NodeConfig::new("http://localhost".parse().unwrap(), None);
        config.api_key = Some("hunter2\n".to_owned().into());
        let error = Transport::new(&config, IDLE).unwrap_err();
        assert!(!error.to_string().contains("hunter2"));
        config.api_key = Some("hunter2".to_owned().into());
        assert!(!format!("{:?}", Transport::new(&config, IDLE)).contains("hunter2"));
    }
}
