//! What an instance of the index knows of charts, by batch lookups (docs/api.md, "Batch lookup").

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
pub(super) struct Lookup(Instance);

impl Lookup {
    /// The instance with this base address.
    pub(super) fn new(base: &Url) -> Result<Self> {
        Instance::new(base, MAX_PAUSE).map(Self)
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
        self.post(PATH, hashes, &json!({ "hashes": hashes })).await
    }

    /// The body of the lookup of each chart with the charts that have its variant, in their order.
    ///
    /// # Errors
    /// As for [`look_up`](Self::look_up).
    pub(super) async fn look_up_variants(&self, charts: &[(NoteHash, Variant)]) -> Result<Vec<Value>> {
        let mut items = Vec::with_capacity(charts.len());
        for charts in charts.chunks(MAX_WITH_VARIANTS) {
            let hashes: Vec<NoteHash> = charts.iter().map(|(hash, _)| *hash).collect();
            let charts: Vec<Value> =
                charts.iter().map(|(hash, variant)| json!({ "hash": hash, "variant": variant })).collect();
            items.extend(self.post(PATH_WITH_VARIANTS, &hashes, &json!({ "charts": charts })).await?);
        }
        Ok(items)
    }

    /// Posts a batch lookup for these hashes.
    async fn post(&self, path: &str, hashes: &[NoteHash], batch: &Value) -> Result<Vec<Value>> {
        let request = async {
            let request = self.0.request(Method::POST, path).header(CONTENT_TYPE, "application/json");
            let response = self.0.send(request.body(batch.to_string())).await?;
            match response.status() {
                StatusCode::OK => {
                    read_body(response, MAX_BYTES).await?.context("the response has more than 16 MiB")
                }
                _ => Err(failure(response).await),
            }
        };
        let endpoint = self.0.url(path);
        let body = request.await.with_context(|| format!("cannot look up at {endpoint}"))?;
        parse(hashes, &body)
            .with_context(|| format!("the response of {endpoint} is not that of a chart index"))
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
