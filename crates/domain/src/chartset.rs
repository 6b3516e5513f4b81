//! A chartset: a song folder, with everything that is derived from its charts.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use serde::{Serialize, Serializer};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::{
    Chart, ChartMetadata, ChartValues, ChartsetId, DensityCurve, FileAliases, KeyCount, NoteHash,
    PublicSource, Source, SourceKind,
};

/// A chart in a chartset: the values stored with its note hash, and the metadata of its file in this chartset.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartsetMember {
    /// Identifies the chart. A chartset contains each hash once.
    pub hash: NoteHash,
    /// Those stored with the hash.
    pub values: ChartValues,
    /// The metadata of the file in this chartset.
    pub metadata: ChartMetadata,
    /// The source that the metadata of the file names.
    pub declared_source: Option<PublicSource>,
    /// The id of the chart in the first game.
    pub alpha_beatmap_id: Option<u64>,
    /// What else the chart is known by in this chartset.
    pub aliases: FileAliases,
}

impl ChartsetMember {
    /// The Chart object of the API, with all extension fields.
    #[must_use]
    pub fn to_chart(&self) -> Chart {
        Chart::new(self.hash, &self.values, &self.metadata)
    }
}

/// A chartset with the fields that lists show, derived from its charts by [`assemble_chartset`].
///
/// Serialises as the list item of docs/formats/records.md, "Chartset".
#[derive(Debug, Clone, PartialEq)]
pub struct Chartset {
    /// Stays the same when the charts change (docs/formats/records.md, "Chartsets and ids").
    pub id: ChartsetId,
    /// Title of the first chart, in the order of the chartset detail.
    pub title: String,
    /// Artist of the first chart, in the order of the chartset detail.
    pub artist: String,
    /// The distinct creators, most charts first, joined by `, `.
    pub creator: String,
    /// The public source of the chartset, if it has one.
    pub source: Option<PublicSource>,
    /// The distinct key counts of the charts, ascending.
    pub keys: Vec<KeyCount>,
    /// Lowest beats per minute of any chart.
    pub bpm_min: f64,
    /// Highest beats per minute of any chart.
    pub bpm_max: f64,
    /// Length of the shortest chart in milliseconds.
    pub length_min_ms: u32,
    /// Length of the longest chart in milliseconds.
    pub length_max_ms: u32,
    /// Highest peak density of any chart, in notes per second.
    pub density_max: f64,
    /// Number of charts, at least one.
    pub chart_count: u32,
}

impl Serialize for Chartset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let source_kind = self.source.as_ref().map(|source| source.kind);
        let item = ItemFields {
            id: self.id,
            title: &self.title,
            artist: &self.artist,
            creator: &self.creator,
            source_kind,
            keys: &self.keys,
            bpm_min: self.bpm_min,
            bpm_max: self.bpm_max,
            length_min_ms: self.length_min_ms,
            length_max_ms: self.length_max_ms,
            density_max: self.density_max,
            chart_count: self.chart_count,
            download_url: source_kind.map(|_| DownloadUrl(self.id)),
            rating_min: None,
            rating_max: None,
            updated_at_ms: None,
        };
        item.serialize(serializer)
    }
}

/// The schema of a list item.
impl PartialSchema for Chartset {
    fn schema() -> RefOr<Schema> {
        ItemFields::schema()
    }
}

impl ToSchema for Chartset {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        ItemFields::schemas(schemas);
    }
}

/// The fields of a list item, in the order of docs/formats/records.md. Meilisearch indexes store serialised
/// items: a change here changes the format of the index (`FORMAT` in `chart-index-search`).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ItemFields<'a> {
    id: ChartsetId,
    title: &'a str,
    artist: &'a str,
    creator: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    source_kind: Option<SourceKind>,
    keys: &'a [KeyCount],
    bpm_min: f64,
    bpm_max: f64,
    length_min_ms: u32,
    length_max_ms: u32,
    density_max: f64,
    chart_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>, pattern = "^/go/chartset/[0-9a-f]{16}$")]
    download_url: Option<DownloadUrl>,
    /// Added to serialised items: see [`ListItem::with_ratings`](crate::search::ListItem::with_ratings).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, extensions(("x-extension" = json!(true))))]
    rating_min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, extensions(("x-extension" = json!(true))))]
    rating_max: Option<f64>,
    /// Added to serialised items, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, extensions(("x-extension" = json!(true))))]
    updated_at_ms: Option<i64>,
}

/// The path of the source redirect of a chartset.
struct DownloadUrl(ChartsetId);

impl Serialize for DownloadUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("/go/chartset/{}", self.0))
    }
}

/// A chartset that contains a chart, as lookups list it (docs/api.md, "Extension fields").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartOccurrence {
    /// The id of the chartset.
    pub id: ChartsetId,
    /// The title of the chartset.
    pub title: String,
    /// Name of the difficulty in this set.
    pub difficulty: String,
    /// The public source of the chartset, if it has one.
    pub source: Option<PublicSource>,
}

