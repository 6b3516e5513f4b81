//! HTTP requests to another instance of the index.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chart_index_telemetry::print;
use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Method, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use tracing::Level;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for a request with its response, and for the next bytes of a download.
const TIMEOUT: Duration = Duration::from_mins(1);
/// How often a request may be refused, each time after the pause that the instance asked for. Other programs at
/// the same address count against the same limit.
const MAX_REFUSALS: u32 = 10;
/// The longest problem details that are read.
const MAX_PROBLEM_BYTES: usize = 64 * 1024;

/// An instance of the index.
#[derive(Debug)]
pub(crate) struct Instance {
    client: Client,
    base: Url,
    /// A request fails if the instance asks for a longer pause.
    max_pause: Duration,
}

/// Problem details (RFC 9457).
#[derive(Deserialize, Default)]
struct Problem {
    detail: String,
}

/// The base address of an instance, or of its objects.
///
/// # Errors
/// It is no `http` or `https` URL, or it has a query or a fragment.
pub(crate) fn parse_base(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it must begin with http:// or https://".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it must have no query and no fragment".to_owned());
    }
    Ok(url)
}

impl Instance {
    /// The instance with this base address.
    pub(crate) fn new(base: &Url, max_pause: Duration) -> Result<Self> {
        let client = http_client(Client::builder().read_timeout(TIMEOUT))?;
        Ok(Self { client, base: base.clone(), max_pause })
    }

    /// Its host, for messages.
    pub(crate) fn host(&self) -> &str {
        self.base.host_str().unwrap_or_default()
    }

    /// The address of a path such as `/api/changes`, which may have a query.
    pub(crate) fn url(&self, path: &str) -> Url {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let mut url = self.base.clone();
        url.set_query(query);
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url
    }

    /// A request for a path, whose response must be complete within a minute.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path)).timeout(TIMEOUT)
    }

    /// A request for a file that the instance redirects to, whose response must be complete within a minute.
    pub(crate) fn request_elsewhere(&self, url: Url) -> RequestBuilder {
        self.client.get(url).timeout(TIMEOUT)
    }

    /// A request for a file of any size.
    pub(crate) fn download(&self, path: &str) -> RequestBuilder {
        self.client.get(self.url(path))
    }

    /// Sends a request, again and again while the instance refuses it and asks for a pause, and returns the
    /// last refusal after [`MAX_REFUSALS`] pauses.
    ///
    /// # Errors
    /// The instance is unreachable, or asks for a longer pause than the longest one.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response> {
        self.send_again(request, &[StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE]).await
    }

    /// The same, for these statuses only.
    ///
    /// # Errors
    /// As those of [`send`](Self::send).
    pub(crate) async fn send_again(
        &self,
        request: RequestBuilder,
        statuses: &[StatusCode],
    ) -> Result<Response> {
        let request = request.build()?;
        let mut refusals = 0;
        loop {
            let attempt = request.try_clone().context("a request with a stream cannot be repeated")?;
            // The callers name the address.
            let response = self.client.execute(attempt).await.map_err(reqwest::Error::without_url)?;
            match (response.status(), retry_after(response.headers())) {
                (status, Some(pause)) if refusals < MAX_REFUSALS && statuses.contains(&status) => {
                    self.pause(status, pause).await?;
                }
                _ => return Ok(response),
            }
            refusals += 1;
        }
    }

    async fn pause(&self, status: StatusCode, pause: Duration) -> Result<()> {
        let (host, seconds) = (self.host(), pause.as_secs());
        ensure!(
            pause <= self.max_pause,
            "{host} refuses requests with {status} for {seconds} s; try again later"
        );
        print(Level::INFO, format_args!("{host} refuses requests with {status}: continues in {seconds} s"));
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

/// An HTTP client of this program, which follows no redirects.
///
/// # Errors
/// The client cannot be created.
pub(crate) fn http_client(builder: ClientBuilder) -> Result<Client> {
    // An error means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = builder.user_agent(concat!("chart-indexer/", env!("CARGO_PKG_VERSION")));
    // A redirected POST would become a GET.
    let builder = builder.connect_timeout(CONNECT_TIMEOUT).redirect(Policy::none());
    builder.http1_only().build().context("cannot create the HTTP client")
}

/// `Retry-After` in seconds, the form that chart indexes send.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Reads a body; `None` if it is longer than `limit` bytes.
///
/// # Errors
/// The connection was lost.
pub(crate) async fn read_body(mut response: Response, limit: usize) -> Result<Option<Vec<u8>>> {
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Ok(None);
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(reqwest::Error::without_url)? {
        if body.len() + chunk.len() > limit {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// The status of a response, and where it leads to or what it says about itself.
pub(crate) async fn failure(response: Response) -> anyhow::Error {
    let status = response.status();
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    if let Some(location) = location {
        return anyhow::anyhow!("{status}: redirected to {location}");
    }
    let body = read_body(response, MAX_PROBLEM_BYTES).await.ok().flatten().unwrap_or_default();
    let problem: Problem = serde_json::from_slice(&body).unwrap_or_default();
    match problem.detail.as_str() {
        "" => anyhow::anyhow!("{status}"),
        detail => anyhow::anyhow!("{status}: {detail}"),
    }
}
