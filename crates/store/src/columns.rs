//! The columns of a chartset that follow from its charts.

use chart_index_domain::{Chartset, ChartsetId, KeyCount, Keywords, text};

use crate::error::corrupt;
use crate::rows::{self, parse_source};
use crate::words::lexemes;

/// The derived columns that lists show, in the order of [`listed_columns`].
#[derive(Debug, Clone, Default, PartialEq, sqlx::FromRow)]
pub(crate) struct ListedColumns {
    pub(crate) title: String,
    pub(crate) artist: String,
    pub(crate) creator: String,
    pub(crate) source_kind: Option<String>,
    pub(crate) source_ref: Option<String>,
    pub(crate) keys: Vec<i16>,
    pub(crate) bpm_min: f64,
    pub(crate) bpm_max: f64,
    pub(crate) length_min_ms: i64,
    pub(crate) length_max_ms: i64,
    pub(crate) density_max: f64,
    pub(crate) chart_count: i32,
}

/// The derived columns of the keywords, in the order of [`keyword_columns`].
#[derive(Debug, Clone, Default, PartialEq, sqlx::FromRow)]
pub(crate) struct KeywordColumns {
    pub(crate) tags: Vec<String>,
    pub(crate) romanised_names: Vec<String>,
}

/// The derived columns that searches use.
#[derive(Debug, Clone, Default, PartialEq, sqlx::FromRow)]
pub(crate) struct SearchColumns {
    pub(crate) title_sort: String,
    pub(crate) artist_sort: String,
    pub(crate) creator_search: String,
    /// The lexemes of `search_words`.
    pub(crate) lexemes: Vec<String>,
}

/// Every derived column. The default is a set without visible charts, which is not shown.
#[derive(Debug, Clone, Default, PartialEq, sqlx::FromRow)]
pub(crate) struct DerivedColumns {
    #[sqlx(flatten)]
    pub(crate) listed: ListedColumns,
    #[sqlx(flatten)]
    pub(crate) keywords: KeywordColumns,
    #[sqlx(flatten)]
    pub(crate) search: SearchColumns,
}

/// The names of the columns of [`ListedColumns`].
macro_rules! listed_columns {
    () => {
        "title, artist, creator, source_kind, source_ref, keys, bpm_min, bpm_max, length_min_ms, \
         length_max_ms, density_max, chart_count"
    };
}
pub(crate) use listed_columns;

/// The names of the columns of [`KeywordColumns`].
macro_rules! keyword_columns {
    () => {
        "tags, romanised_names"
    };
}
pub(crate) use keyword_columns;

/// Binds every derived column to a query: those of [`listed_columns`], of [`keyword_columns`], then of
/// [`SearchColumns`], in order.
macro_rules! bind_derived_columns {
    ($query:expr, $columns:expr) => {{
        let crate::columns::DerivedColumns { listed, keywords, search } = $columns;
        $query
            .bind(&listed.title)
            .bind(&listed.artist)
            .bind(&listed.creator)
            .bind(&listed.source_kind)
            .bind(&listed.source_ref)
            .bind(&listed.keys)
            .bind(listed.bpm_min)
            .bind(listed.bpm_max)
            .bind(listed.length_min_ms)
            .bind(listed.length_max_ms)
            .bind(listed.density_max)
            .bind(listed.chart_count)
            .bind(&keywords.tags)
            .bind(&keywords.romanised_names)
            .bind(&search.title_sort)
            .bind(&search.artist_sort)
            .bind(&search.creator_search)
            .bind(&search.lexemes)
    }};
}
pub(crate) use bind_derived_columns;

impl DerivedColumns {
    /// The columns of a chartset as [`chart_index_domain::assemble_chartset`] gives it.
    pub(crate) fn new(assembled: Option<(Chartset, Keywords)>) -> Self {
        let Some((set, keywords)) = assembled else { return Self::default() };
        let search = SearchColumns {
            title_sort: text::sort_key(&set.title),
            artist_sort: text::sort_key(&set.artist),
            creator_search: text::lower_case(&set.creator),
            lexemes: lexemes(&set, &keywords),
        };
        Self { listed: ListedColumns::new(set), keywords: KeywordColumns::new(keywords), search }
    }
}

impl ListedColumns {
    fn new(set: Chartset) -> Self {
        let (source_kind, source_ref) = rows::source_columns(set.source.as_ref());
        Self {
            title: set.title,
            artist: set.artist,
            creator: set.creator,
            source_kind,
            source_ref,
            keys: set.keys.iter().map(|keys| i16::from(keys.get())).collect(),
            bpm_min: set.bpm_min,
            bpm_max: set.bpm_max,
            length_min_ms: set.length_min_ms.into(),
            length_max_ms: set.length_max_ms.into(),
            density_max: set.density_max,
            chart_count: i32::try_from(set.chart_count).unwrap_or(i32::MAX),
        }
    }

    pub(crate) fn into_chartset(self, id: ChartsetId) -> Result<Chartset, sqlx::Error> {
        Ok(Chartset {
            id,
            source: parse_source(self.source_kind.as_deref(), self.source_ref.as_deref())?,
            title: self.title,
            artist: self.artist,
            creator: self.creator,
            keys: self.keys.into_iter().map(parse_keys).collect::<Result<_, _>>()?,
            bpm_min: self.bpm_min,
            bpm_max: self.bpm_max,
            length_min_ms: u32::try_from(self.length_min_ms).map_err(corrupt)?,
            length_max_ms: u32::try_from(self.length_max_ms).map_err(corrupt)?,
            density_max: self.density_max,
            chart_count: u32::try_from(self.chart_count).map_err(corrupt)?,
        })
    }
}

impl KeywordColumns {
    fn new(keywords: Keywords) -> Self {
        Self { tags: keywords.tags, romanised_names: keywords.romanised_names }
    }

    pub(crate) fn into_keywords(self) -> Keywords {
        Keywords { tags: self.tags, romanised_names: self.romanised_names }
    }
}

pub(crate) fn parse_keys(keys: i16) -> Result<KeyCount, sqlx::Error> {
    let keys = u8::try_from(keys).map_err(corrupt)?;
    KeyCount::try_from(keys).map_err(corrupt)
}