impl Serialize for ChartOccurrence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let download_url = self.source.as_ref().map(|_| DownloadUrl(self.id));
        let Self { id, title, difficulty, .. } = self;
        OccurrenceFields { id: *id, title, difficulty, download_url }.serialize(serializer)
    }
}

impl PartialSchema for ChartOccurrence {
    fn schema() -> RefOr<Schema> {
        OccurrenceFields::schema()
    }
}

impl ToSchema for ChartOccurrence {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        OccurrenceFields::schemas(schemas);
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct OccurrenceFields<'a> {
    id: ChartsetId,
    title: &'a str,
    difficulty: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>, pattern = "^/go/chartset/[0-9a-f]{16}$")]
    download_url: Option<DownloadUrl>,
}

/// Search terms of a chartset that lists do not show. Derived from its charts by [`assemble_chartset`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keywords {
    /// The distinct tags of the charts, in order of appearance.
    pub tags: Vec<String>,
    /// The distinct romanised titles and artists of the charts.
    pub romanised_names: Vec<String>,
}

/// The chartset detail (docs/api.md, "Chartset detail").
#[derive(Debug, Clone, PartialEq)]
pub struct ChartsetDetail {
    /// The list item.
    pub chartset: Chartset,
    /// When it last changed, in Unix epoch milliseconds.
    pub updated_at_ms: i64,
    /// The distinct tags of the charts, in order of appearance.
    pub tags: Vec<String>,
    /// The sources of the chartset, in the order of [`Source::merge`].
    pub sources: Vec<Source>,
    /// The charts, ordered by keys, then average density, then hash.
    pub charts: Vec<ChartsetChart>,
}

/// A chart with what the chartset detail shows of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartsetChart {
    /// The chart, with the metadata of its file in this chartset.
    pub chart: Chart,
    /// Its density curve; `None` until it is computed for a chart of an older version.
    pub curve: Option<DensityCurve>,
    /// The id of the chart in the first game; always `None` in a pack of the second game.
    pub alpha_beatmap_id: Option<u64>,
}

/// Sorts the charts as in the chartset detail (by keys, then average density, then hash) and derives the
/// chartset and its keywords from them. `exact_source` is the set or pack that the charts were read from.
/// Returns `None` without charts: such a chartset is not listed.
///
/// Ingest, removal, verification and all search engines call this function, so that their results agree.
#[must_use]
pub fn assemble_chartset(
    id: ChartsetId,
    exact_source: Option<&PublicSource>,
    charts: &mut [ChartsetMember],
) -> Option<(Chartset, Keywords)> {
    sort_as_in_detail(charts);
    let first = charts.first()?;
    let (title, artist) = (first.metadata.title.clone(), first.metadata.artist.clone());
    let source = source_of(exact_source, charts);
    if source.as_ref().is_some_and(|source| source.kind == SourceKind::BetaPack) {
        for chart in &mut *charts {
            chart.alpha_beatmap_id = None;
        }
    }
    let numbers = || charts.iter().map(|chart| &chart.values.numbers);
    let mut keys: Vec<KeyCount> = numbers().map(|numbers| numbers.keys).collect();
    keys.dedup();
    let chartset = Chartset {
        id,
        title,
        artist,
        creator: joined_creators(charts),
        source,
        keys,
        bpm_min: numbers().map(|numbers| numbers.bpm_min).fold(f64::INFINITY, f64::min),
        bpm_max: numbers().map(|numbers| numbers.bpm_max).fold(0.0, f64::max),
        length_min_ms: numbers().map(|numbers| numbers.length_ms).min().unwrap_or(0),
        length_max_ms: numbers().map(|numbers| numbers.length_ms).max().unwrap_or(0),
        density_max: numbers().map(|numbers| numbers.density_peak).fold(0.0, f64::max),
        chart_count: u32::try_from(charts.len()).unwrap_or(u32::MAX),
    };
    Some((chartset, Keywords::from_charts(charts)))
}

fn sort_as_in_detail(charts: &mut [ChartsetMember]) {
    charts.sort_by(|a, b| a.values.numbers.detail_order(&a.hash, &b.values.numbers, &b.hash));
}

/// The exact source, else the first declared one.
fn source_of(exact_source: Option<&PublicSource>, charts: &[ChartsetMember]) -> Option<PublicSource> {
    let declared = || charts.iter().filter_map(|chart| chart.declared_source.as_ref()).min();
    exact_source.or_else(declared).cloned()
}

impl Keywords {
    fn from_charts(charts: &[ChartsetMember]) -> Self {
        let metadata = || charts.iter().map(|chart| &chart.metadata);
        let romanised = metadata().flat_map(|chart| [&chart.title_romanised, &chart.artist_romanised]);
        Self {
            tags: distinct(metadata().flat_map(|chart| &chart.tags)),
            romanised_names: distinct(romanised.flatten()),
        }
    }
}

/// The distinct non-empty creators, by number of charts (highest first), then by order of appearance.
fn joined_creators(charts: &[ChartsetMember]) -> String {
    let creators =
        || charts.iter().map(|chart| &chart.metadata.creator).filter(|creator| !creator.is_empty());
    let mut counts: HashMap<&String, usize> = HashMap::new();
    for creator in creators() {
        *counts.entry(creator).or_default() += 1;
    }
    let mut names = distinct(creators());
    names.sort_by_key(|name| Reverse(counts.get(name).copied()));
    names.join(", ")
}

