//! The columns of `chartsets` that are derived from the charts of a chartset.

use chart_index_domain::{Chartset, ChartsetId, Keywords, text};

use crate::error::corrupt;
use crate::schema::column_values::{parse_keys, parse_source, source_columns};
use crate::schema::statement_columns::{Columns, Parameters, array_literal};
use crate::schema::text_search::{Names, tsvector};

/// The columns that lists show: those of [`listed_columns`].
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

/// The columns with keywords. Searches match them; lists do not show them.
#[derive(Debug, Clone, Default, PartialEq, sqlx::FromRow)]
pub(crate) struct KeywordColumns {
    pub(crate) tags: Vec<String>,
    pub(crate) romanised_names: Vec<String>,
}

/// The columns that searches use, and the lexemes of `search_words`.
#[derive(Debug, Clone, Default, PartialEq, sqlx::FromRow)]
pub(crate) struct SearchColumns {
    pub(crate) title_sort: String,
    pub(crate) artist_sort: String,
    pub(crate) creator_search: String,
    /// Stored as the `tsvector` `search_words`.
    pub(crate) lexemes: Vec<String>,
}

/// Every derived column. The default is that of a chartset without visible charts, which is not shown.
#[derive(Debug, Clone, Default, PartialEq, sqlx::FromRow)]
pub(crate) struct DerivedColumns {
    #[sqlx(flatten)]
    pub(crate) listed: ListedColumns,
    #[sqlx(flatten)]
    pub(crate) keywords: KeywordColumns,
    #[sqlx(flatten)]
    pub(crate) search: SearchColumns,
}

/// The column names of [`ListedColumns`].
macro_rules! listed_columns {
    () => {
        "title, artist, creator, source_kind, source_ref, keys, bpm_min, bpm_max, length_min_ms, \
         length_max_ms, density_max, chart_count"
    };
}
pub(crate) use listed_columns;

impl DerivedColumns {
    /// Converts the result of [`chart_index_domain::assemble_chartset`].
    pub(crate) fn new(assembled: Option<(Chartset, Keywords)>) -> Self {
        let Some((set, keywords)) = assembled else { return Self::default() };
        let (listed, keywords) = (ListedColumns::new(set), KeywordColumns::new(keywords));
        let search = SearchColumns::new(&listed, &keywords);
        Self { listed, keywords, search }
    }

    /// Adds every derived column of these chartsets to a statement.
    pub(crate) fn add_to(chartsets: &[&Self], columns: &mut Columns, parameters: &mut Parameters) {
        let listed = || chartsets.iter().map(|derived| &derived.listed);
        let keywords = || chartsets.iter().map(|derived| &derived.keywords);
        columns.add("title", parameters.bind(collect(listed().map(|set| &set.title))));
        columns.add("artist", parameters.bind(collect(listed().map(|set| &set.artist))));
        columns.add("creator", parameters.bind(collect(listed().map(|set| &set.creator))));
        columns.add("source_kind", parameters.bind(collect(listed().map(|set| &set.source_kind))));
        columns.add("source_ref", parameters.bind(collect(listed().map(|set| &set.source_ref))));
        let keys = listed().map(|set| array_literal(set.keys.iter().map(i16::to_string)));
        columns.add_cast("keys", "smallint[]", parameters.bind(collect(keys)));
        columns.add("bpm_min", parameters.bind(collect(listed().map(|set| set.bpm_min))));
        columns.add("bpm_max", parameters.bind(collect(listed().map(|set| set.bpm_max))));
        columns.add("length_min_ms", parameters.bind(collect(listed().map(|set| set.length_min_ms))));
        columns.add("length_max_ms", parameters.bind(collect(listed().map(|set| set.length_max_ms))));
        columns.add("density_max", parameters.bind(collect(listed().map(|set| set.density_max))));
        columns.add("chart_count", parameters.bind(collect(listed().map(|set| set.chart_count))));
        let tags = keywords().map(|set| array_literal(&set.tags));
        columns.add_cast("tags", "text[]", parameters.bind(collect(tags)));
        let romanised = keywords().map(|set| array_literal(&set.romanised_names));
        columns.add_cast("romanised_names", "text[]", parameters.bind(collect(romanised)));
        SearchColumns::add_to(&collect(chartsets.iter().map(|set| &set.search)), columns, parameters);
    }
}

fn collect<T>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.collect()
}

impl SearchColumns {
    /// Folds the names and the tags.
    pub(crate) fn new(listed: &ListedColumns, keywords: &KeywordColumns) -> Self {
        let names = Names {
            title: &listed.title,
            artist: &listed.artist,
            creator: &listed.creator,
            romanised: &keywords.romanised_names,
            tags: &keywords.tags,
        };
        Self {
            title_sort: text::sort_key(&listed.title),
            artist_sort: text::sort_key(&listed.artist),
            creator_search: text::fold_case(&listed.creator),
            lexemes: names.lexemes(),
        }
    }

    /// Adds the columns of these chartsets to a statement.
    pub(crate) fn add_to(chartsets: &[&Self], columns: &mut Columns, parameters: &mut Parameters) {
        let sets = || chartsets.iter();
        columns.add("title_sort", parameters.bind(collect(sets().map(|set| &set.title_sort))));
        columns.add("artist_sort", parameters.bind(collect(sets().map(|set| &set.artist_sort))));
        columns.add("creator_search", parameters.bind(collect(sets().map(|set| &set.creator_search))));
        let words = sets().map(|set| tsvector(&set.lexemes));
        columns.add_cast("search_words", "tsvector", parameters.bind(collect(words)));
    }
}

impl ListedColumns {
    fn new(set: Chartset) -> Self {
        let (source_kind, source_ref) = source_columns(set.source.as_ref());
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
