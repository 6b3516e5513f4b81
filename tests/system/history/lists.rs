//! Lists, as the model expects them.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::clients::{Filter, Query, Sort};
use crate::model::{self, Appearance, Chart, SETS, Set, State, States, Version};
use crate::names::{self, Names};

/// An item of a list.
type Item<'a> = (Set, Version, &'a [Chart]);

/// Whether a page may be the response to a query in this state.
pub(crate) fn explains(states: &States, state: &State, query: &Query, page: &Value, names: &Names) -> bool {
    let appearances = states.all_appearances(state);
    let items = page["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(sets) = items.iter().map(|item| names.set(item["id"].as_str()?)).collect::<Option<Vec<_>>>()
    else {
        return false;
    };
    let are_explained = items.iter().zip(&sets).all(|(item, set)| {
        appearances[*set as usize].iter().flatten().any(|(version, charts)| {
            is_item(item, *set, *version, charts) && matches(query.filter, *set, charts)
        })
    });
    if !are_explained {
        return false;
    }
    if let Some(expected) = expected(appearances, query, names) {
        let first = match (&query.after, sets.first()) {
            (None, _) => (query.page - 1) * query.per_page,
            (Some(_), None) => expected.len(),
            (Some(_), Some(set)) => expected.iter().position(|other| other == set).unwrap_or(expected.len()),
        };
        let slice: Vec<_> = expected.iter().skip(first).take(query.per_page).copied().collect();
        let is_same = match query.sort {
            Sort::Updated => slice.len() == sets.len() && sets.iter().all(|set| expected.contains(set)),
            _ => slice == sets,
        };
        return is_same;
    }
    let has_one_page = query.page == 1 && query.after.is_none() && query.per_page >= SETS as usize;
    let is_certain = |set: &Set| !may_match(states, state, query, *set, false);
    !has_one_page || (0..SETS).filter(is_certain).all(|set| sets.contains(&set))
}

/// The least and the greatest total that a query may have in this state.
pub(crate) fn totals(states: &States, state: &State, query: &Query) -> (u64, u64) {
    let number =
        |matching| (0..SETS).filter(|set| may_match(states, state, query, *set, matching)).count() as u64;
    (u64::from(SETS) - number(false), number(true))
}

/// Whether a set may match, or may not.
fn may_match(states: &States, state: &State, query: &Query, set: Set, matching: bool) -> bool {
    states.appearances(state, set).iter().any(|appearance| {
        let is_match = appearance.as_ref().is_some_and(|(_, charts)| matches(query.filter, set, charts));
        is_match == matching
    })
}

/// The sets of the whole list in their order; `None` if a set may appear in several ways.
pub(crate) fn expected(
    appearances: &[BTreeSet<Appearance>],
    query: &Query,
    names: &Names,
) -> Option<Vec<Set>> {
    let mut items: Vec<Item<'_>> = Vec::new();
    for (set, appearances) in (0..).zip(appearances) {
        match appearances.iter().collect::<Vec<_>>()[..] {
            [Some((version, charts))] if matches(query.filter, set, charts) => {
                items.push((set, *version, charts));
            }
            [_] => (),
            _ => return None,
        }
    }
    items.sort_by(|a, b| compare(query.sort, a, b).then_with(|| names.id(a.0).cmp(names.id(b.0))));
    Some(items.into_iter().map(|(set, ..)| set).collect())
}

fn compare(sort: Sort, a: &Item<'_>, b: &Item<'_>) -> Ordering {
    let largest = |item: &Item<'_>| item.2.iter().max().copied();
    match sort {
        Sort::Updated => Ordering::Equal,
        Sort::Title => names::title(a.0, a.1).cmp(&names::title(b.0, b.1)),
        // Both grow with the number of the chart.
        Sort::Bpm | Sort::Length => largest(b).cmp(&largest(a)),
    }
}

/// Whether a chartset with these charts matches a filter.
pub(crate) fn matches(filter: Filter, set: Set, charts: &[Chart]) -> bool {
    match filter {
        Filter::All => true,
        Filter::Keys(keys) => charts.iter().any(|chart| names::keys(*chart) == keys),
        Filter::BpmMin(bpm) => charts.iter().any(|chart| names::bpm(*chart) >= bpm),
        Filter::LengthMax(seconds) => charts.iter().any(|chart| names::length_ms(*chart) <= seconds * 1000),
        Filter::Word(word) => names::word(set) == word,
    }
}

fn is_item(item: &Value, set: Set, version: Version, charts: &[Chart]) -> bool {
    let range = |value: fn(Chart) -> u32| {
        let values = || charts.iter().map(|chart| f64::from(value(*chart)));
        (values().reduce(f64::min), values().reduce(f64::max))
    };
    let keys: BTreeSet<u64> = charts.iter().map(|chart| names::keys(*chart).into()).collect();
    let item_keys: BTreeSet<u64> =
        item["keys"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    item["title"] == names::title(set, version)
        && item["chartCount"] == charts.iter().map(|chart| model::count(*chart)).sum::<u32>()
        && item_keys == keys
        && (item["bpmMin"].as_f64(), item["bpmMax"].as_f64()) == range(names::bpm)
        && (item["lengthMinMs"].as_f64(), item["lengthMaxMs"].as_f64()) == range(names::length_ms)
}
