//! The requests of a mirror.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use chart_index_chartfile::MAX_FILE_BYTES;
use chart_index_client::{ChartIndex, Error, read_body};
use chart_index_domain::{ExportFile, ExportManifest, ExportName, Lineage, NoteHash};
use reqwest::header::{CACHE_CONTROL, LOCATION};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};

use super::charts::Refusal;
use super::page::Page;
use crate::import::MAX_MANIFEST_BYTES;
use crate::instance::{TIMEOUT, instance};
use crate::signature::MAX_SIGNATURE_BYTES;

/// The longest page that is read: 4 MiB of records, and at most one chartset more, with three bytes for each of
/// their text (docs/api.md, "Changes").
const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;
#[expect(clippy::cast_possible_truncation, reason = "16 MiB")]
const MAX_ROX_BYTES: usize = MAX_FILE_BYTES as usize;
/// A request that would wait longer fails.
const MAX_WAIT: Duration = Duration::from_hours(24);

/// The index that is mirrored.
pub(super) struct Upstream {
    instance: ChartIndex,
    /// The addresses below which its ROX files may be.
    objects: Vec<Url>,
}

/// What is requested of the change feed.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageRequest {
    /// The sequence after which the page begins.
    pub(super) after: u64,
    /// The database that numbered it, if it is known.
    pub(super) lineage: Option<Lineage>,
    /// The maximum number of changes.
    pub(super) limit: u32,
}

impl Upstream {
    pub(super) fn new(base: &Url, objects: Vec<Url>) -> Result<Self> {
        Ok(Self { instance: instance(base).max_wait(MAX_WAIT).only_when_asked().build()?, objects })
    }

    pub(super) fn host(&self) -> &str {
        self.instance.host()
    }

    /// A page of the change feed; `None` if the change with the sequence `after` was lost, or is of another
    /// lineage. At the end of the feed the instance waits for a change for this time, unless it does not
    /// support that.
    ///
    /// # Errors
    /// The instance is unreachable, or its response is no page.
    pub(super) async fn page(&self, request: PageRequest, wait: Duration) -> Result<Option<Page>> {
        self.read_page(request, wait, |request| request).await
    }

    /// The same, with the changes as they are now.
    ///
    /// # Errors
    /// As those of [`page`](Self::page).
    pub(super) async fn current_page(&self, request: PageRequest) -> Result<Option<Page>> {
        self.read_page(request, Duration::ZERO, without_cache).await
    }

    async fn read_page(
        &self,
        PageRequest { after, lineage, limit }: PageRequest,
        wait: Duration,
        with_headers: fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Option<Page>> {
        let mut path = format!("/api/changes?after={after}&limit={limit}");
        if let Some(lineage) = lineage {
            let _ = write!(path, "&lineage={lineage}");
        }
        if !wait.is_zero() {
            let _ = write!(path, "&wait={}", wait.as_secs());
        }
        let read = async {
            let response = self.instance.send(with_headers(self.request(&path))).await?;
            match response.status() {
                StatusCode::GONE => Ok(None),
                StatusCode::OK => {
                    let body = read_body(response, MAX_PAGE_BYTES).await?;
                    Page::parse(&body, after, limit).map(Some).context("it is no page of changes")
                }
                _ => Err(Error::from_response(response).await.into()),
            }
        };
        read.await.with_context(|| format!("cannot read {}", self.instance.url(&path)))
    }

    /// The ROX file of a chart, or why it cannot be had although the index responds.
    ///
    /// # Errors
    /// The instance is unreachable, or refuses requests.
    pub(super) async fn rox(&self, hash: NoteHash) -> Result<Result<Vec<u8>, Refusal>> {
        let path = format!("/api/charts/{hash}/rox");
        // A cache may have an earlier file, or that there was none.
        let request = without_cache(self.request(&path));
        // Not for 503: it may be only this file that cannot be read.
        let response = match self.instance.send_while(request, &[StatusCode::TOO_MANY_REQUESTS]).await {
            Ok(response) => response,
            // A request that ends without a response may be due to this file.
            Err(Error::Connection(error)) if !error.is_connect() => {
                return Ok(Err(unreadable(hash, Error::Connection(error))));
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", self.instance.url(&path)));
            }
        };
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            let error = Error::from_response(response).await;
            return Err(error).with_context(|| format!("cannot read {}", self.instance.url(&path)));
        }
        let Some(location) = location(&response) else { return Ok(rox_of(hash, response).await) };
        let Some(address) = address_below(&location, &self.objects) else {
            return Ok(Err(Refusal::elsewhere(hash, &location)));
        };
        let request = self.instance.request_url(Method::GET, address).timeout(TIMEOUT);
        match self.instance.send_while(request, &[]).await {
            // What another server says of itself is of no use here.
            Ok(response) if !matches!(response.status(), StatusCode::OK | StatusCode::NOT_FOUND) => {
                Ok(Err(unreadable(hash, anyhow!("{location}: {}", response.status()))))
            }
            Ok(response) => Ok(rox_of(hash, response).await),
            Err(error) => Ok(Err(unreadable(hash, anyhow::Error::new(error).context(location)))),
        }
    }

