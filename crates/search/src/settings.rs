//! The settings of an index and of a node, all of them.

use std::fmt;

use meilisearch_sdk::settings::{
    FilterFeatureModes, FilterFeatures, FilterableAttribute, FilterableAttributesSettings,
    MinWordSizeForTypos, PaginationSetting, Settings, TypoToleranceSettings,
};
use serde_json::{Value, json};

use crate::document::{CODED, SEARCHED};
use crate::order::{self, Walk};
use chart_index_domain::search::{Direction, Sort};

/// Above any index. Above 1,000, which it is by default, a total would no longer be true.
const MAX_TOTAL_HITS: usize = 1_000_000_000;
/// Above any deadline of ours: a search that is cut off comes back unsorted and does not say so. One that answered
/// in time was not.
pub(crate) const SEARCH_CUTOFF_MS: u64 = 60_000;

/// The experimental features that searches use, where the node has them.
///
/// Without `containsFilter` part of a creator's name cannot be looked for. Without `legacySearch`, searches load every
/// document that a deep page skips. Either is off in a new node.
pub(crate) const FEATURES: [&str; 2] = ["containsFilter", "legacySearch"];

/// What of a node this program sets on an index of chartsets.
pub(crate) fn chartsets() -> Settings {
    Settings::new()
        .with_ranking_rules(ranking_rules())
        .with_searchable_attributes(SEARCHED)
        .with_displayed_attributes(["*"])
        .with_sortable_attributes(order::sortable_attributes())
        .with_filterable_attributes_advanced([
            filterable(&["keys", "sourceKind", "creatorCodes"], true, false),
            filterable(&["bpmMin", "bpmMax", "lengthMinMs", "lengthMaxMs", "densityMax"], false, true),
        ])
        .with_pagination(PaginationSetting { max_total_hits: MAX_TOTAL_HITS })
        .with_search_cutoff(SEARCH_CUTOFF_MS)
        .with_proximity_precision("byWord")
        .with_stop_words(Vec::<String>::new())
        .with_typo_tolerance(TypoToleranceSettings {
            enabled: Some(true),
            disable_on_attributes: Some(vec![CODED.to_owned()]),
            disable_on_words: Some(Vec::new()),
            min_word_size_for_typos: Some(MinWordSizeForTypos { one_typo: Some(5), two_typos: Some(9) }),
            disable_on_numbers: Some(true),
        })
}

/// The sort that is asked for decides alone. Without one the best match comes first, then the newest.
fn ranking_rules() -> Vec<String> {
    let rules = ["sort", "words", "typo", "proximity", "attribute", "exactness"].map(str::to_owned);
    rules.into_iter().chain(order::terms(Sort::Updated, Direction::Descending, Walk::Forward)).collect()
}

fn filterable(attributes: &[&str], equality: bool, comparison: bool) -> FilterableAttribute {
    FilterableAttribute::Settings(FilterableAttributesSettings {
        attribute_patterns: attributes.iter().map(ToString::to_string).collect(),
        features: FilterFeatures { facet_search: false, filter: FilterFeatureModes { equality, comparison } },
    })
}

/// What of an index or a node is otherwise than this program sets it.
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
            Self::Setting(name) => write!(f, "setting {name}: another value than this version sets"),
            Self::FeatureOff(name) => write!(f, "experimental feature {name}: off"),
        }
    }
}

/// The settings that this program leaves at the defaults of a new index, where another value changes what is found.
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

/// The settings in which what a node tells is not what this program sets, by name. It tells of more than are set, and
/// sorts some lists.
pub(crate) fn differences(ours: &Settings, told: &Value) -> Vec<SettingDifference> {
    let ours = serde_json::to_value(ours).unwrap_or_default();
    let set = ours.as_object().into_iter().flatten();
    let differing = set
        .filter(|(name, asked)| !told.get(name).is_some_and(|told| holds_setting(name, told, asked)))
        .map(|(name, _)| name.clone());
    // A version of Meilisearch may lack one of these.
    let defaults =
        defaults().into_iter().filter(|(name, value)| told.get(name).is_some_and(|told| told != value));
    differing.chain(defaults.map(|(name, _)| name.to_owned())).map(SettingDifference::Setting).collect()
}

/// Whether what is told says all that is asked.
fn holds(told: &Value, asked: &Value) -> bool {
    match (told, asked) {
        (Value::Object(told), Value::Object(asked)) => asked
            .iter()
            .all(|(name, asked)| told.get(name).is_some_and(|told| holds_setting(name, told, asked))),
        (Value::Array(told), Value::Array(asked)) => {
            told.len() == asked.len() && told.iter().zip(asked).all(|(told, asked)| holds(told, asked))
        }
        (told, asked) => told == asked,
    }
}

/// The order of sortable attributes means nothing, and Meilisearch has its own.
fn holds_setting(name: &str, told: &Value, asked: &Value) -> bool {
    match (name, told, asked) {
        ("sortableAttributes", Value::Array(told), Value::Array(asked)) => {
            told.len() == asked.len() && asked.iter().all(|attribute| told.contains(attribute))
        }
        _ => holds(told, asked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_decides_before_every_other_rule() {
        let rules = ranking_rules();
        assert_eq!(rules[0], "sort");
        assert_eq!(rules[6..8], ["updated36:desc", "updated30:desc"]);
        assert_eq!(rules.last().map(String::as_str), Some("id:asc"));
    }

    #[test]
    fn settings_agree_when_a_node_tells_of_more_and_in_another_order() {
        let ours = chartsets();
        let mut told = serde_json::to_value(&ours).unwrap();
        told["synonyms"] = json!({});
        told["sortableAttributes"].as_array_mut().unwrap().reverse();
        assert_eq!(differences(&ours, &told), []);
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
            let mut told = told.clone();
            told[name] = other;
            assert_eq!(differences(&ours, &told), [SettingDifference::Setting(name.to_owned())]);
        }
    }
}
