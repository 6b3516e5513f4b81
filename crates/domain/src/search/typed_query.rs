//! Parses the parameter `query` of the chartset list: words and filters in one text (docs/api.md, "Chartset
//! list").

mod tokens;
mod values;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use utoipa::ToSchema;

use super::{Bounds, KeySet, ParameterError, SearchQuery};
use crate::{Pattern, SourceKind, text};
use tokens::{Content, Filter, Name, Token};

/// The maximum number of tags of a query, and of titles, artists, creators and tags that it excludes.
pub const MAX_VALUES: usize = 8;

/// Why a part of a typed query is searched for as text, although it looks like a filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Hint {
    /// The part, as it was typed.
    pub token: String,
    /// What is wrong, and what the filter accepts.
    pub reason: Cow<'static, str>,
}

/// A typed query: its words, and its filters with values in range.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TypedQuery {
    /// The words that are no filters, separated by a space; `None` without any.
    pub text: Option<String>,
    /// Key counts; all if empty.
    pub keys: KeySet,
    /// The kind of the source.
    pub source: Option<SourceKind>,
    /// Words of the title, as [`SearchQuery::title`].
    pub title: Option<String>,
    /// Words of the artist, as [`SearchQuery::artist`].
    pub artist: Option<String>,
    /// Tags that chartsets have, as [`SearchQuery::tags`].
    pub tags: BTreeSet<String>,
    /// Part of the creator's name. Trimmed, never empty.
    pub creator: Option<String>,
    /// The main BPM.
    pub bpm_main: Bounds,
    /// In milliseconds.
    pub length_ms: Bounds,
    /// The peak density, in notes per second.
    pub density: Bounds,
    /// In hundredths.
    pub rating: Bounds,
    /// The share of long notes, in percent.
    pub ln_share: Bounds,
    /// The number of notes.
    pub notes: Bounds,
    /// The least shares of rows of these classes, in percent.
    pub patterns: BTreeMap<Pattern, u8>,
    /// Words of titles that do not occur, as [`SearchQuery::excluded_titles`].
    pub excluded_titles: BTreeSet<String>,
    /// Words of artists that do not occur, as [`SearchQuery::excluded_artists`].
    pub excluded_artists: BTreeSet<String>,
    /// Tags that chartsets do not have, as [`SearchQuery::excluded_tags`].
    pub excluded_tags: BTreeSet<String>,
    /// Parts of creators' names that do not occur, as [`SearchQuery::excluded_creators`].
    pub excluded_creators: BTreeSet<String>,
    /// The words that look like filters and are none, in their order.
    pub hints: Vec<Hint>,
}

/// Why a filter is no filter.
type Reason = Cow<'static, str>;

impl TypedQuery {
    /// Parses a typed query. No text is an error: what is no filter is a word.
    #[must_use]
    pub fn parse(query: &str) -> Self {
        let mut parsed = Self::default();
        let mut words = Vec::new();
        for Token { raw, content } in tokens::split(query) {
            let applied = match content {
                Content::Text(text) => {
                    words.push(text);
                    continue;
                }
                Content::Filter(filter) => parsed.apply(&filter),
                Content::UnknownFilter => Err(UNKNOWN_FILTER.into()),
                Content::ExcludedWord => Err(EXCLUDED_WORD.into()),
            };
            if let Err(reason) = applied {
                parsed.hints.push(Hint { token: raw.to_owned(), reason });
                words.push(raw);
            }
        }
        parsed.text = (!words.is_empty()).then(|| words.join(" "));
        parsed
    }

