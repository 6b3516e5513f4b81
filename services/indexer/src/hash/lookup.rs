//! What an instance of the index knows of charts, by batch lookups (docs/api.md, "Batch lookup").

use std::cell::Cell;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chart_index_domain::{NoteHash, Variant};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::instance::{Instance, failure, read_body};

/// The maximum number of hashes in a batch lookup.
pub(super) const MAX_HASHES: usize = 1_000;
/// The maximum number of charts in a batch lookup with variants.
const MAX_WITH_VARIANTS: usize = 100;

const PATH: &str = "/api/charts/lookup";
const PATH_WITH_VARIANTS: &str = "/api/charts/lookup?include=variants";
/// The longest response that is read. A batch of known charts is about 1 MB.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// The command fails if an instance asks for a longer pause.
const MAX_PAUSE: Duration = Duration::from_mins(10);

#[derive(Deserialize)]
struct BatchResponse {
    items: Vec<Value>,
}

/// An instance of the index that charts are looked up in.
pub(super) struct Lookup {
    instance: Instance,
    /// The number of charts in a request: fewer than the maximum on a slow link.
    batch: Cell<usize>,
}

impl Lookup {
    /// The instance with this base address.
    pub(super) fn new(base: &Url) -> Result<Self> {
        Ok(Self { instance: Instance::new(base, MAX_PAUSE)?, batch: Cell::new(MAX_HASHES) })
    }

    /// Looks up charts by their hashes, and adds the body of the chart lookup of each to `found`, in their
    /// order. Waits as long as the instance asks for.
    ///
    /// # Errors
    /// The instance is unreachable, or its response is not that of a chart index. What was found before it
    /// stays.
    pub(super) async fn look_up(&self, hashes: &[NoteHash], found: &mut Vec<Value>) -> Result<()> {
        let request = |hashes: &[NoteHash]| (hashes.to_vec(), json!({ "hashes": hashes }));
        self.post_all(PATH, MAX_HASHES, hashes, request, found).await
    }

    /// The same for charts with the charts that have their variants.
    ///
    /// # Errors
    /// As for [`look_up`](Self::look_up).
    pub(super) async fn look_up_variants(
        &self,
        charts: &[(NoteHash, Variant)],
        found: &mut Vec<Value>,
    ) -> Result<()> {
        let request = |charts: &[(NoteHash, Variant)]| {
            let hashes = charts.iter().map(|(hash, _)| *hash).collect();
            let charts: Vec<Value> =
                charts.iter().map(|(hash, variant)| json!({ "hash": hash, "variant": variant })).collect();
            (hashes, json!({ "charts": charts }))
        };
        self.post_all(PATH_WITH_VARIANTS, MAX_WITH_VARIANTS, charts, request, found).await
    }

    /// Posts batches of charts. One that the link is too slow for is halved, and so are those after it.
    async fn post_all<T>(
        &self,
        path: &str,
        max: usize,
        charts: &[T],
        request: impl Fn(&[T]) -> (Vec<NoteHash>, Value),
        found: &mut Vec<Value>,
    ) -> Result<()> {
        let mut rest = charts;
        while !rest.is_empty() {
            let (batch, others) = rest.split_at(rest.len().min(max).min(self.batch.get()));
            let (hashes, body) = request(batch);
            match self.post(path, &hashes, &body).await? {
                Some(items) => {
                    found.extend(items);
                    rest = others;
                }
                None => self.batch.set(batch.len() / 2),
            }
        }
        Ok(())
    }

    /// Posts a batch lookup for these hashes. `None` if it was received too slowly, and can be halved.
    async fn post(&self, path: &str, hashes: &[NoteHash], batch: &Value) -> Result<Option<Vec<Value>>> {
        let request = async {
            let request = self.instance.request(Method::POST, path).header(CONTENT_TYPE, "application/json");
            let response = self.instance.send(request.body(batch.to_string())).await?;
            match response.status() {
                StatusCode::OK => {
                    let body = read_body(response, MAX_BYTES).await?;
                    body.context("the response has more than 16 MiB").map(Some)
                }
                StatusCode::REQUEST_TIMEOUT if hashes.len() > 1 => Ok(None),
                _ => Err(failure(response).await),
            }
        };
        let endpoint = self.instance.url(path);
        let body = request.await.with_context(|| format!("cannot look up at {endpoint}"))?;
        let Some(body) = body else { return Ok(None) };
        let items = parse(hashes, &body);
        items.map(Some).with_context(|| format!("the response of {endpoint} is not that of a chart index"))
    }
}

/// Reads the items of a response, one for each hash.
fn parse(hashes: &[NoteHash], body: &[u8]) -> Result<Vec<Value>> {
    let BatchResponse { items } = serde_json::from_slice(body)?;
    ensure!(items.len() == hashes.len(), "{} items for {} hashes", items.len(), hashes.len());
    for (hash, item) in hashes.iter().zip(&items) {
        let named = item["chartHash"].as_str() == Some(&hash.to_string());
        ensure!(named && item["status"].is_string(), "no item for {hash} in its place");
    }
    Ok(items)
}
