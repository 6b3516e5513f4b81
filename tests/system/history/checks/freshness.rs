//! Whether each response is a state of the catalogue that is not too old.

use std::time::Duration;

use chart_index_tests::Response;
use serde_json::Value;

use super::edge::{purged_until, removals_purged_until};
use super::reads::{fetched, is_slow, lacks_postgres};
use super::{MAX_AGE, MAX_AGE_IN_OUTAGE, describe, has_first_file, reaches};
use crate::clients::{Exchange, Request, Target};
use crate::hash_filter;
use crate::history::History;
use crate::lists;
use crate::mirror::content;
use crate::model::{CHARTS, Chart, Entry, SETS, Set, State};
use crate::names::{source_id, versions_in};
use crate::operator::{FaultEvent, Scope};
use crate::writers::{CommandEvent, Outcome};

/// `follow` applies changes to search nodes about a second later (docs/operations/removals.md).
const USUAL_SEARCH_LAG: Duration = Duration::from_secs(1);
/// The same of a list while a search node or its sync fails: `SEARCH_MAX_LAG_MS` more.
const MAX_AGE_OF_SEARCH: Duration = Duration::from_secs(35);
/// How much older the total of a list may be than its items (docs/api.md, "Chartset list").
const MAX_AGE_OF_TOTAL: Duration = Duration::from_secs(30);

/// Says so if no state explains the response.
pub(super) fn stale(history: &History, exchange: &Exchange) -> Option<String> {
    let response = exchange.response.as_ref().ok()?;
    if !matches!(response.status.as_u16(), 200 | 302 | 404) {
        return None;
    }
    let json = serde_json::from_slice(&response.body).unwrap_or(Value::Null);
    let Request::Batch(charts) = &exchange.request else {
        return stale_part(history, exchange, &exchange.request, response, &json);
    };
    // The items of a batch may be of different moments.
    charts.iter().enumerate().find_map(|(index, chart)| {
        let item = &json["items"][index];
        stale_part(history, exchange, &Request::Lookup(*chart), response, item)
    })
}

/// The same of a response or an item of a batch.
fn stale_part(
    history: &History,
    exchange: &Exchange,
    request: &Request,
    response: &Response,
    json: &Value,
) -> Option<String> {
    let is_explained = |state: &&State| explains(history, state, request, response, json);
    let max_age =
        if lacks_objects(history, exchange) { MAX_AGE_IN_OUTAGE } else { max_age(history, exchange) };
    // The replicas have read nothing before the first request.
    let first = history.recorded.exchanges.first().map_or(Duration::ZERO, |first| first.start);
    let (fetched, purged) = (fetched(exchange).0, purged_until(history, exchange));
    let since = |age| fetched.saturating_sub(age).max(first.saturating_sub(MAX_AGE)).max(purged);
    let is_explained_since =
        |age| history.states.within(since(age), exchange.end).iter().any(|state| is_explained(&state));
    if is_explained_since(max_age) || is_slow(history, exchange) && is_explained_since(MAX_AGE_IN_OUTAGE) {
        return None;
    }
    let from = since(max_age);
    if is_mixed(request, response) && is_explained(&&history.states.union(from, exchange.end)) {
        return None;
    }
    let older = history.states.within(Duration::ZERO, exchange.end).iter().rfind(is_explained);
    let age = match older {
        Some(state) => format!("like the state at {:.3?}", state.start),
        None => "like no earlier state".to_owned(),
    };
    Some(format!("{}, {request:?} {age}, may be {max_age:?} old", describe(exchange)))
}

/// Whether a response may show chartsets of different moments: a search node has each as it was when it was
/// last read.
fn is_mixed(request: &Request, response: &Response) -> bool {
    match request {
        Request::List(_) => response.header("x-search-engine") == "meilisearch",
        _ => request.is_search(),
    }
}

