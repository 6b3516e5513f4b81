//! The documents of an index: one for each chartset, with values that Meilisearch cannot interpret: it
//! folds case and accents, reads digits as numbers, truncates long values, and splits words by rules that
//! differ between scripts.

use std::collections::{BTreeMap, BTreeSet};

use chart_index_domain::search::IndexedChartset;
use chart_index_domain::{Chartset, ChartsetId, KeyCount, SourceKind, text};
use serde::Serialize;
use serde_json::Value;

use crate::sort_keys::SortKeys;
use crate::{chart_values, creator_codes, rating_bins, sort_keys, word_codes};

pub(crate) const PRIMARY_KEY: &str = "id";
/// The attribute with the list item.
pub(crate) const ITEM: &str = "item";
/// The attribute with the least and the greatest rating.
pub(crate) const RATINGS: &str = "ratings";
/// The attribute with the bins of a histogram of ratings, see [`rating_bins`](crate::rating_bins).
pub(crate) const RATING_BINS: &str = "ratingBins";

/// The attributes that free text is searched in, the most relevant first.
pub(crate) const SEARCHABLE: [&str; 6] =
    ["titleWords", "romanisedWords", "artistWords", "creatorWords", "tagWords", CODED_WORDS];
/// The attribute with the words that are not Latin. Typos are not tolerated in it.
pub(crate) const CODED_WORDS: &str = "codedWords";

/// The document of a chartset: the list item as lists return it, and everything that searches filter and sort
/// by.
///
/// A search reads back the item, which is sent on unchanged, the id and one sort key.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChartsetDocument<'a> {
    id: ChartsetId,
    item: &'a Chartset,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_kind: Option<SourceKind>,
    keys: &'a [KeyCount],
    bpm_min: f64,
    bpm_max: f64,
    bpm_main_max: f64,
    length_min_ms: u32,
    length_max_ms: u32,
    density_max: f64,
    /// The least and the greatest rating in hundredths, for lists that include them.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratings: Option<(u16, u16)>,
    rating_bins: Vec<usize>,
    rating_max: u16,
    notes_max: u32,
    #[serde(flatten)]
    chart_values: BTreeMap<&'static str, Vec<f64>>,
    updated_at_ms: i64,
    #[serde(flatten)]
    sort_keys: SortKeys,
    creator_codes: Vec<String>,
    tag_keys: BTreeSet<String>,
    title_words: String,
    romanised_words: Vec<String>,
    artist_words: String,
    creator_words: String,
    tag_words: Vec<String>,
    coded_words: Vec<String>,
}

impl<'a> ChartsetDocument<'a> {
    pub(crate) fn new(indexed: &'a IndexedChartset) -> Self {
        let (set, keywords) = (&indexed.chartset, &indexed.keywords);
        let names = [&set.title, &set.artist, &set.creator];
        let all_names = names.into_iter().chain(&keywords.romanised_names).chain(&keywords.tags);
        let ratings = indexed.ratings().map(|(least, greatest)| (least.hundredths(), greatest.hundredths()));
        Self {
            id: set.id,
            item: set,
            source_kind: set.source.as_ref().map(|source| source.kind),
            keys: &set.keys,
            bpm_min: set.bpm_min,
            bpm_max: set.bpm_max,
            bpm_main_max: indexed.bpm_main_max,
            length_min_ms: set.length_min_ms,
            length_max_ms: set.length_max_ms,
            density_max: set.density_max,
            ratings,
            rating_bins: rating_bins::values(&indexed.charts),
            rating_max: ratings.map_or(0, |(_, greatest)| greatest),
            notes_max: indexed.notes_max(),
            chart_values: chart_values::attributes(&indexed.charts),
            updated_at_ms: indexed.updated_at_ms,
            sort_keys: SortKeys::new(indexed),
            creator_codes: creator_codes::codes(&set.creator),
            tag_keys: keywords.tags.iter().map(|tag| sort_keys::tag_key(&text::sort_key(tag))).collect(),
            title_words: word_codes::latin_words(&set.title),
            romanised_words: latin_words(&keywords.romanised_names),
            artist_words: word_codes::latin_words(&set.artist),
            creator_words: word_codes::latin_words(&set.creator),
            tag_words: latin_words(&keywords.tags),
            coded_words: all_names
                .map(|name| word_codes::coded_words(name))
                .filter(|words| !words.is_empty())
                .collect(),
        }
    }

    /// Whether the JSON from an index is this document, in every attribute.
    pub(crate) fn equals(&self, stored: &Value) -> bool {
        serde_json::to_value(self).is_ok_and(|document| document == *stored)
    }
}

