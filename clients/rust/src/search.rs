//! Searches for chartsets, and what the index has of one chart or chartset.

use std::collections::VecDeque;

use bytes::Bytes;
use chart_index_domain::{ChartsetId, NoteHash};
use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::lookup::path_with;
use crate::types::{ChartPreview, Chartset, ChartsetDetail, SearchFilters};
use crate::{ChartIndex, Error, HashFilter, Include, InvalidResponse};

/// The number of chartsets of a page, unless the filters have another one: the maximum.
const PAGE: &str = "60";
/// The cursor of the first page.
const START: &str = "start";

/// The chartsets of a search: see [`ChartIndex::search`].
#[derive(Debug)]
pub struct Chartsets<T = Chartset> {
    index: ChartIndex,
    /// The first page, without the cursor.
    url: Url,
    items: VecDeque<T>,
    /// The cursor of the next page; `None` after the last one.
    after: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<T> {
    items: VecDeque<T>,
    next_after: Option<String>,
}

impl<T: DeserializeOwned> Chartsets<T> {
    /// The next chartset; `None` after the last one. Requests a page where it is needed.
    ///
    /// # Errors
    /// As those of [`ChartIndex::get`]. A filter has a value that the index refuses.
    pub async fn next(&mut self) -> Result<Option<T>, Error> {
        // A page may be empty although another one follows.
        while self.items.is_empty() {
            let Some(after) = &self.after else { return Ok(None) };
            let mut url = self.url.clone();
            url.query_pairs_mut().append_pair("after", after);
            let page: Page<T> = serde_json::from_slice(&self.index.get_url(url).await?)?;
            if page.next_after == self.after {
                return Err(InvalidResponse::Cursor.into());
            }
            (self.items, self.after) = (page.items, page.next_after);
        }
        Ok(self.items.pop_front())
    }
}

impl ChartIndex {
    /// The chartsets that match the filters, in the order of their `sort`. They are read page by page; none is
    /// repeated or skipped if the catalogue changes meanwhile.
    #[must_use]
    pub fn search(&self, filters: &SearchFilters) -> Chartsets {
        self.search_as(filters)
    }

    /// The same as any type of JSON.
    #[must_use]
    pub fn search_as<T>(&self, filters: &SearchFilters) -> Chartsets<T> {
        let mut url = self.url("/api/chartsets");
        append_filters(&mut url, filters);
        Chartsets { index: self.clone(), url, items: VecDeque::new(), after: Some(START.to_owned()) }
    }

    /// A chartset with its charts.
    ///
    /// # Errors
    /// As those of [`get`](Self::get). The index does not have it: status 404.
    pub async fn chartset(&self, id: ChartsetId, include: &[Include]) -> Result<ChartsetDetail, Error> {
        self.chartset_as(id, include).await
    }

    /// The same as any type of JSON.
    ///
    /// # Errors
    /// As those of [`chartset`](Self::chartset).
    pub async fn chartset_as<T: DeserializeOwned>(
        &self,
        id: ChartsetId,
        include: &[Include],
    ) -> Result<T, Error> {
        self.get(&path_with(&format!("/api/chartsets/{id}"), include)).await
    }

    /// The ROX file of a chart (docs/formats/rox.md).
    ///
    /// # Errors
    /// As those of [`get_bytes`](Self::get_bytes). The index does not have the chart: status 404.
    pub async fn rox(&self, hash: NoteHash) -> Result<Bytes, Error> {
        self.get_bytes(&format!("/api/charts/{hash}/rox")).await
    }

    /// The notes and the timing of a chart (docs/formats/preview.md).
    ///
    /// # Errors
    /// As those of [`get`](Self::get). The index does not have the chart: status 404.
    pub async fn preview(&self, hash: NoteHash) -> Result<ChartPreview, Error> {
        self.get(&format!("/api/charts/{hash}/preview")).await
    }

    /// The newest hash filter, which tells without a request which charts the index does not know; `None` if it
    /// has none. For fewer than about 100 charts a batch lookup alone is less traffic.
    ///
    /// # Errors
    /// As those of [`get_bytes`](Self::get_bytes), or the response is no hash filter of this version.
    pub async fn hash_filter(&self) -> Result<Option<HashFilter>, Error> {
        match self.get_bytes("/api/charts/filter").await {
            Ok(bytes) => Ok(Some(HashFilter::from_bytes(&bytes).map_err(InvalidResponse::from)?)),
            Err(error) if error.is_status(404) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn append_filters(url: &mut Url, filters: &SearchFilters) {
    let Ok(Value::Object(filters)) = serde_json::to_value(filters) else { return };
    let mut pairs = url.query_pairs_mut();
    if !filters.contains_key("perPage") {
        pairs.append_pair("perPage", PAGE);
    }
    for (name, value) in filters {
        let text = match value {
            Value::Null => continue,
            Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(","),
            value => text(&value),
        };
        pairs.append_pair(&name, &text);
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