fn explains(history: &History, state: &State, request: &Request, response: &Response, json: &Value) -> bool {
    let History { states, names, .. } = history;
    let status = response.status.as_u16();
    match request {
        Request::Lookup(chart) => is_lookup(history, state, *chart, json),
        Request::Variants(chart) => {
            is_lookup(history, state, *chart, json) && variants_are_known(history, state, json)
        }
        Request::Batch(_) => panic!("its items are checked one by one"),
        Request::Rox(chart) if status == 200 => {
            states.may_be_known(state, *chart, true)
                // What was erased may come back as a replacement.
                && (history.log.erased.contains(chart)
                    || state.may_have_file(*chart, !has_first_file(history, *chart, response)))
        }
        Request::Rox(chart) | Request::Preview(chart) => states.may_be_known(state, *chart, status != 404),
        Request::ChartPage(chart) => {
            states.may_be_known(state, *chart, status == 200) && are_possible(history, state, response)
        }
        Request::Detail(set) => {
            let appearance = match status {
                200 => match content(json, *set, names) {
                    Ok(content) => Some(content),
                    Err(_) => return false,
                },
                _ => None,
            };
            states.appearances(state, *set).contains(&appearance)
        }
        Request::Redirect(set) | Request::SetPage(set) => {
            let is_shown = matches!(status, 200 | 302);
            states.appearances(state, *set).iter().any(|appearance| appearance.is_some() == is_shown)
                && are_possible(history, state, response)
        }
        Request::List(query) => lists::explains(states, state, query, json, names),
        Request::ListPage | Request::Feed => {
            are_possible(history, state, response) && are_complete(history, state, response)
        }
        Request::HashFilter | Request::HashFilterFile(_) | Request::Object(..) => true,
    }
}

/// Says so if no total of the last seconds explains that of a list.
pub(super) fn wrong_total(history: &History, exchange: &Exchange) -> Option<String> {
    let (Request::List(query), Ok(response)) = (&exchange.request, &exchange.response) else { return None };
    if response.status != 200 {
        return None;
    }
    let is_slow = is_slow(history, exchange);
    let max_age = if is_slow { MAX_AGE_IN_OUTAGE } else { max_age(history, exchange) } + MAX_AGE_OF_TOTAL;
    let from = fetched(exchange).0.saturating_sub(max_age);
    let (least, most) = if is_mixed(&exchange.request, response) {
        lists::totals(&history.states, &history.states.union(from, exchange.end), query)
    } else {
        let states = history.states.within(from, exchange.end).iter();
        let totals = states.map(|state| lists::totals(&history.states, state, query));
        totals.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?
    };
    let total = response.json()["total"].as_u64().unwrap_or(u64::MAX);
    (!(least..=most).contains(&total))
        .then(|| format!("total of {max_age:?} is {least} to {most}: {}", describe(exchange)))
}

/// Says so if a hash filter lacks a chart that was known when the last command began that has built a filter,
/// and since.
pub(super) fn filter_lacks_known(history: &History, exchange: &Exchange) -> Option<String> {
    let (Request::HashFilterFile(_), Ok(response)) = (&exchange.request, &exchange.response) else {
        return None;
    };
    // The edge may have an earlier redirect.
    if response.status != 200 || exchange.target == Target::Edge {
        return None;
    }
    let charts = match hash_filter::charts_in(&response.body, &history.names) {
        Ok(charts) => charts,
        Err(error) => return Some(error.to_string()),
    };
    let has_built = |command: &&CommandEvent| {
        command.end + MAX_AGE <= exchange.start
            && command.outcome == Outcome::Succeeded
            && ["ingest", "restore", "filter"]
                .iter()
                .any(|verb| command.words.contains(&format!(": {verb} ")))
    };
    let built = history.log.commands.iter().filter(has_built).map(|command| command.start).max();
    let is_outage =
        |from| history.faults(from, exchange.end).any(|fault| lacks_postgres(fault, exchange.target));
    // An earlier filter is served during an outage, and after a reset.
    let known_since = built.filter(|from| !is_outage(*from)).unwrap_or_default();
    let states = history.states.within(known_since, exchange.end);
    let is_known = |chart| states.iter().all(|state| !history.states.may_be_known(state, chart, false));
    let lacking: Vec<_> = (0..CHARTS).filter(|chart| is_known(*chart) && !charts.contains(chart)).collect();
    (!lacking.is_empty())
        .then(|| format!("lacks {lacking:?}, known since {known_since:.3?}: {}", describe(exchange)))
}

/// Whether all sets that a page names may appear as it says.
fn are_possible(history: &History, state: &State, response: &Response) -> bool {
    versions_in(&String::from_utf8_lossy(&response.body)).iter().all(|(set, version)| {
        let mut appearances = history.states.appearances(state, *set).iter().flatten();
        appearances.any(|(possible, _)| possible == version)
    })
}

/// Whether a page names all sets that certainly appear.
fn are_complete(history: &History, state: &State, response: &Response) -> bool {
    let named = versions_in(&String::from_utf8_lossy(&response.body));
    let is_named = |set| named.iter().any(|(named, _)| *named == set);
    (0..SETS).all(|set| history.states.appearances(state, set).contains(&None) || is_named(set))
}