fn latin_words(names: &[String]) -> Vec<String> {
    names.iter().map(|name| word_codes::latin_words(name)).filter(|words| !words.is_empty()).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use chart_index_domain::search::FilterableChart;
    use chart_index_domain::{Keywords, PublicSource, Rating, SourceRef};
    use serde_json::json;

    use super::*;
    use crate::FORMAT;
    use chart_index_domain::text::FOLDING_VERSION;

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
        let chart = |rating, notes| FilterableChart {
            keys: KeyCount::try_from(4).unwrap(),
            bpm_min: 100.0,
            bpm_max: 180.125,
            bpm_main: 150.0,
            length_ms: 60_000,
            density_peak: 12.5,
            ln_share: 20,
            notes,
            rating: Rating::from_hundredths(rating),
            row_shares: Some([10, 0, 0, 0, 0, 60, 0, 0, 0]),
        };
        let charts = vec![chart(311, 800), chart(527, 1_200)];
        let (bpm_main_max, updated_at_ms) = (150.0, 1_700_000_000_000);
        IndexedChartset { chartset, charts, bpm_main_max, keywords, updated_at_ms }
    }

    #[test]
    fn document_has_every_attribute_that_searches_use() {
        let document = serde_json::to_value(ChartsetDocument::new(&indexed(1, "a"))).unwrap();
        let sortable = sort_keys::sortable_attributes().into_iter();
        for attribute in
            sortable.chain(SEARCHABLE).chain([PRIMARY_KEY, ITEM, "creatorCodes", sort_keys::TAG_KEYS])
        {
            assert!(document.get(attribute).is_some(), "{attribute}");
        }
    }

    fn with_every_attribute() -> IndexedChartset {
        let mut indexed = indexed(1, "宙 Sora");
        let reference = SourceRef::from_number(5).unwrap();
        indexed.chartset.source = Some(PublicSource { kind: SourceKind::BetaPack, reference });
        indexed.keywords.romanised_names = vec!["Sora".into()];
        indexed
    }

    /// A change of the document, and so a change of the list item or of the folding, requires a new [`FORMAT`]:
    /// nodes are then rebuilt, and no page mixes two formats.
    #[test]
    #[expect(clippy::too_many_lines, reason = "a document")]
    fn format_matches_this_document() {
        let indexed = with_every_attribute();
        assert_eq!((FORMAT, FOLDING_VERSION), (8, 2));
        insta::assert_json_snapshot!(serde_json::to_value(ChartsetDocument::new(&indexed)).unwrap(), @r#"
        {
          "artist1": "x61",
          "artist2": "x6172",
          "artist3": "x617274",
          "artist4": "x61727469",
          "artist6": "x617274697374",
          "artistKey": "x617274697374",
          "artistWords": "artist",
          "bpm3": 8243,
          "bpm7": 131892,
          "bpmMain3": 8241,
          "bpmMain7": 131862,
          "bpmMainMax": 150.0,
          "bpmMax": 180.125,
          "bpmMin": 100.0,
          "codedWords": [
            "ri3d"
          ],
          "creatorCodes": [
            "m3n2m5m1n4mfn2"
          ],
          "creatorWords": "creator",
          "density3": 8212,
          "density7": 131400,
          "densityMax": 12.5,
          "id": "0000000000000001",
          "id1": "x0",
          "id2": "x00",
          "item": {
            "artist": "Artist",
            "bpmMax": 180.125,
            "bpmMin": 100.0,
            "chartCount": 2,
            "creator": "Creator",
            "densityMax": 12.5,
            "downloadUrl": "/go/chartset/0000000000000001",
            "id": "0000000000000001",
            "keys": [
              4
            ],
            "lengthMaxMs": 90000,
            "lengthMinMs": 60000,
            "sourceKind": "betaPack",
            "title": "宙 Sora"
          },
          "keys": [
            4
          ],
          "length10": 1064318,
          "length3": 8314,
          "length7": 133039,
          "lengthMaxMs": 90000,
          "lengthMinMs": 60000,
          "notes10": 1057968,
          "notes3": 8265,
          "notes7": 132246,
          "notesMax": 1200,
          "rating3": 8256,
          "rating7": 132099,
          "ratingBins": [
            193,
            337
          ],
          "ratingMax": 527,
          "ratings": [
            311,
            527
          ],
          "romanisedWords": [
            "sora"
          ],
          "sourceKind": "betaPack",
          "tagKeys": [
            "x746167"
          ],
          "tagWords": [
            "tag"
          ],
          "title1": "xe5",
          "title2": "xe5ae",
          "title3": "xe5ae99",
          "title4": "xe5ae9920",
          "title6": "xe5ae9920736f",
          "titleKey": "xe5ae9920736f7261",
          "titleWords": "sora",
          "updated12": 415039062,
          "updated18": 6484985,
          "updated24": 101327,
          "updated30": 1583,
          "updated36": 24,
          "updatedAtMs": 1700000000000,
          "values4": [
            311.0,
            527.0,
            8589934604.5,
            17179869204.0,
            25769804576.0,
            25769804976.0,
            34359738518.0,
            42949672970.0,
            85899345980.0
          ]
        }
        "#);
    }

    #[test]
    fn documents_differ_when_any_attribute_does() {
        let original = indexed(1, "a");
        let stored = serde_json::to_value(ChartsetDocument::new(&original)).unwrap();
        assert!(ChartsetDocument::new(&original).equals(&stored));
        let is_equal = |change: fn(&mut IndexedChartset)| {
            let mut changed = original.clone();
            change(&mut changed);
            ChartsetDocument::new(&changed).equals(&stored)
        };
        assert!(!is_equal(|set| set.chartset.title = "A".into()));
        assert!(!is_equal(|set| set.chartset.chart_count = 3));
        assert!(!is_equal(|set| set.chartset.bpm_max = 180.126));
        assert!(!is_equal(|set| set.bpm_main_max = 150.001));
        assert!(!is_equal(|set| set.updated_at_ms += 1));
        assert!(!is_equal(|set| set.charts[0].ln_share = 21));
        assert!(!is_equal(|set| set.keywords.tags.push("b".into())));
        assert!(!is_equal(|set| set.keywords.romanised_names.push("b".into())));
        assert!(!is_equal(|set| {
            let reference = SourceRef::from_number(1).unwrap();
            set.chartset.source = Some(PublicSource { kind: SourceKind::AlphaSet, reference });
        }));
        for name in stored.as_object().unwrap().keys() {
            let mut damaged = stored.clone();
            damaged.as_object_mut().unwrap().remove(name);
            assert!(!ChartsetDocument::new(&original).equals(&damaged), "{name}");
        }
        let mut damaged = stored.clone();
        damaged["other"] = json!(1);
        assert!(!ChartsetDocument::new(&original).equals(&damaged));
    }
}