    /// The name of the newest export, if there is one.
    ///
    /// # Errors
    /// The instance is unreachable, or its response is no redirect to an export.
    pub(super) async fn latest_export(&self) -> Result<Option<ExportName>> {
        const PATH: &str = "/api/exports/latest";
        let read = async {
            let response = self.instance.send(self.request(PATH)).await?;
            match response.status() {
                StatusCode::NOT_FOUND => Ok(None),
                StatusCode::FOUND => export_in_location(&response).map(Some).context("no export in Location"),
                _ => Err(Error::from_response(response).await.into()),
            }
        };
        read.await.with_context(|| format!("cannot read {}", self.instance.url(PATH)))
    }

    /// The manifest of an export, as it is sent.
    ///
    /// # Errors
    /// The instance is unreachable, or does not have this export.
    pub(super) async fn manifest(&self, export: &ExportName) -> Result<Vec<u8>> {
        let file = self.small_file(export, ExportManifest::FILE, MAX_MANIFEST_BYTES).await?;
        file.with_context(|| format!("there is no export {export}"))
    }

    /// The signature of the manifest of an export, if it has one.
    ///
    /// # Errors
    /// The instance is unreachable.
    pub(super) async fn signature(&self, export: &ExportName) -> Result<Option<Vec<u8>>> {
        self.small_file(export, ExportManifest::SIGNATURE_FILE, MAX_SIGNATURE_BYTES).await
    }

    async fn small_file(&self, export: &ExportName, name: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        let path = format!("/api/exports/{export}/{name}");
        let read = async {
            let response = self.instance.send(self.request(&path)).await?;
            match response.status() {
                StatusCode::NOT_FOUND => Ok(None),
                StatusCode::OK => anyhow::Ok(Some(read_body(response, usize::try_from(limit)?).await?)),
                _ => Err(Error::from_response(response).await.into()),
            }
        };
        read.await.with_context(|| format!("cannot read {}", self.instance.url(&path)))
    }

    /// A request for a file of an export.
    pub(super) fn export_file(&self, export: &ExportName, file: ExportFile) -> RequestBuilder {
        self.instance.request(Method::GET, &format!("/api/exports/{export}/{}", file.name()))
    }

    /// Sends a request for a file of an export, and waits if the instance asks for it.
    ///
    /// # Errors
    /// The instance is unreachable.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response> {
        Ok(self.instance.send(request).await?)
    }

    /// A request for a path, whose response must be complete within a minute.
    fn request(&self, path: &str) -> RequestBuilder {
        self.instance.request(Method::GET, path).timeout(TIMEOUT)
    }
}

/// Lets caches ask whether what they have is current.
fn without_cache(request: RequestBuilder) -> RequestBuilder {
    request.header(CACHE_CONTROL, "no-cache")
}

/// Where a response redirects to.
fn location(response: &Response) -> Option<String> {
    let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

/// The address of a file in a public bucket, if it is below one of these addresses. It is read like one of the
/// instance: nothing of it is trusted.
fn address_below(location: &str, objects: &[Url]) -> Option<Url> {
    let address = Url::parse(location).ok()?;
    let is_below = |base: &Url| {
        let path = format!("{}/", base.path().trim_end_matches('/'));
        address.origin() == base.origin() && address.path().starts_with(&path)
    };
    objects.iter().any(is_below).then_some(address)
}

async fn rox_of(hash: NoteHash, response: Response) -> Result<Vec<u8>, Refusal> {
    match response.status() {
        StatusCode::NOT_FOUND => Err(Refusal::missing(hash)),
        StatusCode::OK => read_body(response, MAX_ROX_BYTES).await.map_err(|error| match error {
            Error::TooLong { .. } => {
                Refusal::late(format!("the ROX file of chart {hash} has more than {MAX_FILE_BYTES} bytes"))
            }
            error => unreadable(hash, error),
        }),
        _ => Err(unreadable(hash, Error::from_response(response).await)),
    }
}

fn unreadable(hash: NoteHash, error: impl Into<anyhow::Error>) -> Refusal {
    Refusal::late(format!("the ROX file of chart {hash} cannot be read: {:#}", error.into()))
}

fn export_in_location(response: &Response) -> Option<ExportName> {
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let (folder, file) = location.rsplit_once('/')?;
    let (_, name) = folder.rsplit_once('/')?;
    (file == ExportManifest::FILE).then(|| name.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_below_the_named_addresses_only() {
        let objects = ["https://objects.example/rox", "http://127.0.0.1:9000/"];
        let objects = objects.map(|address| Url::parse(address).unwrap());
        let is_read = |location| address_below(location, &objects).is_some();
        for location in ["https://objects.example/rox/0a/b?x=1", "http://127.0.0.1:9000/a"] {
            assert!(is_read(location), "{location}");
        }
        for location in [
            "https://objects.example/roxes/a",
            "https://objects.example/rox/../a",
            "https://objects.example/rox/%2e%2e/a",
            "https://objects.example:8443/rox/a",
            "http://objects.example/rox/a",
            "https://objects.example.net/rox/a",
            "https://objects.example@127.0.0.1/rox/a",
            "http://127.0.0.1/a",
            "file:///rox/a",
            "/rox/a",
            "",
        ] {
            assert!(!is_read(location), "{location}");
        }
    }
}
