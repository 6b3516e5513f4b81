//! The settings of an index and the experimental features of a node.

use std::fmt;

use meilisearch_sdk::settings::{
    FilterFeatureModes, FilterFeatures, FilterableAttribute, FilterableAttributesSettings,
    MinWordSizeForTypos, PaginationSetting, Settings, TypoToleranceSettings,
};
use serde_json::{Value, json};

use crate::document::{CODED_WORDS, RATING_BINS, SEARCHABLE};
use crate::sort_keys::{self, ReadFrom};
use crate::{chart_values, rating_bins};
use chart_index_domain::search::{Direction, Sort};

/// More than any index has. Totals above this number would be wrong; the default is 1,000.
const MAX_TOTAL_HITS: usize = 1_000_000_000;
/// Longer than any timeout of this program: Meilisearch returns a search that it cut off unsorted, without any
/// sign of it. A search that returns before the timeout was not cut off.
pub(crate) const SEARCH_CUTOFF_MS: u64 = 60_000;

/// The experimental features that searches use, where the node has them.
///
/// `containsFilter` searches part of a creator's name. Without `legacySearch`, a search loads every document
/// that a deep page skips. Both are off in a new node.
pub(crate) const FEATURES: [&str; 2] = ["containsFilter", "legacySearch"];

pub(crate) fn chartsets() -> Settings {
    Settings::new()
        .with_ranking_rules(ranking_rules())
        .with_searchable_attributes(SEARCHABLE)
        .with_displayed_attributes(["*"])
        .with_sortable_attributes(sort_keys::sortable_attributes())
        .with_filterable_attributes_advanced([
            filterable(&["keys", "sourceKind", "creatorCodes", sort_keys::TAG_KEYS], true, false),
            filterable(&["bpmMin", "bpmMax", "lengthMinMs", "lengthMaxMs", "densityMax"], false, true),
            filterable(&chart_values::ATTRIBUTES, false, true),
            // No query filters by it, but only what is filterable is counted.
            filterable(&[RATING_BINS], true, false),
        ])
        .with_max_values_per_facet(rating_bins::VALUES)
        .with_pagination(PaginationSetting { max_total_hits: MAX_TOTAL_HITS })
        .with_search_cutoff(SEARCH_CUTOFF_MS)
        .with_proximity_precision("byWord")
        .with_stop_words(Vec::<String>::new())
        .with_typo_tolerance(TypoToleranceSettings {
            enabled: Some(true),
            disable_on_attributes: Some(vec![CODED_WORDS.to_owned()]),
            disable_on_words: Some(Vec::new()),
            min_word_size_for_typos: Some(MinWordSizeForTypos { one_typo: Some(5), two_typos: Some(9) }),
            disable_on_numbers: Some(true),
        })
}

/// The sort of the search decides alone. Without one the best match comes first, then the most recently updated
/// set.
fn ranking_rules() -> Vec<String> {
    let rules = ["sort", "words", "typo", "proximity", "attribute", "exactness"].map(str::to_owned);
    rules
        .into_iter()
        .chain(sort_keys::sort_terms(Sort::Updated, Direction::Descending, ReadFrom::Start))
        .collect()
}

fn filterable(attributes: &[&str], equality: bool, comparison: bool) -> FilterableAttribute {
    FilterableAttribute::Settings(FilterableAttributesSettings {
        attribute_patterns: attributes.iter().map(ToString::to_string).collect(),
        features: FilterFeatures { facet_search: false, filter: FilterFeatureModes { equality, comparison } },
    })
}

/// A setting of an index, or a feature of a node, that differs from what this program sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingDifference {
    /// The setting of the index with that name has another value.
    Setting(String),
    /// The experimental feature of the node with that name is off.
    FeatureOff(String),
}

impl fmt::Display for SettingDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(name) => write!(f, "setting {name}: differs from the value that this version sets"),
            Self::FeatureOff(name) => write!(f, "experimental feature {name}: off"),
        }
    }
}

/// Settings that this program leaves at the defaults of a new index, but that would change the results.
fn defaults() -> [(&'static str, Value); 7] {
    [
        ("distinctAttribute", Value::Null),
        ("synonyms", json!({})),
        ("prefixSearch", json!("indexingTime")),
        ("dictionary", json!([])),
        ("separatorTokens", json!([])),
        ("nonSeparatorTokens", json!([])),
        ("localizedAttributes", Value::Null),
    ]
}

/// The settings of a node that differ from those of this program. The node returns more settings than this
/// program sets, and some lists in another order.
pub(crate) fn differences(ours: &Settings, actual: &Value) -> Vec<SettingDifference> {
    let ours = serde_json::to_value(ours).unwrap_or_default();
    let set = ours.as_object().into_iter().flatten();
    let differing = set
        .filter(|(name, expected)| {
            !actual.get(name).is_some_and(|actual| setting_includes(name, actual, expected))
        })
        .map(|(name, _)| name.clone());
    // Some versions of Meilisearch lack some of these.
    let defaults =
        defaults().into_iter().filter(|(name, value)| actual.get(name).is_some_and(|actual| actual != value));
    differing.chain(defaults.map(|(name, _)| name.to_owned())).map(SettingDifference::Setting).collect()
}

/// Whether the actual value has everything of the expected one. Objects may have more fields.
fn includes(actual: &Value, expected: &Value) -> bool {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => expected.iter().all(|(name, expected)| {
            actual.get(name).is_some_and(|actual| setting_includes(name, actual, expected))
        }),
        (Value::Array(actual), Value::Array(expected)) => {
            let mut pairs = actual.iter().zip(expected);
            actual.len() == expected.len() && pairs.all(|(actual, expected)| includes(actual, expected))
        }
        (actual, expected) => actual == expected,
    }
}

/// The same for a setting by name. Meilisearch returns the sortable attributes, whose order has no meaning,
/// sorted.
fn setting_includes(name: &str, actual: &Value, expected: &Value) -> bool {
    match (name, actual, expected) {
        ("sortableAttributes", Value::Array(actual), Value::Array(expected)) => {
            actual.len() == expected.len() && expected.iter().all(|attribute| actual.contains(attribute))
        }
        _ => includes(actual, expected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_is_the_first_ranking_rule() {
        let rules = ranking_rules();
        assert_eq!(rules[0], "sort");
        assert_eq!(rules[6..8], ["updated36:desc", "updated30:desc"]);
        assert_eq!(rules.last().map(String::as_str), Some("id:asc"));
    }

    #[test]
    fn additional_settings_and_other_orders_are_equal() {
        let ours = chartsets();
        let mut actual = serde_json::to_value(&ours).unwrap();
        actual["synonyms"] = json!({});
        actual["sortableAttributes"].as_array_mut().unwrap().reverse();
        assert_eq!(differences(&ours, &actual), []);
        for (name, other) in [
            ("searchCutoffMs", json!(1_500)),
            ("pagination", json!({ "maxTotalHits": 1_000 })),
            ("rankingRules", json!(["words", "sort"])),
            ("sortableAttributes", json!(["id"])),
            ("searchableAttributes", json!(["*"])),
            ("filterableAttributes", json!(["keys"])),
            ("distinctAttribute", json!("titleKey")),
            ("synonyms", json!({ "a": ["b"] })),
        ] {
            let mut actual = actual.clone();
            actual[name] = other;
            assert_eq!(differences(&ours, &actual), [SettingDifference::Setting(name.to_owned())]);
        }
    }
}
