//! What was read by several requests or by commands: files, page walks, the mirror and exports.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::reads::is_slow;
use super::{MAX_AGE, MAX_AGE_IN_OUTAGE, describe, has_first_file};
use crate::clients::{Request, Target, Walk};
use crate::history::History;
use crate::lists;
use crate::mirror::MirrorState;
use crate::model::{CHARTS, Chart, Moment, SETS, Set, UNTOUCHED_CHARTS, count};
use crate::operator::Scope;
use crate::writers::{Export, Filter};

pub(super) fn changed_files(history: &History) -> Vec<(Moment, String)> {
    let has_resets = history.log.faults.iter().any(|fault| fault.scope == Scope::Reset);
    // By request, and for a ROX file whether it is the first one. The edge expands compressed files, and leaves
    // the tag of the compressed form.
    let (mut bodies, mut tags) = (BTreeMap::new(), BTreeMap::new());
    let mut violations = Vec::new();
    for exchange in &history.recorded.exchanges {
        let Ok(response) = &exchange.response else { continue };
        // What was erased, or lost in a restore, may come back from another file.
        let may_be_lost = match &exchange.request {
            Request::Rox(chart) | Request::Preview(chart) => {
                has_resets && !UNTOUCHED_CHARTS.contains(chart) || history.log.erased.contains(chart)
            }
            Request::HashFilterFile(_) => has_resets,
            _ => continue,
        };
        if response.status != 200 || may_be_lost {
            continue;
        }
        let (body, tag) = (response.body.as_slice(), response.header("etag"));
        let is_first =
            matches!(exchange.request, Request::Rox(chart) if has_first_file(history, chart, response));
        let (file, is_edge) = ((&exchange.request, is_first), exchange.target == Target::Edge);
        let has_changed =
            *bodies.entry(file).or_insert(body) != body || *tags.entry((file, is_edge)).or_insert(tag) != tag;
        if has_changed {
            violations.push((exchange.start, describe(exchange)));
        }
    }
    violations
}

/// Files that were served for several charts: no two have the same notes.
pub(super) fn mixed_up_files(history: &History) -> Vec<(Moment, String)> {
    let mut owners = BTreeMap::new();
    let mut violations = Vec::new();
    for exchange in &history.recorded.exchanges {
        let (Request::Rox(chart) | Request::Preview(chart) | Request::Object(chart, _)) = exchange.request
        else {
            continue;
        };
        let response = exchange.response.as_ref().ok().filter(|response| response.status == 200);
        if response.is_some_and(|response| *owners.entry(&response.body).or_insert(chart) != chart) {
            violations.push((exchange.start, format!("of another chart: {}", describe(exchange))));
        }
    }
    violations
}

pub(super) fn wrong_walks(history: &History) -> Vec<(Moment, String)> {
    let mut violations = Vec::new();
    for walk in &history.recorded.walks {
        let mut pages = history.recorded.exchanges.iter().filter(|exchange| walk.includes(exchange));
        let is_slow = pages.any(|page| is_slow(history, page));
        let from = walk.start.saturating_sub(if is_slow { MAX_AGE_IN_OUTAGE } else { MAX_AGE });
        if history.faults(from, walk.end).next().is_some() {
            continue;
        }
        if walk.query.after.is_some() {
            let wrong = (0..SETS)
                .filter(|set| is_wrong_in_walk(history, walk, from, *set))
                .map(|set| history.names.id(set));
            let wrong: Vec<_> = wrong.collect();
            if !wrong.is_empty() {
                violations.push((walk.start, format!("{walk:?}: {wrong:?} did not change")));
            }
            continue;
        }
        let expected =
            history.states.within(from, walk.end).iter().map(|state| {
                lists::expected(history.states.all_appearances(state), &walk.query, &history.names)
            });
        let mut expected: Vec<_> = expected.collect();
        expected.dedup();
        let [Some(expected)] = expected.as_slice() else { continue };
        let ids: Vec<_> = expected.iter().map(|set| history.names.id(*set)).collect();
        if ids != walk.ids {
            violations.push((walk.start, format!("{:?}: {:?}, expected {ids:?}", walk.query, walk.ids)));
        }
    }
    violations
}

