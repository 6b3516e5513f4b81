//! Lookups of charts, one by one and in batches (docs/api.md, "Batch lookup").

use std::sync::atomic::Ordering;

use chart_index_domain::{FileMd5, NoteHash, Variant};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE};
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::body::read_decoded;
use crate::http::MAX_CHARTS;
use crate::types::{BatchLookupItem, ChartLookup};
use crate::{ChartIndex, Error, InvalidResponse};

/// The maximum number of charts with one of the fields that are lists of charts or chartsets, and with both.
const MAX_WITH_LIST: usize = 100;
const MAX_WITH_BOTH: usize = 25;

/// What identifies a chart in a batch lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ChartKey {
    /// Its note hash, with the variant of its notes, for [`Include::Variants`].
    Hash {
        /// The note hash.
        hash: NoteHash,
        /// The variant of its notes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variant: Option<Variant>,
    },
    /// The MD5 digest of its `.osu` or `.qua` file.
    Md5 {
        /// The digest.
        md5: FileMd5,
    },
    /// Its id in the first game.
    AlphaBeatmapId {
        /// The id.
        #[serde(rename = "alphaBeatmapId")]
        alpha_beatmap_id: u64,
    },
}

impl From<NoteHash> for ChartKey {
    fn from(hash: NoteHash) -> Self {
        Self::Hash { hash, variant: None }
    }
}

impl From<FileMd5> for ChartKey {
    fn from(md5: FileMd5) -> Self {
        Self::Md5 { md5 }
    }
}

/// A field that a response has only on request (docs/api.md, "Extension fields").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Include {
    /// Charts with the same variant: converted copies.
    Variants,
    /// How hard a chart is.
    Rating,
    /// Of what kind it is.
    Patterns,
    /// The chartsets with the chart.
    Chartsets,
    /// The addresses from which it can be downloaded.
    Links,
    /// When a chartset last changed; of chartsets only.
    Updated,
}

impl Include {
    const fn name(self) -> &'static str {
        match self {
            Self::Variants => "variants",
            Self::Rating => "rating",
            Self::Patterns => "patterns",
            Self::Chartsets => "chartsets",
            Self::Links => "links",
            Self::Updated => "updated",
        }
    }
}

/// A path with the parameter `include`.
pub(crate) fn path_with(path: &str, include: &[Include]) -> String {
    if include.is_empty() {
        return path.to_owned();
    }
    let names: Vec<&str> = include.iter().map(|field| field.name()).collect();
    format!("{path}?include={}", names.join(","))
}

/// What every item has.
#[derive(Deserialize)]
struct Item {
    #[serde(rename = "chartHash")]
    chart_hash: Option<NoteHash>,
    #[serde(rename = "status")]
    _status: String,
}

#[derive(Deserialize)]
struct Batch {
    items: Vec<Box<RawValue>>,
}

impl ChartIndex {
    /// Looks up a chart. An unknown chart is no error.
    ///
    /// # Errors
    /// As those of [`get`](Self::get).
    pub async fn lookup(&self, hash: NoteHash, include: &[Include]) -> Result<ChartLookup, Error> {
        self.lookup_as(hash, include).await
    }

    /// The same as any type of JSON.
    ///
    /// # Errors
    /// As those of [`get`](Self::get).
    pub async fn lookup_as<T: DeserializeOwned>(
        &self,
        hash: NoteHash,
        include: &[Include],
    ) -> Result<T, Error> {
        self.get(&path_with(&format!("/api/charts/{hash}"), include)).await
    }

    /// Looks up any number of charts, and returns an item for each, in their order. Sends batches of up to
    /// 1,000 charts, and smaller ones after one that the link was too slow for.
    ///
    /// # Errors
    /// The index is unreachable, refuses a request, or its response is not that of a chart index.
    pub async fn lookup_many<K: Copy + Into<ChartKey>>(
        &self,
        charts: &[K],
        include: &[Include],
    ) -> Result<Vec<BatchLookupItem>, Error> {
        let mut found = Vec::with_capacity(charts.len());
        self.lookup_into(charts, include, &mut found).await?;
        Ok(found)
    }