    /// The name of each filter that is no pattern, with its aliases (docs/api.md, "Chartset list").
    pub fn filter_names() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        tokens::NAMES.into_iter().map(|(_, name, aliases)| (name, aliases))
    }

    /// Adds everything but the text to a query with other parameters.
    ///
    /// # Errors
    /// A parameter of the query is for the same as a filter of this one. Its name is returned.
    pub(super) fn add_to(self, query: &mut SearchQuery) -> Result<(), ParameterError> {
        self.check_conflicts(query)?;
        let replace = |bounds: &mut Bounds, typed: Bounds| {
            if !typed.is_unbounded() {
                *bounds = typed;
            }
        };
        replace(&mut query.chart.bpm_main, self.bpm_main);
        replace(&mut query.length_ms, self.length_ms);
        replace(&mut query.chart.rating, self.rating);
        replace(&mut query.chart.ln_share, self.ln_share);
        replace(&mut query.chart.notes, self.notes);
        query.density_min = self.density.min.or(query.density_min);
        query.chart.density_max = self.density.max.or(query.chart.density_max);
        if !self.patterns.is_empty() {
            query.chart.patterns = self.patterns.into_iter().collect();
        }
        if !self.keys.is_empty() {
            query.keys = self.keys;
        }
        query.source = self.source.or(query.source);
        query.creator = self.creator.or_else(|| query.creator.take());
        (query.title, query.artist) = (self.title, self.artist);
        query.tags = self.tags.into_iter().collect();
        query.excluded_titles = self.excluded_titles.into_iter().collect();
        query.excluded_artists = self.excluded_artists.into_iter().collect();
        query.excluded_tags = self.excluded_tags.into_iter().collect();
        query.excluded_creators = self.excluded_creators.into_iter().collect();
        query.hints = self.hints;
        Ok(())
    }

    fn check_conflicts(&self, query: &SearchQuery) -> Result<(), ParameterError> {
        let bounds = |typed: Bounds, given: Bounds| !typed.is_unbounded() && !given.is_unbounded();
        let named = |given: Bounds, min, max| if given.min.is_some() { min } else { max };
        let chart = &query.chart;
        let density = Bounds { min: query.density_min, max: chart.density_max };
        let conflicts = [
            ("keys", !self.keys.is_empty() && !query.keys.is_empty()),
            ("source", self.source.is_some() && query.source.is_some()),
            ("creator", self.creator.is_some() && query.creator.is_some()),
            (named(chart.bpm_main, "mainBpmMin", "mainBpmMax"), bounds(self.bpm_main, chart.bpm_main)),
            (named(query.length_ms, "lengthMin", "lengthMax"), bounds(self.length_ms, query.length_ms)),
            (named(density, "densityMin", "densityMax"), bounds(self.density, density)),
            (named(chart.rating, "ratingMin", "ratingMax"), bounds(self.rating, chart.rating)),
            (named(chart.ln_share, "lnMin", "lnMax"), bounds(self.ln_share, chart.ln_share)),
            (named(chart.notes, "notesMin", "notesMax"), bounds(self.notes, chart.notes)),
            ("pattern", !self.patterns.is_empty() && !chart.patterns.is_empty()),
        ];
        match conflicts.into_iter().find(|(_, is_conflict)| *is_conflict) {
            Some((parameter, _)) => {
                let reason = "must not be given with the same filter in query".into();
                Err(ParameterError { parameter, reason })
            }
            None => Ok(()),
        }
    }

    fn apply(&mut self, filter: &Filter<'_>) -> Result<(), Reason> {
        let accepts = || Cow::Owned(format!("accepts {}", filter.name.accepts()));
        if filter.is_excluded {
            return self.exclude(filter);
        }
        let number = |parse: fn(&str) -> Option<f64>, unit: f64| {
            values::bounds(filter.operator, filter.value, parse, unit).ok_or_else(accepts)
        };
        match filter.name {
            Name::Keys => {
                self.restrict_keys(values::keys(filter.operator, filter.value).ok_or_else(accepts)?)
            }
            Name::Rating => narrow(&mut self.rating, number(values::hundredths, 1.0)?),
            Name::LongNotes => narrow(&mut self.ln_share, number(values::percent, 1.0)?),
            Name::Notes => narrow(&mut self.notes, number(values::number, 1.0)?),
            Name::Length => narrow(&mut self.length_ms, number(values::milliseconds, 1.0)?),
            Name::Bpm => narrow(&mut self.bpm_main, number(values::thousandths, 1_000.0)?),
            Name::Density => narrow(&mut self.density, number(values::thousandths, 1_000.0)?),
            Name::Title => {
                set_once(&mut self.title, values::words(filter.operator, filter.value).ok_or_else(accepts)?)
            }
            Name::Artist => {
                set_once(&mut self.artist, values::words(filter.operator, filter.value).ok_or_else(accepts)?)
            }
            Name::Creator => {
                let creator = values::text(filter.operator, filter.value).ok_or_else(accepts)?;
                set_once(&mut self.creator, creator.to_owned())
            }
            Name::Source => {
                let value = values::text(filter.operator, filter.value);
                let mut kinds = SourceKind::ALL.into_iter();
                let kind =
                    kinds.find(|kind| value.is_some_and(|value| kind.as_str().eq_ignore_ascii_case(value)));
                set_once(&mut self.source, kind.ok_or_else(accepts)?)
            }
            Name::Tag => {
                let tag = values::unquoted(filter.operator, filter.value).ok_or_else(accepts)?;
                add(&mut self.tags, text::sort_key(tag), "filtered by")
            }
            Name::Pattern(pattern) => {
                let least = values::least_share(filter.operator, filter.value).ok_or_else(accepts)?;
                let share = self.patterns.entry(pattern).or_insert(least);
                *share = least.max(*share);
                Ok(())
            }
        }
    }

    fn exclude(&mut self, filter: &Filter<'_>) -> Result<(), Reason> {
        let value = values::unquoted(filter.operator, filter.value);
        let words = || values::words(filter.operator, filter.value).map(|text| text::words(&text).join(" "));
        let (excluded, folded) = match filter.name {
            Name::Title => (&mut self.excluded_titles, words()),
            Name::Artist => (&mut self.excluded_artists, words()),
            Name::Tag => (&mut self.excluded_tags, value.map(text::sort_key)),
            Name::Creator => (&mut self.excluded_creators, value.map(text::fold_case)),
            _ => return Err(EXCLUDED_WORD.into()),
        };
        add(excluded, folded.ok_or("accepts a name, as in -tag:anime")?, "excluded")
    }

    fn restrict_keys(&mut self, keys: KeySet) -> Result<(), Reason> {
        let both =
            keys.iter().filter(|keys| self.keys.is_empty() || self.keys.contains(*keys)).collect::<KeySet>();
        if both.is_empty() {
            return Err(CONTRADICTION.into());
        }
        self.keys = both;
        Ok(())
    }
}