fn is_lookup(history: &History, state: &State, chart: Chart, json: &Value) -> bool {
    let is_known = json["status"] == "known";
    if !history.states.may_be_known(state, chart, is_known) {
        return false;
    }
    if !is_known {
        return true;
    }
    let sources = json["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let sources: Vec<_> = sources.iter().filter_map(|source| source["ref"].as_str()).collect();
    let title = format!(" {}", json["chart"]["title"].as_str().unwrap_or_default());
    (0..SETS).all(|set: Set| {
        let position = sources.iter().position(|source| *source == source_id(set).to_string());
        let mut appearances = history.states.appearances(state, set).iter();
        appearances.any(|appearance| match (position, appearance) {
            // The metadata is that of the first source.
            (Some(0), Some((version, charts))) => {
                charts.contains(&chart) && versions_in(&title) == [(set, *version)]
            }
            (Some(_), Some((_, charts))) => charts.contains(&chart),
            (Some(_), None) => false,
            (None, appearance) => appearance.as_ref().is_none_or(|(_, charts)| !charts.contains(&chart)),
        })
    })
}

/// Whether the charts with the same variant may be known.
fn variants_are_known(history: &History, state: &State, json: &Value) -> bool {
    let items = json["variants"].as_array().map(Vec::as_slice).unwrap_or_default();
    let hashes: Vec<_> = items.iter().filter_map(|item| item["hash"].as_str()).collect();
    let may_be_listed = |chart: &Chart| history.states.may_be_known(state, *chart, true);
    let listed = (0..CHARTS).filter(|chart| hashes.contains(&history.names.hash(*chart)));
    hashes.len() == listed.filter(may_be_listed).count()
}

/// Says so if a response shows a chart or a set that has been removed for longer than its maximum age.
pub(super) fn shows_removed(history: &History, exchange: &Exchange) -> Option<String> {
    let response = exchange.response.as_ref().ok()?;
    if !matches!(response.status.as_u16(), 200 | 302) {
        return None;
    }
    let shown = match &exchange.request {
        Request::Lookup(chart) | Request::Variants(chart) if response.json()["status"] == "known" => {
            vec![Entry::ChartRemoval(*chart)]
        }
        Request::Rox(chart) | Request::Preview(chart) | Request::ChartPage(chart) => {
            vec![Entry::ChartRemoval(*chart)]
        }
        Request::Detail(set) | Request::Redirect(set) | Request::SetPage(set) => {
            vec![Entry::SetRemoval(*set)]
        }
        request if request.is_search() => {
            let named = versions_in(&String::from_utf8_lossy(&response.body));
            named.into_iter().map(|(set, _)| Entry::SetRemoval(set)).collect()
        }
        _ => return None,
    };
    let from = fetched(exchange).0.saturating_sub(max_age(history, exchange));
    let from = from.max(removals_purged_until(history, exchange));
    let states = history.states.within(from, exchange.end);
    let entry = shown.into_iter().find(|entry| states.iter().all(|state| state.is_removed(*entry)))?;
    Some(format!("{entry:?} is removed: {}", describe(exchange)))
}

/// The maximum age of a response when it was fetched.
fn max_age(history: &History, exchange: &Exchange) -> Duration {
    let (from, to) = fetched(exchange);
    let from = from.saturating_sub(MAX_AGE);
    let age = |fault: &FaultEvent| match fault.scope {
        _ if lacks_postgres(fault, exchange.target) => MAX_AGE_IN_OUTAGE,
        Scope::Search | Scope::Follow if exchange.request.is_search() => MAX_AGE_OF_SEARCH,
        _ => MAX_AGE,
    };
    let undisturbed = MAX_AGE + search_lag(history, exchange);
    history.faults(from, to).map(age).fold(undisturbed, Duration::max)
}

/// Whether a replica may have served an older file, since it could not read it again. Removals are in force
/// anyway.
fn lacks_objects(history: &History, exchange: &Exchange) -> bool {
    let (from, to) = fetched(exchange);
    history.object_faults(exchange, from.saturating_sub(MAX_AGE), to).next().is_some()
}

/// How far the search nodes lagged behind the sync's usual second when the response may have been read.
fn search_lag(history: &History, exchange: &Exchange) -> Duration {
    let (from, to) = fetched(exchange);
    let from = from.saturating_sub(MAX_AGE);
    let observations = history.recorded.observations.iter().filter(|observation| {
        reaches(exchange.target, observation.replica) && observation.end >= from && observation.start <= to
    });
    let lags =
        observations.filter(|_| exchange.request.is_search()).map(|observation| observation.search_lag);
    lags.max().filter(|lag| *lag > USUAL_SEARCH_LAG).unwrap_or_default()
}