fn distinct<'a>(values: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen = HashSet::new();
    values.filter(|value| !value.is_empty() && seen.insert(*value)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChartNumbers, SourceRef};

    fn member(hash: u8, keys: u8, density_avg: f64, metadata: ChartMetadata) -> ChartsetMember {
        let numbers = ChartNumbers {
            keys: KeyCount::try_from(keys).unwrap(),
            bpm_min: 100.0 + f64::from(hash),
            bpm_max: 200.0 + f64::from(hash),
            length_ms: 60_000 + u32::from(hash),
            density_avg,
            density_peak: 10.0 + f64::from(hash),
            ..ChartNumbers::default()
        };
        let hash = NoteHash::from_bytes([hash; 32]);
        ChartsetMember {
            hash,
            values: ChartValues { numbers, ..ChartValues::default() },
            metadata,
            declared_source: None,
            alpha_beatmap_id: Some(7),
            aliases: FileAliases::default(),
        }
    }

    fn metadata(creator: &str, title: &str, tags: &[&str]) -> ChartMetadata {
        let tags = tags.iter().map(ToString::to_string).collect();
        ChartMetadata { creator: creator.into(), title: title.into(), tags, ..ChartMetadata::default() }
    }

    fn source(kind: SourceKind, number: u64) -> PublicSource {
        PublicSource { kind, reference: SourceRef::from_number(number).unwrap() }
    }

    const ID: ChartsetId = ChartsetId::from_bytes([1; 8]);

    #[test]
    fn charts_are_ordered_by_keys_then_average_density_then_hash() {
        let empty = ChartMetadata::default;
        let mut charts = [
            member(4, 7, 1.0, empty()),
            member(3, 4, 2.0, empty()),
            member(2, 4, 2.0, empty()),
            member(1, 4, 9.0, empty()),
        ];
        assert!(assemble_chartset(ID, None, &mut charts).is_some());
        assert_eq!(charts.map(|chart| chart.hash.as_bytes()[0]), [2, 3, 1, 4]);
    }

    #[test]
    fn chartset_spans_its_charts() {
        let mut charts = [
            member(1, 7, 3.0, metadata("zoe", "third", &["b", "c"])),
            member(2, 4, 2.0, metadata("zoe", "second", &["a", "b"])),
            member(3, 4, 1.0, metadata("amy", "first", &["a", ""])),
            member(4, 4, 4.0, metadata("", "fourth", &[])),
        ];
        let (set, keywords) = assemble_chartset(ID, None, &mut charts).unwrap();
        assert_eq!((set.title.as_str(), set.creator.as_str()), ("first", "zoe, amy"));
        assert_eq!(keywords.tags, ["a", "b", "c"]);
        assert_eq!(set.keys.iter().map(|keys| keys.get()).collect::<Vec<_>>(), [4, 7]);
        assert_eq!((set.length_min_ms, set.length_max_ms, set.chart_count), (60_001, 60_004, 4));
        let spans = [set.bpm_min, set.bpm_max, set.density_max];
        assert!(
            spans.iter().zip([101.0, 204.0, 14.0]).all(|(a, b)| (a - b).abs() < f64::EPSILON),
            "{spans:?}"
        );
    }

    #[test]
    fn exact_source_precedes_declared_ones() {
        let mut charts =
            [member(1, 4, 1.0, ChartMetadata::default()), member(2, 4, 2.0, ChartMetadata::default())];
        charts[1].declared_source = Some(source(SourceKind::AlphaSet, 12));
        let declared = assemble_chartset(ID, None, &mut charts).unwrap().0.source;
        assert_eq!(declared, Some(source(SourceKind::AlphaSet, 12)));
        let exact = source(SourceKind::AlphaSet, 99);
        assert_eq!(assemble_chartset(ID, Some(&exact), &mut charts).unwrap().0.source, Some(exact));
    }

    #[test]
    fn beta_packs_have_no_beatmap_ids() {
        let mut charts = [member(1, 4, 1.0, ChartMetadata::default())];
        assert!(assemble_chartset(ID, Some(&source(SourceKind::BetaPack, 5)), &mut charts).is_some());
        assert_eq!(charts[0].alpha_beatmap_id, None);
    }

    /// A quadratic count of the charts of each creator would take minutes.
    #[test]
    fn assembling_takes_linear_time() {
        let mut charts: Vec<ChartsetMember> = (0..20_000)
            .map(|number: u32| {
                member(u8::try_from(number % 100).unwrap(), 4, 1.0, metadata(&number.to_string(), "", &[]))
            })
            .collect();
        let start = std::time::Instant::now();
        let (set, _) = assemble_chartset(ID, None, &mut charts).unwrap();
        assert_eq!(set.creator.split(", ").count(), 20_000);
        assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
    }

    #[test]
    fn chartset_without_charts_is_none() {
        assert_eq!(assemble_chartset(ID, None, &mut []), None);
    }
}
