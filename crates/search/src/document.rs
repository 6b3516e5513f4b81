//! The documents of an index: made from chartsets here, and read back here.

use chart_index_domain::search::IndexedChartset;
use chart_index_domain::{Chartset, ChartsetId, KeyCount, Keywords, PublicSource, SourceKind, SourceRef};
use serde::{Deserialize, Serialize};

use crate::order::SortKeys;
use crate::{creator, words};

/// The primary key of the documents.
pub(crate) const PRIMARY_KEY: &str = "id";

/// The attributes that give a chartset back whole. Those that lists have no use for stand last.
pub(crate) const WHOLE: [&str; 16] = [
    "id",
    "title",
    "artist",
    "creator",
    "sourceKind",
    "sourceRef",
    "keys",
    "bpmMin",
    "bpmMax",
    "lengthMinMs",
    "lengthMaxMs",
    "densityMax",
    "chartCount",
    "updatedAtMs",
    "tags",
    "romanisedNames",
];

/// What searches ask for: what lists show, and the time that they are sorted by.
pub(crate) const LISTED: &[&str] = WHOLE.as_slice().split_at(14).0;

/// The attributes that text is looked for in, the one that weighs most first.
pub(crate) const SEARCHED: [&str; 6] =
    ["titleWords", "romanisedWords", "artistWords", "creatorWords", "tagWords", CODED];
/// The attribute of the words in other scripts than Latin: found as they are written, never mistyped.
pub(crate) const CODED: &str = "codedWords";

/// A chartset as lists need it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedDocument {
    id: ChartsetId,
    title: String,
    artist: String,
    creator: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_kind: Option<SourceKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_ref: Option<String>,
    keys: Vec<KeyCount>,
    bpm_min: f64,
    bpm_max: f64,
    length_min_ms: u32,
    length_max_ms: u32,
    density_max: f64,
    chart_count: u32,
    pub(crate) updated_at_ms: i64,
}

/// A chartset as it stands in an index, whole: it gives the same chartset back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WholeDocument {
    #[serde(flatten)]
    listed: ListedDocument,
    tags: Vec<String>,
    romanised_names: Vec<String>,
}

/// A document with everything that it is found and sorted by.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document {
    #[serde(flatten)]
    whole: WholeDocument,
    #[serde(flatten)]
    sort_keys: SortKeys,
    creator_codes: Vec<String>,
    title_words: String,
    romanised_words: Vec<String>,
    artist_words: String,
    creator_words: String,
    tag_words: Vec<String>,
    coded_words: Vec<String>,
}

impl Document {
    pub(crate) fn of(indexed: &IndexedChartset) -> Self {
        let (set, keywords) = (&indexed.chartset, &indexed.keywords);
        let names = [&set.title, &set.artist, &set.creator];
        let all_names = names.into_iter().chain(&keywords.romanised_names).chain(&keywords.tags);
        Self {
            whole: WholeDocument::of(indexed),
            sort_keys: SortKeys::of(indexed),
            creator_codes: creator::codes(&set.creator),
            title_words: words::plain(&set.title),
            romanised_words: plain_words(&keywords.romanised_names),
            artist_words: words::plain(&set.artist),
            creator_words: words::plain(&set.creator),
            tag_words: plain_words(&keywords.tags),
            coded_words: all_names.map(|name| words::coded(name)).filter(|coded| !coded.is_empty()).collect(),
        }
    }
}

fn plain_words(names: &[String]) -> Vec<String> {
    names.iter().map(|name| words::plain(name)).filter(|words| !words.is_empty()).collect()
}

impl ListedDocument {
    fn of(indexed: &IndexedChartset) -> Self {
        let set = &indexed.chartset;
        Self {
            id: set.id,
            title: set.title.clone(),
            artist: set.artist.clone(),
            creator: set.creator.clone(),
            source_kind: set.source.as_ref().map(|source| source.kind),
            source_ref: set.source.as_ref().map(|source| source.reference.to_string()),
            keys: set.keys.clone(),
            bpm_min: set.bpm_min,
            bpm_max: set.bpm_max,
            length_min_ms: set.length_min_ms,
            length_max_ms: set.length_max_ms,
            density_max: set.density_max,
            chart_count: set.chart_count,
            updated_at_ms: indexed.updated_at_ms,
        }
    }

    /// The chartset that the document was made from.
    pub(crate) fn into_chartset(self) -> Result<Chartset, CorruptSource> {
        let source = match (self.source_kind, self.source_ref) {
            (Some(kind), Some(reference)) => Some(public_source(kind, &reference)?),
            (None, None) => None,
            _ => return Err(CorruptSource),
        };
        Ok(Chartset {
            id: self.id,
            title: self.title,
            artist: self.artist,
            creator: self.creator,
            source,
            keys: self.keys,
            bpm_min: self.bpm_min,
            bpm_max: self.bpm_max,
            length_min_ms: self.length_min_ms,
            length_max_ms: self.length_max_ms,
            density_max: self.density_max,
            chart_count: self.chart_count,
        })
    }
}

impl WholeDocument {
    fn of(indexed: &IndexedChartset) -> Self {
        let Keywords { tags, romanised_names } = indexed.keywords.clone();
        Self { listed: ListedDocument::of(indexed), tags, romanised_names }
    }