impl SearchQuery {
    /// The text of a parameter `query` with the text, those filters that no other parameter has, and the hints
    /// of this query. `None` if the text alone is a `q`.
    #[must_use]
    pub fn typed_query(&self) -> Option<String> {
        let filters = self.typed_filters();
        if filters.is_empty() && self.hints.is_empty() {
            return None;
        }
        let text = self.text.as_deref().unwrap_or_default();
        if text.contains('"') {
            // A quote that is not closed must not precede others.
            return Some(format!("{filters} {text}").trim().to_owned());
        }
        let typed = format!("{text} {filters}").trim().to_owned();
        let read = TypedQuery::parse(&typed);
        let reads_back = read.text == self.text && read.hints == self.hints;
        Some(if reads_back { typed } else { format!("\"{text}\" {filters}").trim().to_owned() })
    }

    fn typed_filters(&self) -> String {
        let typed = |(name, value): (&str, &String)| {
            let quote = if value.is_empty() || value.contains(char::is_whitespace) { "\"" } else { "" };
            format!("{name}:{quote}{value}{quote}")
        };
        let names = [("title", &self.title), ("artist", &self.artist)];
        let names = names.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let lists = [
            ("tag", &self.tags),
            ("-title", &self.excluded_titles),
            ("-artist", &self.excluded_artists),
            ("-tag", &self.excluded_tags),
            ("-creator", &self.excluded_creators),
        ];
        let lists =
            lists.into_iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
        names.chain(lists).map(typed).collect::<Vec<_>>().join(" ")
    }
}

const CONTRADICTION: &str = "contradicts another filter";
const EXCLUDED_WORD: &str =
    "only titles, artists, creators and tags are excluded, as in -title:remix or -tag:anime";
const UNKNOWN_FILTER: &str = "no filter has this name; there are keys, rating, ln, notes, bpm, length, density, \
                              title, artist, creator, source, tag and the patterns";

/// Adds one of several values.
fn add(values: &mut BTreeSet<String>, value: String, purpose: &str) -> Result<(), Reason> {
    if values.len() >= MAX_VALUES && !values.contains(&value) {
        return Err(format!("at most {MAX_VALUES} are {purpose}").into());
    }
    values.insert(value);
    Ok(())
}

/// Restricts a range to another one.
fn narrow(bounds: &mut Bounds, other: Bounds) -> Result<(), Reason> {
    let stricter = |one: Option<f64>, other: Option<f64>, choose: fn(f64, f64) -> f64| match (one, other) {
        (Some(one), Some(other)) => Some(choose(one, other)),
        (one, other) => one.or(other),
    };
    let both = Bounds {
        min: stricter(bounds.min, other.min, f64::max),
        max: stricter(bounds.max, other.max, f64::min),
    };
    if both.min.zip(both.max).is_some_and(|(min, max)| min > max) {
        return Err(CONTRADICTION.into());
    }
    *bounds = both;
    Ok(())
}

fn set_once<T>(field: &mut Option<T>, value: T) -> Result<(), Reason> {
    if field.is_some() {
        return Err("occurs more than once".into());
    }
    *field = Some(value);
    Ok(())
}

#[cfg(test)]
mod tests;
