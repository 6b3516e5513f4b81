//! Reads the JSON of a [`ChartsetRecord`](crate::ChartsetRecord), which another instance wrote, with bounded
//! memory: a list ends at its limit, and fields of later versions are passed over.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::limits::MAX_CHARTS;
use crate::{ChartMetadata, ChartNumbers, ChartRecord, KeyCount, MAX_CHART_TAGS, NoteHash, PublicSource};

/// The fields of a [`ChartRecord`], all at one level: serde stores every unknown field of a structure with
/// flattened parts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChartRecordJson {
    hash: NoteHash,
    note_hash_version: u32,
    keys: KeyCount,
    bpm_min: f64,
    bpm_max: f64,
    bpm_main: f64,
    length_ms: u32,
    notes: u32,
    lns: u32,
    density_avg: f64,
    density_peak: f64,
    rox_bytes: u64,
    title: String,
    artist: String,
    title_romanised: Option<String>,
    artist_romanised: Option<String>,
    creator: String,
    difficulty: String,
    #[serde(deserialize_with = "deserialize_tags")]
    tags: Vec<String>,
    declared_source: Option<PublicSource>,
    alpha_beatmap_id: Option<u64>,
}

impl From<ChartRecordJson> for ChartRecord {
    fn from(json: ChartRecordJson) -> Self {
        Self {
            hash: json.hash,
            note_hash_version: json.note_hash_version,
            numbers: ChartNumbers {
                keys: json.keys,
                bpm_min: json.bpm_min,
                bpm_max: json.bpm_max,
                bpm_main: json.bpm_main,
                length_ms: json.length_ms,
                notes: json.notes,
                lns: json.lns,
                density_avg: json.density_avg,
                density_peak: json.density_peak,
            },
            rox_bytes: json.rox_bytes,
            metadata: ChartMetadata {
                title: json.title,
                artist: json.artist,
                title_romanised: json.title_romanised,
                artist_romanised: json.artist_romanised,
                creator: json.creator,
                difficulty: json.difficulty,
                tags: json.tags,
            },
            declared_source: json.declared_source,
            alpha_beatmap_id: json.alpha_beatmap_id,
        }
    }
}

/// # Errors
/// There are more charts than a chartset may have.
pub(crate) fn deserialize_charts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<ChartRecord>, D::Error> {
    let (charts, more) = deserializer.deserialize_seq(First { limit: MAX_CHARTS, element: PhantomData })?;
    if more { Err(de::Error::custom(format!("more than {MAX_CHARTS} charts"))) } else { Ok(charts) }
}

/// Further tags are dropped, as those of a chart file.
fn deserialize_tags<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let (tags, _) = deserializer.deserialize_seq(First { limit: MAX_CHART_TAGS, element: PhantomData })?;
    Ok(tags)
}

/// The first elements of a list, and whether it has more.
struct First<T> {
    limit: usize,
    element: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for First<T> {
    type Value = (Vec<T>, bool);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while elements.len() < self.limit {
            match list.next_element()? {
                Some(element) => elements.push(element),
                None => return Ok((elements, false)),
            }
        }
        let mut more = false;
        while list.next_element::<IgnoredAny>()?.is_some() {
            more = true;
        }
        Ok((elements, more))
    }
}