    /// The chartset that the document was made from, with its keywords and its time.
    pub(crate) fn into_indexed(self) -> Result<IndexedChartset, CorruptSource> {
        let updated_at_ms = self.listed.updated_at_ms;
        let keywords = Keywords { tags: self.tags, romanised_names: self.romanised_names };
        Ok(IndexedChartset { chartset: self.listed.into_chartset()?, keywords, updated_at_ms })
    }
}

fn public_source(kind: SourceKind, reference: &str) -> Result<PublicSource, CorruptSource> {
    let number = reference.parse().map_err(|_| CorruptSource)?;
    let reference = SourceRef::from_number(number).ok_or(CorruptSource)?;
    Ok(PublicSource { kind, reference })
}

/// A document that this program did not write.
#[derive(Debug, thiserror::Error)]
#[error("a source without its kind or number")]
pub(crate) struct CorruptSource;

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    pub(crate) fn indexed(number: u64, title: &str) -> IndexedChartset {
        let chartset = Chartset {
            id: ChartsetId::from_bytes(number.to_be_bytes()),
            title: title.into(),
            artist: "Artist".into(),
            creator: "Creator".into(),
            source: None,
            keys: vec![KeyCount::try_from(4).unwrap()],
            bpm_min: 100.0,
            bpm_max: 180.125,
            length_min_ms: 60_000,
            length_max_ms: 90_000,
            density_max: 12.5,
            chart_count: 2,
        };
        let keywords = Keywords { tags: vec!["tag".into()], romanised_names: Vec::new() };
        IndexedChartset { chartset, keywords, updated_at_ms: 1_700_000_000_000 }
    }

    fn name() -> impl Strategy<Value = String> {
        "\\PC{0,12}"
    }

    fn any_indexed() -> impl Strategy<Value = IndexedChartset> {
        let names = (name(), name(), name(), prop::collection::vec(name(), 0..3));
        // Thousandths, as the domain has them: JSON gives no more than 15 digits back for certain.
        let thousandths = (0_u32..u32::MAX).prop_map(|thousandths| f64::from(thousandths) / 1_000.0);
        let numbers = (thousandths, any::<u32>(), -1_000_i64..1 << 52, prop::option::of(1_u64..1 << 31));
        (any::<u64>(), names, numbers).prop_map(|(id, (title, artist, creator, tags), numbers)| {
            let (bpm, length, updated_at_ms, reference) = numbers;
            let source = reference
                .and_then(SourceRef::from_number)
                .map(|reference| PublicSource { kind: SourceKind::BetaPack, reference });
            let mut indexed = indexed(id, &title);
            indexed.updated_at_ms = updated_at_ms;
            indexed.keywords = Keywords { tags, romanised_names: vec![artist.clone()] };
            indexed.chartset = Chartset { artist, creator, source, ..indexed.chartset };
            indexed.chartset.bpm_max = bpm;
            indexed.chartset.length_max_ms = length;
            indexed
        })
    }

    proptest! {
        #[test]
        fn a_document_gives_back_what_it_was_made_from(indexed in any_indexed()) {
            let json = serde_json::to_string(&Document::of(&indexed)).unwrap();
            let listed: ListedDocument = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(listed.updated_at_ms, indexed.updated_at_ms);
            prop_assert_eq!(listed.into_chartset().unwrap(), indexed.chartset.clone());
            let whole: WholeDocument = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(whole.into_indexed().unwrap(), indexed);
        }
    }

    #[test]
    fn what_is_asked_for_is_all_that_is_read_and_nothing_else() {
        let mut indexed = indexed(1, "a");
        let reference = SourceRef::from_number(1).unwrap();
        indexed.chartset.source = Some(PublicSource { kind: SourceKind::AlphaSet, reference });
        let sorted = |asked: &[&str]| asked.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        let names = |read: serde_json::Value| read.as_object().unwrap().keys().cloned().collect();
        let listed: BTreeSet<String> = names(serde_json::to_value(ListedDocument::of(&indexed)).unwrap());
        assert_eq!(listed, sorted(LISTED));
        let whole: BTreeSet<String> = names(serde_json::to_value(WholeDocument::of(&indexed)).unwrap());
        assert_eq!(whole, sorted(&WHOLE));
    }

    #[test]
    fn what_is_sorted_and_searched_by_is_in_the_document() {
        let document = serde_json::to_value(Document::of(&indexed(1, "a"))).unwrap();
        for attribute in
            crate::order::sortable_attributes().into_iter().chain(SEARCHED).chain(["creatorCodes"])
        {
            assert!(document.get(attribute).is_some(), "{attribute}");
        }
    }

    #[test]
    fn a_document_of_another_program_is_refused() {
        let document = serde_json::to_value(ListedDocument::of(&indexed(1, "a"))).unwrap();
        let is_read = |name: &str, value: serde_json::Value| {
            let mut document = document.clone();
            document[name] = value;
            serde_json::from_value(document)
                .is_ok_and(|listed: ListedDocument| listed.into_chartset().is_ok())
        };
        assert!(is_read("title", json!("b")));
        for (name, value) in [
            ("id", json!("1")),
            ("keys", json!([8])),
            ("bpmMin", json!(null)),
            ("sourceKind", json!("x")),
            ("sourceKind", json!("alphaSet")),
            ("sourceRef", json!("1")),
        ] {
            assert!(!is_read(name, value.clone()), "{name}: {value}");
        }
    }
}
