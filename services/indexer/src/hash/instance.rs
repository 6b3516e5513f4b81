//! What an instance of the index knows of charts, by batch lookups (docs/api.md, "Batch lookup").

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use chart_index_domain::NoteHash;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};

/// The maximum number of hashes in a batch lookup.
pub(super) const MAX_HASHES: usize = 1_000;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for a request with its response. A batch of known charts is about 1 MB.
const TIMEOUT: Duration = Duration::from_mins(1);
/// The command fails if an instance asks for a longer pause.
const MAX_PAUSE: Duration = Duration::from_mins(10);
/// How often a batch may be refused, each time after the pause that the instance asked for. Other programs at
/// the same address count against the same limit.
const MAX_REFUSALS: u32 = 10;

/// An instance of the index that charts are looked up in.
pub(super) struct Instance {
    client: Client,
    endpoint: Url,
}

#[derive(Deserialize)]
struct BatchResponse {
    items: Vec<Value>,
}

/// Problem details (RFC 9457).
#[derive(Deserialize, Default)]
struct Problem {
    detail: String,
}

/// How an instance responded to a batch.
enum BatchOutcome {
    Items(Vec<Value>),
    /// The instance refuses the request, with this status, and asks for a pause.
    Refused(StatusCode, Duration),
}

/// The base address of an instance.
///
/// # Errors
/// It is no `http` or `https` URL, or it has a query or a fragment.
pub(crate) fn parse_base(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("the URL of an index begins with http:// or https://".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("the URL of an index has no query and no fragment".to_owned());
    }
    Ok(url)
}

impl Instance {
    /// The instance with this base address.
    pub(super) fn new(base: &Url) -> Result<Self> {
        // An error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("chart-indexer/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            // A redirected POST would become a GET.
            .redirect(Policy::none())
            .build()
            .context("cannot create the HTTP client")?;
        let mut endpoint = base.clone();
        endpoint.set_path(&format!("{}/api/charts/lookup", base.path().trim_end_matches('/')));
        Ok(Self { client, endpoint })
    }

    /// The body of the chart lookup of each hash, in their order, of at most [`MAX_HASHES`]. Waits as long as
    /// the instance asks for.
    ///
    /// # Errors
    /// The instance is unreachable, or its response is not that of a chart index.
    pub(super) async fn look_up(&self, hashes: &[NoteHash]) -> Result<Vec<Value>> {
        if hashes.is_empty() {
            return Ok(Vec::new());
        }
        let body = json!({ "hashes": hashes }).to_string();
        for _ in 0..MAX_REFUSALS {
            match self.request(&body).await.with_context(|| format!("cannot look up at {}", self.endpoint))? {
                BatchOutcome::Items(items) => {
                    check(hashes, &items).with_context(|| self.no_index())?;
                    return Ok(items);
                }
                BatchOutcome::Refused(status, pause) => self.pause(status, pause).await?,
            }
        }
        bail!("{} refused a lookup {MAX_REFUSALS} times", self.endpoint)
    }

    async fn request(&self, body: &str) -> Result<BatchOutcome> {
        let request = self.client.post(self.endpoint.clone()).header(CONTENT_TYPE, "application/json");
        // The address is in the context of the error.
        let response = request.body(body.to_owned()).send().await.map_err(reqwest::Error::without_url)?;
        match (response.status(), retry_after(response.headers())) {
            (StatusCode::OK, _) => {
                let body = response.bytes().await.map_err(reqwest::Error::without_url)?;
                let batch: BatchResponse = serde_json::from_slice(&body).with_context(|| self.no_index())?;
                Ok(BatchOutcome::Items(batch.items))
            }
            (status @ (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE), Some(pause)) => {
                Ok(BatchOutcome::Refused(status, pause))
            }
            _ => bail!("{}", failure(response).await),
        }
    }

    async fn pause(&self, status: StatusCode, pause: Duration) -> Result<()> {
        let seconds = pause.as_secs();
        let host = self.endpoint.host_str().unwrap_or_default();
        ensure!(pause <= MAX_PAUSE, "{host} refuses lookups with {status} for {seconds} s; try again later");
        writeln!(std::io::stderr(), "{host} refuses lookups with {status}: continues in {seconds} s")?;
        tokio::time::sleep(pause).await;
        Ok(())
    }

    fn no_index(&self) -> String {
        format!("the response of {} is not that of a chart index", self.endpoint)
    }
}

/// `Retry-After` in seconds, the form that chart indexes send.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// The status of a response, and where it leads to or what it says about itself.
async fn failure(response: Response) -> String {
    let status = response.status();
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    if let Some(location) = location {
        return format!("{status}: redirected to {location}");
    }
    let problem: Problem =
        response.bytes().await.ok().and_then(|body| serde_json::from_slice(&body).ok()).unwrap_or_default();
    match problem.detail.as_str() {
        "" => status.to_string(),
        detail => format!("{status}: {detail}"),
    }
}

/// Checks that there is an item for each hash.
fn check(hashes: &[NoteHash], items: &[Value]) -> Result<()> {
    ensure!(items.len() == hashes.len(), "{} items for {} hashes", items.len(), hashes.len());
    for (hash, item) in hashes.iter().zip(items) {
        let named = item["chartHash"].as_str() == Some(&hash.to_string());
        ensure!(named && item["status"].is_string(), "no item for {hash} in its place");
    }
    Ok(())
}
