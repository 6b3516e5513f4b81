//! A query of the Browse page, with every default applied and every value in range.

use serde::Serialize;

use crate::{KeyCount, SourceKind, text};

/// What to list, in which order, and which page of it. The default is the whole catalogue, newest first.
///
/// Serialised, queries that differ are different: answers are kept by that. Numbers are finite.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SearchQuery {
    /// Every word of it must match in title, artist, creator or tags. Trimmed, never empty. A text without a letter or
    /// digit matches no set ([`SearchQuery::matches_nothing`]).
    pub text: Option<String>,
    /// Sets that hold any of these key counts; empty for all.
    pub keys: KeySet,
    /// Only sets of this source.
    pub source: Option<SourceKind>,
    /// Part of the creator's name, whatever its case. Trimmed, never empty.
    pub creator: Option<String>,
    /// The set's BPM range overlaps this one.
    pub bpm: Bounds,
    /// The set's range of lengths overlaps this one, in whole milliseconds.
    pub length_ms: Bounds,
    /// The set's highest peak density is at least this many notes per second.
    pub density_min: Option<f64>,
    /// What the sets are ordered by; ties are broken by id, ascending.
    pub sort: Sort,
    /// Which way.
    pub direction: Direction,
    /// Which page.
    pub page: PageRequest,
}

impl SearchQuery {
    /// Whether no set of any catalogue matches: the text holds no letter and no digit (docs/api.md, `q`).
    #[must_use]
    pub fn matches_nothing(&self) -> bool {
        self.text.as_deref().is_some_and(|text| text::words(text).is_empty())
    }
}

/// A range, both ends inclusive, either of which may be open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Bounds {
    /// The lower end.
    pub min: Option<f64>,
    /// The upper end.
    pub max: Option<f64>,
}

/// A set of key counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
pub struct KeySet(u8);

impl KeySet {
    /// Adds a key count.
    pub const fn insert(&mut self, keys: KeyCount) {
        self.0 |= 1 << keys.get();
    }

    /// Whether there is no key count in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
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

/// What chartsets are ordered by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
pub enum Sort {
    /// When the set last changed in the index.
    #[default]
    Updated,
    /// Folded title.
    Title,
    /// Folded artist.
    Artist,
    /// Highest BPM.
    Bpm,
    /// Length of the longest chart.
    Length,
    /// Highest peak density.
    Density,
    /// How well the text matches, then newest first. Only with a text: without one it is [`Sort::Updated`].
    Relevance,
}

impl Sort {
    /// Every sort, in the order in which the documentation names them.
    pub const ALL: [Self; 7] =
        [Self::Updated, Self::Title, Self::Artist, Self::Bpm, Self::Length, Self::Density, Self::Relevance];

    /// The value of the parameter `sort`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Updated => "updated",
            Self::Title => "title",
            Self::Artist => "artist",
            Self::Bpm => "bpm",
            Self::Length => "length",
            Self::Density => "density",
            Self::Relevance => "relevance",
        }
    }

    /// The direction when `order` does not say: names ascend, all else descends (decisions, "List").
    #[must_use]
    pub const fn default_direction(self) -> Direction {
        match self {
            Self::Title | Self::Artist => Direction::Ascending,
            _ => Direction::Descending,
        }
    }
}

/// Which way a sort goes. For [`Sort::Relevance`], descending is the best match first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
pub enum Direction {
    /// Smallest first.
    Ascending,
    /// Largest first.
    #[default]
    Descending,
}

impl Direction {
    /// The value of the parameter `order`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ascending => "asc",
            Self::Descending => "desc",
        }
    }
}

/// A page by number and size, both within their limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct PageRequest {
    number: u32,
    size: u32,
}

impl PageRequest {
    /// The size of a page that does not ask for one.
    pub const DEFAULT_SIZE: u32 = 30;
    /// The largest page (contract, "Limits").
    pub const MAX_SIZE: u32 = 60;
    /// The highest page number that is told apart. With the largest page it lies past any catalogue.
    pub const MAX_NUMBER: u32 = i32::MAX as u32;

    /// The page with both values clamped into their limits.
    #[must_use]
    pub fn clamped(number: i64, size: i64) -> Self {
        let clamp = |value: i64, max: u32| u32::try_from(value.clamp(1, i64::from(max))).unwrap_or(max);
        Self { number: clamp(number, Self::MAX_NUMBER), size: clamp(size, Self::MAX_SIZE) }
    }

    /// The page number; the first page is 1.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// How many items fill the page.
    #[must_use]
    pub const fn size(self) -> u32 {
        self.size
    }

    /// How many items lie before the page.
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
