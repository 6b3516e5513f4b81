//! The query of the chartset list, with defaults applied and all values in range.

use serde::Serialize;
use strum::{IntoStaticStr, VariantArray};

use super::{ChartFilter, Hint};
use crate::{ChartsetId, KeyCount, PublicSource, SourceKind, text};

/// A query of the chartset list: filters, order and page. The default is the whole catalogue, newest first.
///
/// Different queries serialise differently, because responses are cached by the serialised query. Numbers are
/// finite.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SearchQuery {
    /// Free text: every word must match in title, artist, creator or tags. Trimmed, never empty. A text without
    /// letters and digits matches nothing ([`SearchQuery::matches_nothing`]).
    pub text: Option<String>,
    /// Chartsets with any of these key counts; all if empty.
    pub keys: KeySet,
    /// Chartsets with this kind of source.
    pub source: Option<SourceKind>,
    /// Chartsets that are published in this set or pack.
    pub published_in: Option<PublicSource>,
    /// Words that match in the title, as those of [`text`](Self::text) do. It has a word.
    pub title: Option<String>,
    /// Words that match in the artist, likewise.
    pub artist: Option<String>,
    /// Chartsets with a tag that is equal to each of these, both as [`text::sort_key`]. Distinct, ascending, at
    /// most [`MAX_VALUES`](super::MAX_VALUES).
    pub tags: Vec<String>,
    /// Part of the creator's name, case-insensitive. Trimmed, never empty.
    pub creator: Option<String>,
    /// Chartsets whose title no text of these matches, each the folded words of one. Distinct, ascending, at
    /// most [`MAX_VALUES`](super::MAX_VALUES).
    pub excluded_titles: Vec<String>,
    /// Chartsets whose artist no text of these matches, likewise.
    pub excluded_artists: Vec<String>,
    /// Chartsets without a tag that is equal to one of these, as [`tags`](Self::tags).
    pub excluded_tags: Vec<String>,
    /// Chartsets whose creator's name has none of these parts, case-folded ([`text::fold_case`]). Distinct,
    /// ascending, at most [`MAX_VALUES`](super::MAX_VALUES).
    pub excluded_creators: Vec<String>,
    /// Chartsets whose BPM range overlaps this range.
    pub bpm: Bounds,
    /// Chartsets whose range of lengths overlaps this range, in whole milliseconds.
    pub length_ms: Bounds,
    /// Chartsets with at least this peak density, in notes per second.
    pub density_min: Option<f64>,
    /// What one chart of a chartset meets.
    pub chart: ChartFilter,
    /// Whether that chart also has the BPM, the length and the peak density of the query, instead of any
    /// charts.
    pub matches_one_chart: bool,
    /// Sort key; ties are broken by id, ascending.
    pub sort: Sort,
    /// Of the sort key.
    pub direction: Direction,
    /// Whether the items have the least and the greatest rating of their charts.
    pub includes_rating: bool,
    /// Whether the items have the time of their last change.
    pub includes_updated: bool,
    /// Page number and size. With a cursor the number is only shown.
    pub page: PageRequest,
    /// Where the page begins, instead of its number.
    pub after: Option<After>,
    /// The parts of the parameter `query` that are text, although they look like filters. Responses repeat
    /// them.
    pub hints: Vec<Hint>,
}

impl SearchQuery {
    /// The query with its filters alone, on which the total depends.
    #[must_use]
    pub fn filters(&self) -> Self {
        Self {
            sort: Sort::default(),
            direction: Direction::default(),
            includes_rating: false,
            includes_updated: false,
            page: PageRequest::default(),
            after: None,
            hints: Vec::new(),
            ..self.clone()
        }
    }

    /// The filters with any rating instead of their range of ratings.
    #[must_use]
    pub fn rated(&self) -> Self {
        let mut filters = self.filters();
        filters.chart.rating = Bounds { min: Some(0.0), max: None };
        filters
    }

    /// The number of items before the page, counted from where the list begins or continues.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        if self.after.is_some() { 0 } else { self.page.offset() }
    }

    /// Whether chartsets have to match words or tags.
    #[must_use]
    pub const fn has_words(&self) -> bool {
        self.text.is_some() || self.title.is_some() || self.artist.is_some() || !self.tags.is_empty()
    }

    /// Whether the query matches no chartset of any catalogue: the text has no letter or digit (docs/api.md,
    /// "Chartset list").
    #[must_use]
    pub fn matches_nothing(&self) -> bool {
        self.text.as_deref().is_some_and(|text| text::words(text).is_empty())
    }
}

/// A range with inclusive bounds, each optional.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Bounds {
    /// Values below it do not match.
    pub min: Option<f64>,
    /// Values above it do not match.
    pub max: Option<f64>,
}

impl Bounds {
    /// Whether every value matches.
    #[must_use]
    pub const fn is_unbounded(self) -> bool {
        self.min.is_none() && self.max.is_none()
    }

    /// Whether the range between these values overlaps this one.
    #[must_use]
    pub fn overlaps(self, low: f64, high: f64) -> bool {
        self.min.is_none_or(|min| high >= min) && self.max.is_none_or(|max| low <= max)
    }