/// Whether a set that did not change is in a walk by cursor not as often as it matches, whatever else changed.
fn is_wrong_in_walk(history: &History, walk: &Walk, from: Moment, set: Set) -> bool {
    let states = history.states.within(from, walk.end);
    let mut appearances: Vec<_> = states.iter().map(|state| history.states.appearances(state, set)).collect();
    appearances.dedup();
    let [appearances] = appearances[..] else { return false };
    let mut appearances = appearances.iter();
    let (Some(appearance), None) = (appearances.next(), appearances.next()) else { return false };
    let matches =
        appearance.as_ref().is_some_and(|(_, charts)| lists::matches(walk.query.filter, set, charts));
    let returned = walk.ids.iter().filter(|id| *id == history.names.id(set)).count();
    returned != usize::from(matches)
}

pub(super) fn wrong_mirror(history: &History) -> Vec<(Moment, String)> {
    let is_past_state = |mirror: &MirrorState| {
        let recent = mirror.start.saturating_sub(MAX_AGE);
        let is_disturbed = history.faults(recent, mirror.end).next().is_some();
        let from = if is_disturbed { Duration::ZERO } else { recent };
        history.states.within(from, mirror.end).iter().any(|state| {
            let has_set =
                |set| history.states.appearances(state, set).contains(&mirror.sets.get(&set).cloned());
            let has_chart =
                |chart: Chart| history.states.may_be_known(state, chart, mirror.charts.contains(&chart));
            (0..SETS).all(has_set) && (0..CHARTS).all(has_chart)
        })
    };
    let wrong = history.mirror.states.iter().filter(|mirror| !is_past_state(mirror));
    let mut violations: Vec<_> = wrong
        .map(|mirror| (mirror.end, format!("no past state: {:?}, {:?}", mirror.sets, mirror.charts)))
        .collect();
    violations.extend(history.mirror.violations.iter().map(|text| (history.repaired, text.clone())));
    let resets = history.log.faults.iter().filter(|fault| fault.scope == Scope::Reset).count();
    if history.mirror.lost > resets {
        violations
            .push((history.repaired, format!("{} times 410, but {resets} resets", history.mirror.lost)));
    }
    violations
}

/// Exports and hash filters.
pub(super) fn wrong_exports(history: &History) -> Vec<(Moment, String)> {
    let is_state = |export: &Export| {
        let Ok(records) = &export.records else { return false };
        history.states.within(export.start, export.end).iter().any(|state| {
            (0..SETS).all(|set| history.states.appearances(state, set).contains(&records.get(&set).cloned()))
        })
    };
    let wrong = history.log.exports.iter().filter(|export| !is_state(export));
    let exports =
        wrong.map(|export| (export.start, format!("no state within the command: {:?}", export.records)));
    let has_filter = |filter: &Filter| {
        let Ok(charts) = &filter.charts else { return false };
        history.states.within(filter.start, filter.end).iter().any(|state| {
            let may_be =
                |known| (0..CHARTS).filter(move |chart| history.states.may_be_known(state, *chart, known));
            let unknown: BTreeSet<Chart> = may_be(false).collect();
            let least: u32 = (0..CHARTS).filter(|chart| !unknown.contains(chart)).map(count).sum();
            (least..=may_be(true).map(count).sum()).contains(&filter.count)
                && (0..CHARTS).all(|chart| unknown.contains(&chart) || charts.contains(&chart))
        })
    };
    let filters = history.log.filters.iter().filter(|filter| !has_filter(filter));
    let filters = filters.map(|filter| (filter.start, format!("no state has these charts: {filter:?}")));
    exports.chain(filters).collect()
}