    /// The same as any type of JSON. What was found before an error stays in `found`.
    ///
    /// # Errors
    /// As those of [`lookup_many`](Self::lookup_many).
    pub async fn lookup_into<K: Copy + Into<ChartKey>, T: DeserializeOwned>(
        &self,
        charts: &[K],
        include: &[Include],
        found: &mut Vec<T>,
    ) -> Result<(), Error> {
        let path = path_with("/api/charts/lookup", include);
        let mut rest = charts;
        while !rest.is_empty() {
            let max = self.0.batch.load(Ordering::Relaxed).min(max_charts(include));
            let (batch, others) = rest.split_at(rest.len().min(max));
            let keys: Vec<ChartKey> = batch.iter().map(|key| wanted((*key).into(), include)).collect();
            if let Some(items) = self.post_batch(&path, &keys).await? {
                for item in items {
                    found.push(serde_json::from_str(item.get())?);
                }
                rest = others;
            } else {
                self.0.batch.fetch_min(batch.len() / 2, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Posts a batch. `None` if it was received too slowly, and can be halved.
    async fn post_batch(&self, path: &str, charts: &[ChartKey]) -> Result<Option<Vec<Box<RawValue>>>, Error> {
        let request = self.request(Method::POST, path).header(CONTENT_TYPE, "application/json");
        let request = request.header(ACCEPT_ENCODING, "gzip").body(body(charts));
        let response = self.send(request).await?;
        match response.status() {
            StatusCode::OK => parse(charts, &read_decoded(response).await?).map(Some),
            StatusCode::REQUEST_TIMEOUT if charts.len() > 1 => Ok(None),
            _ => Err(Error::from_response(response).await),
        }
    }
}

fn max_charts(include: &[Include]) -> usize {
    let lists = [Include::Variants, Include::Chartsets].map(|field| include.contains(&field));
    match lists {
        [false, false] => MAX_CHARTS,
        [true, true] => MAX_WITH_BOTH,
        _ => MAX_WITH_LIST,
    }
}

/// The key without a variant where that has no use: a batch of the maximum size would be too long with them.
fn wanted(chart: ChartKey, include: &[Include]) -> ChartKey {
    match chart {
        ChartKey::Hash { hash, .. } if !include.contains(&Include::Variants) => hash.into(),
        _ => chart,
    }
}

/// The body of a batch. That of hashes is shorter than that of other keys.
fn body(charts: &[ChartKey]) -> String {
    let hash = |chart: &ChartKey| match chart {
        ChartKey::Hash { hash, variant: None } => Some(*hash),
        _ => None,
    };
    match charts.iter().map(hash).collect::<Option<Vec<_>>>() {
        Some(hashes) => json!({ "hashes": hashes }).to_string(),
        None => json!({ "charts": charts }).to_string(),
    }
}

/// Reads the items of a response, one for each chart.
fn parse(charts: &[ChartKey], body: &[u8]) -> Result<Vec<Box<RawValue>>, Error> {
    let Batch { items } = serde_json::from_slice(body)?;
    if items.len() != charts.len() {
        return Err(InvalidResponse::Items { items: items.len(), charts: charts.len() }.into());
    }
    for (chart, item) in charts.iter().zip(&items) {
        let item: Option<Item> = serde_json::from_str(item.get()).ok();
        let hash = item.as_ref().and_then(|item| item.chart_hash);
        let is_in_place = match chart {
            ChartKey::Hash { hash: requested, .. } => hash == Some(*requested),
            _ => item.is_some(),
        };
        if !is_in_place {
            let chart = serde_json::to_string(chart)?;
            return Err(InvalidResponse::Item(chart).into());
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> [ChartKey; 3] {
        let hash = NoteHash::from_bytes([0xab; 32]);
        [
            hash.into(),
            FileMd5::from_bytes([0xcd; 16]).into(),
            ChartKey::AlphaBeatmapId { alpha_beatmap_id: 7 },
        ]
    }

    #[test]
    fn bodies_have_hashes_or_charts() {
        let [hash, md5, id] = keys();
        let variant = Some(Variant::from_bytes([1; 32]));
        let with_variant = ChartKey::Hash { hash: NoteHash::from_bytes([0xab; 32]), variant };
        let [ab, cd, one] = ["ab".repeat(32), "cd".repeat(16), "01".repeat(32)];
        for (charts, expected) in [
            (vec![hash, hash], json!({"hashes": [ab, ab]})),
            (vec![hash, md5], json!({"charts": [{"hash": ab}, {"md5": cd}]})),
            (vec![id], json!({"charts": [{"alphaBeatmapId": 7}]})),
            (vec![with_variant], json!({"charts": [{"hash": ab, "variant": one}]})),
        ] {
            assert_eq!(body(&charts), expected.to_string());
            for chart in charts {
                assert_eq!(serde_json::from_value::<ChartKey>(json!(chart)).unwrap(), chart);
            }
        }
    }

    #[test]
    fn variants_are_sent_where_they_are_included() {
        let hash = NoteHash::from_bytes([1; 32]);
        let chart = ChartKey::Hash { hash, variant: Some(Variant::from_bytes([1; 32])) };
        assert_eq!(wanted(chart, &[Include::Links]), hash.into());
        assert_eq!(wanted(chart, &[Include::Links, Include::Variants]), chart);
    }

    #[test]
    fn batches_have_the_maximum_of_what_they_include() {
        use Include::{Chartsets, Links, Rating, Variants};
        for (include, expected) in [
            (&[][..], 1_000),
            (&[Rating, Links], 1_000),
            (&[Links, Variants], 100),
            (&[Chartsets], 100),
            (&[Chartsets, Variants], 25),
        ] {
            assert_eq!(max_charts(include), expected, "{include:?}");
        }
    }

    #[test]
    fn items_are_those_of_the_charts_in_their_order() {
        let [hash, md5, id] = keys();
        let item = |hash: &str| json!({"chartHash": hash.repeat(32), "status": "unknown"});
        let unknown = json!({"status": "unknown"});
        let parsed = |charts: &[ChartKey], items: &[&serde_json::Value]| {
            parse(charts, json!({ "items": items }).to_string().as_bytes()).map(|items| items.len())
        };
        assert_eq!(parsed(&[hash, md5, id], &[&item("ab"), &item("00"), &unknown]).unwrap(), 3);
        for (charts, items, expected) in [
            (vec![hash], vec![], "0 items for 1 charts"),
            (vec![hash], vec![item("00")], "no item for"),
            (vec![hash], vec![unknown], "no item for"),
            (vec![md5], vec![json!({})], "no item for"),
        ] {
            let error = parsed(&charts, &items.iter().collect::<Vec<_>>()).unwrap_err();
            let Error::Response(invalid) = error else { panic!("{error:?}") };
            assert!(invalid.to_string().contains(expected), "{invalid}");
        }
    }
}
