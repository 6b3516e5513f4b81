//! The requests of a mirror.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use chart_index_chartfile::MAX_FILE_BYTES;
use chart_index_domain::{ExportFile, ExportManifest, ExportName, NoteHash};
use reqwest::header::{CACHE_CONTROL, LOCATION};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};

use super::page::Page;
use crate::import::MAX_MANIFEST_BYTES;
use crate::instance::{Instance, failure, read_body};
use crate::signature::MAX_SIGNATURE_BYTES;

/// The longest page that is read: 4 MiB of records, and at most one chartset more, with three bytes for each of
/// their text (docs/api.md, "Changes").
const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;
#[expect(clippy::cast_possible_truncation, reason = "16 MiB")]
const MAX_ROX_BYTES: usize = MAX_FILE_BYTES as usize;
/// A longer pause is an error.
const MAX_PAUSE: Duration = Duration::from_hours(24);

/// The index that is mirrored.
pub(super) struct Upstream(Instance);

/// A ROX file, or why there is none.
pub(super) enum RoxResponse {
    File(Vec<u8>),
    Missing,
    TooLong,
}

impl Upstream {
    pub(super) fn new(base: &Url) -> Result<Self> {
        Instance::new(base, MAX_PAUSE).map(Self)
    }

    pub(super) fn host(&self) -> &str {
        self.0.host()
    }

    /// A page of the change feed; `None` if the change with the sequence `after` was lost. At the end of the
    /// feed the instance waits for a change for this time, unless it does not support that.
    ///
    /// # Errors
    /// The instance is unreachable, or its response is no page.
    pub(super) async fn page(&self, after: u64, limit: u32, wait: Duration) -> Result<Option<Page>> {
        self.read_page(after, limit, wait, |request| request).await
    }

    /// The same, with the changes as they are now.
    ///
    /// # Errors
    /// As those of [`page`](Self::page).
    pub(super) async fn current_page(&self, after: u64, limit: u32) -> Result<Option<Page>> {
        self.read_page(after, limit, Duration::ZERO, without_cache).await
    }

    async fn read_page(
        &self,
        after: u64,
        limit: u32,
        wait: Duration,
        with_headers: fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Option<Page>> {
        let mut path = format!("/api/changes?after={after}&limit={limit}");
        if !wait.is_zero() {
            let _ = write!(path, "&wait={}", wait.as_secs());
        }
        let read = async {
            let response = self.0.send(with_headers(self.0.request(Method::GET, &path))).await?;
            match response.status() {
                StatusCode::GONE => Ok(None),
                StatusCode::OK => {
                    let body = read_body(response, MAX_PAGE_BYTES).await?;
                    let body = body.context("the page has more than 16 MiB")?;
                    Page::parse(&body, after, limit).map(Some).context("it is no page of changes")
                }
                _ => Err(failure(response).await),
            }
        };
        read.await.with_context(|| format!("cannot read {}", self.0.url(&path)))
    }

    /// The ROX file of a chart.
    ///
    /// # Errors
    /// The instance is unreachable, or responds in another way than with a file or that there is none.
    pub(super) async fn rox(&self, hash: NoteHash) -> Result<RoxResponse> {
        let path = format!("/api/charts/{hash}/rox");
        let read = async {
            // A cache may have an earlier file, or that there was none.
            let mut response = self.0.send(without_cache(self.0.request(Method::GET, &path))).await?;
            if let Some(address) = address_elsewhere(&response) {
                response = self.0.send(self.0.request_elsewhere(address)).await?;
            }
            match response.status() {
                StatusCode::NOT_FOUND => Ok(RoxResponse::Missing),
                StatusCode::OK => {
                    let file = read_body(response, MAX_ROX_BYTES).await?;
                    Ok(file.map_or(RoxResponse::TooLong, RoxResponse::File))
                }
                _ => Err(failure(response).await),
            }
        };
        read.await.with_context(|| format!("cannot read {}", self.0.url(&path)))
    }

    /// The name of the newest export, if there is one.
    ///
    /// # Errors
    /// The instance is unreachable, or its response is no redirect to an export.
    pub(super) async fn latest_export(&self) -> Result<Option<ExportName>> {
        const PATH: &str = "/api/exports/latest";
        let read = async {
            let response = self.0.send(self.0.request(Method::GET, PATH)).await?;
            match response.status() {
                StatusCode::NOT_FOUND => Ok(None),
                StatusCode::FOUND => export_in_location(&response).map(Some).context("no export in Location"),
                _ => Err(failure(response).await),
            }
        };
        read.await.with_context(|| format!("cannot read {}", self.0.url(PATH)))
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
            let response = self.0.send(self.0.request(Method::GET, &path)).await?;
            match response.status() {
                StatusCode::NOT_FOUND => Ok(None),
                StatusCode::OK => {
                    let file = read_body(response, usize::try_from(limit)?).await?;
                    file.map(Some).with_context(|| format!("{name} is too long"))
                }
                _ => Err(failure(response).await),
            }
        };
        read.await.with_context(|| format!("cannot read {}", self.0.url(&path)))
    }

    /// A request for a file of an export.
    pub(super) fn export_file(&self, export: &ExportName, file: ExportFile) -> RequestBuilder {
        self.0.download(&format!("/api/exports/{export}/{}", file.name()))
    }

    /// Sends a request for a file of an export, and waits if the instance asks for it.
    ///
    /// # Errors
    /// The instance is unreachable.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response> {
        self.0.send(request).await
    }
}

/// Lets caches ask whether what they have is current.
fn without_cache(request: RequestBuilder) -> RequestBuilder {
    request.header(CACHE_CONTROL, "no-cache")
}

/// The address of a file in a public bucket, which is read like one of the instance: nothing of it is trusted.
fn address_elsewhere(response: &Response) -> Option<Url> {
    let location = response.headers().get(LOCATION).filter(|_| response.status() == StatusCode::FOUND)?;
    let address = Url::parse(location.to_str().ok()?).ok()?;
    matches!(address.scheme(), "http" | "https").then_some(address)
}

fn export_in_location(response: &Response) -> Option<ExportName> {
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let (folder, file) = location.rsplit_once('/')?;
    let (_, name) = folder.rsplit_once('/')?;
    (file == ExportManifest::FILE).then(|| name.parse().ok()).flatten()
}
