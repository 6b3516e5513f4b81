//! Parses the parameter `query` of the chartset list: words and filters in one text (docs/api.md, "Chartset
//! list").

mod tokens;
mod values;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Bounds, KeySet, ParameterError, SearchQuery};
use crate::{Pattern, SourceKind, text};
use tokens::{Content, Filter, Name, Token};

/// The maximum number of tags, and of creators, that a query excludes.
pub const MAX_EXCLUSIONS: usize = 8;

/// Why a part of a typed query is searched for as text, although it looks like a filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// Part of the creator's name. Trimmed, never empty.
    pub creator: Option<String>,
    /// In beats per minute.
    pub bpm: Bounds,
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
    /// Tags that chartsets do not have, as [`SearchQuery::excluded_tags`].
    pub excluded_tags: BTreeSet<String>,
    /// Parts of creators' names that do not occur, as [`SearchQuery::excluded_creators`].
    pub excluded_creators: BTreeSet<String>,
    /// The filters that are malformed, in their order.
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
            match content {
                Content::Text(text) => words.push(text),
                Content::Filter(filter) => {
                    if let Err(reason) = parsed.apply(&filter) {
                        parsed.hints.push(Hint { token: raw.to_owned(), reason });
                        words.push(raw);
                    }
                }
            }
        }
        parsed.text = (!words.is_empty()).then(|| words.join(" "));
        parsed
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
        replace(&mut query.bpm, self.bpm);
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
            (named(query.bpm, "bpmMin", "bpmMax"), bounds(self.bpm, query.bpm)),
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
            Name::Bpm => narrow(&mut self.bpm, number(values::thousandths, 1_000.0)?),
            Name::Density => narrow(&mut self.density, number(values::thousandths, 1_000.0)?),
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
            Name::Tag => Err(accepts()),
            Name::Pattern(pattern) => {
                let least = values::least_share(filter.operator, filter.value).ok_or_else(accepts)?;
                let share = self.patterns.entry(pattern).or_insert(least);
                *share = least.max(*share);
                Ok(())
            }
        }
    }

    fn exclude(&mut self, filter: &Filter<'_>) -> Result<(), Reason> {
        // Without quotes, so that every exclusion can be typed again.
        let value = values::text(filter.operator, filter.value).filter(|value| !value.contains('"'));
        let (excluded, folded) = match (filter.name, value) {
            (Name::Tag, Some(tag)) => (&mut self.excluded_tags, text::sort_key(tag)),
            (Name::Creator, Some(part)) => (&mut self.excluded_creators, text::fold_case(part)),
            (Name::Tag | Name::Creator, None) => return Err("accepts a name, as in -tag:anime".into()),
            _ => return Err("only tags and creators are excluded, as in -tag:anime".into()),
        };
        if excluded.len() >= MAX_EXCLUSIONS && !excluded.contains(&folded) {
            return Err(format!("at most {MAX_EXCLUSIONS} are excluded").into());
        }
        excluded.insert(folded);
        Ok(())
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
    /// The text of a parameter `query` with the text, the exclusions and the hints of this query: what no other
    /// parameter has. `None` if the text alone is a `q`.
    #[must_use]
    pub fn typed_query(&self) -> Option<String> {
        let exclusions = self.exclusions();
        if exclusions.is_empty() && self.hints.is_empty() {
            return None;
        }
        let text = self.text.as_deref().unwrap_or_default();
        if text.contains('"') {
            // A quote that is not closed must not precede others.
            return Some(format!("{exclusions} {text}").trim().to_owned());
        }
        let typed = format!("{text} {exclusions}").trim().to_owned();
        let read = TypedQuery::parse(&typed);
        let reads_back = read.text == self.text && read.hints == self.hints;
        Some(if reads_back { typed } else { format!("\"{text}\" {exclusions}").trim().to_owned() })
    }

    fn exclusions(&self) -> String {
        let typed = |name: &str, value: &str| {
            let quote = if value.is_empty() || value.contains(char::is_whitespace) { "\"" } else { "" };
            format!("-{name}:{quote}{value}{quote}")
        };
        let tags = self.excluded_tags.iter().map(|tag| typed("tag", tag));
        let creators = self.excluded_creators.iter().map(|part| typed("creator", part));
        tags.chain(creators).collect::<Vec<_>>().join(" ")
    }
}

const CONTRADICTION: &str = "contradicts another filter";

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