    /// Whether a value matches.
    #[must_use]
    pub fn contains(self, value: f64) -> bool {
        self.overlaps(value, value)
    }
}

/// A set of key counts, for the filter of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
pub struct KeySet(u8);

impl KeySet {
    /// Adds a key count.
    pub const fn insert(&mut self, keys: KeyCount) {
        self.0 |= 1 << keys.get();
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set has this key count.
    #[must_use]
    pub const fn contains(self, keys: KeyCount) -> bool {
        self.0 & (1 << keys.get()) != 0
    }

    /// The key counts, ascending.
    pub fn iter(self) -> impl Iterator<Item = KeyCount> {
        (KeyCount::MIN..=KeyCount::MAX)
            .filter(move |keys| self.0 & (1 << keys) != 0)
            .filter_map(|keys| KeyCount::try_from(keys).ok())
    }
}

impl FromIterator<KeyCount> for KeySet {
    fn from_iter<T: IntoIterator<Item = KeyCount>>(keys: T) -> Self {
        let mut set = Self::default();
        keys.into_iter().for_each(|keys| set.insert(keys));
        set
    }
}

/// Sort keys of the chartset list. Their numbers are in cursors and never change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "camelCase")]
pub enum Sort {
    /// Time of the last change of the chartset.
    #[default]
    Updated = 0,
    /// Folded title.
    Title = 1,
    /// Folded artist.
    Artist = 2,
    /// Highest BPM.
    Bpm = 3,
    /// Highest main BPM of a chart.
    MainBpm = 9,
    /// Length of the longest chart.
    Length = 4,
    /// Highest peak density.
    Density = 5,
    /// Highest rating; 0 without one.
    Rating = 7,
    /// Most notes of a chart.
    Notes = 8,
    /// Quality of the text match, then time of the last change. Without a text, [`Sort::Updated`] is used
    /// instead.
    Relevance = 6,
}

impl Sort {
    /// All sort keys.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The value of the parameter `sort`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The direction if `order` is absent: ascending for names, else descending (docs/api.md, "Chartset list").
    #[must_use]
    pub const fn default_direction(self) -> Direction {
        match self {
            Self::Title | Self::Artist => Direction::Ascending,
            _ => Direction::Descending,
        }
    }
}

/// Sort direction. For [`Sort::Relevance`], descending is best match first. The numbers are in cursors and
/// never change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
pub enum Direction {
    /// Smallest first.
    Ascending = 0,
    /// Largest first.
    #[default]
    Descending = 1,
}

impl Direction {
    /// The other direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }

    /// The value of the parameter `order`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ascending => "asc",
            Self::Descending => "desc",
        }
    }
}

/// Page number and size, both within their limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct PageRequest {
    number: u32,
    size: u32,
}

impl PageRequest {
    /// Items on a page if the query names no size.
    pub const DEFAULT_SIZE: u32 = 30;
    /// The maximum page size (docs/api.md, "Chartset list").
    pub const MAX_SIZE: u32 = 60;
    /// The maximum page number, which is past the end of any catalogue.
    pub const MAX_NUMBER: u32 = i32::MAX as u32;

    /// Clamps both values to their limits.
    #[must_use]
    pub fn clamped(number: i64, size: i64) -> Self {
        let clamp = |value: i64, max: u32| u32::try_from(value.clamp(1, i64::from(max))).unwrap_or(max);
        Self { number: clamp(number, Self::MAX_NUMBER), size: clamp(size, Self::MAX_SIZE) }
    }

    /// The page number, from 1.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// The maximum number of items on the page.
    #[must_use]
    pub const fn size(self) -> u32 {
        self.size
    }

    /// The number of items before the page.
    #[must_use]
    pub const fn offset(self) -> u64 {
        (self.number as u64 - 1) * self.size as u64
    }
}

impl Default for PageRequest {
    fn default() -> Self {
        Self { number: 1, size: Self::DEFAULT_SIZE }
    }
}

/// Where a list begins that is read page after page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum After {
    /// At its first chartset.
    Start,
    /// After this position.
    Position(ListPosition),
}

/// The position of a chartset in a list: its value of the sort, and its id, which breaks ties. The chartset
/// need not be in the list any more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListPosition {
    /// By which the chartset is sorted.
    pub value: SortValue,
    /// Of the chartset.
    pub id: ChartsetId,
}

/// A value by which lists are sorted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum SortValue {
    /// The time of the last change in Unix epoch milliseconds, a length in milliseconds, a rating in
    /// hundredths, or a number of notes. 8 bytes, big-endian.
    Integer(i64),
    /// BPM or density, finite. 8 bytes, big-endian.
    Number(f64),
    /// A folded title or artist, at most [`text::MAX_SORT_KEY_BYTES`]. Their number in 1 byte,
    /// then UTF-8.
    Name(String),
    /// How well a chartset matches the text, then the time of its last change. 1 byte and 8 bytes.
    Relevance(u8, i64),
}
