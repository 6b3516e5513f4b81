//! What the edge may serve: what it fetched while it was current, if no purge of it is due
//! (docs/operations/cdn.md).

use std::time::Duration;

use chart_index_tests::Response;

use super::reads::{age, fetched, is_slow, lacks_postgres};
use super::{MAX_AGE, describe};
use crate::clients::{Exchange, Request, Target};
use crate::history::History;
use crate::model::Moment;
use crate::operator::{FaultEvent, Scope};

/// All three purges of a change are done within this time.
const PURGED_WITHIN: Duration = Duration::from_secs(8);
/// The same while there are many changes, apart from removals: 1,000 charts are 17 purges.
const PURGED_AFTER_MANY_WITHIN: Duration = Duration::from_secs(10);
/// Purges are repeated within this time after a failure: the timeout of a request, and a pause.
const REPEATED_WITHIN: Duration = Duration::from_secs(13);
/// A response from a replica that cannot show it to be current is fresh for a minute.
const UNCONFIRMED_LIFETIME: Duration = Duration::from_mins(1);
/// For how long a response that is not fresh is served while nothing can be fetched.
const STALE_LIFETIME: Duration = Duration::from_mins(1);

/// The moment of whose changes all purges are done that affect the response; zero if nothing purges it.
pub(super) fn purged_until(history: &History, exchange: &Exchange) -> Moment {
    if !is_purged_by_its_tag(exchange) {
        return Moment::ZERO;
    }
    let from = exchange.start.saturating_sub(PURGED_AFTER_MANY_WITHIN);
    let are_many = |fault: &FaultEvent| {
        fault.scope == Scope::ManyChanges && overlaps(fault, from, exchange.end, Duration::ZERO)
    };
    let within =
        if history.log.faults.iter().any(are_many) { PURGED_AFTER_MANY_WITHIN } else { PURGED_WITHIN };
    purges_done(history, exchange, within)
}

/// The same of the removals that affect the response: they purge all that may show it.
pub(super) fn removals_purged_until(history: &History, exchange: &Exchange) -> Moment {
    // Replicas whose standby fails may serve what a first purge should have ended.
    let from = exchange.start.saturating_sub(PURGED_WITHIN);
    let mut faults = history.log.faults.iter().filter(|fault| fault.scope != Scope::ManyChanges);
    let is_disturbed = faults.any(|fault| overlaps(fault, from, exchange.end, MAX_AGE));
    purges_done(history, exchange, if is_disturbed { PURGED_WITHIN } else { MAX_AGE })
}

/// The last moment of whose changes the purges are done, which take this long without faults.
fn purges_done(history: &History, exchange: &Exchange, within: Duration) -> Moment {
    if exchange.target != Target::Edge || is_unconfirmed(history, exchange) {
        return Moment::ZERO;
    }
    let mut done = exchange.start.saturating_sub(within);
    loop {
        let faults = history.log.faults.iter().filter(|fault| stops_purges(fault));
        let overlapping = faults.filter(|fault| overlaps(fault, done, exchange.end, REPEATED_WITHIN));
        let earlier = overlapping.map(|fault| fault.start.saturating_sub(within)).min();
        match earlier.filter(|earlier| *earlier < done) {
            Some(earlier) => done = earlier,
            None => return done,
        }
    }
}

/// Says so if the edge has kept a response for longer than it may.
pub(super) fn outlived(history: &History, exchange: &Exchange) -> Option<String> {
    let response = exchange.response.as_ref().ok()?;
    if exchange.target != Target::Edge || is_purged_by_its_tag(exchange) {
        return None;
    }
    let lifetime = max_age(response)?;
    let from = exchange.start.saturating_sub(MAX_AGE);
    let is_disturbed = history.faults(from, exchange.end).next().is_some()
        || history.object_faults(exchange, from, exchange.end).next().is_some();
    let lifetime = if is_disturbed { lifetime + STALE_LIFETIME } else { lifetime };
    let age = age(exchange);
    (age > lifetime).then(|| format!("{age:?} old, may be {lifetime:?}: {}", describe(exchange)))
}

fn is_purged_by_its_tag(exchange: &Exchange) -> bool {
    let status = exchange.response.as_ref().map_or(0, |response| response.status.as_u16());
    match exchange.request {
        Request::Lookup(_) | Request::Detail(_) => status == 200,
        Request::Rox(_) | Request::Preview(_) => matches!(status, 200 | 302 | 404),
        Request::Redirect(_) => status == 302,
        _ => false,
    }
}

/// Whether the replica may have been unable to show that the response is current, and the edge has it still.
fn is_unconfirmed(history: &History, exchange: &Exchange) -> bool {
    let (from, to) = fetched(exchange);
    let from = from.saturating_sub(MAX_AGE);
    let is_outage = history.faults(from, to).any(|fault| lacks_postgres(fault, exchange.target))
        || history.object_faults(exchange, from, to).next().is_some();
    age(exchange) <= UNCONFIRMED_LIFETIME + STALE_LIFETIME && (is_outage || is_slow(history, exchange))
}

/// Whether `follow` does not learn of changes, or does not reach the edge.
fn stops_purges(fault: &FaultEvent) -> bool {
    matches!(fault.scope, Scope::Postgres | Scope::Reset | Scope::Follow | Scope::Purges | Scope::Edge)
}

/// Whether a fault, or this time after it, overlaps an interval.
fn overlaps(fault: &FaultEvent, from: Moment, to: Moment, after: Duration) -> bool {
    fault.start <= to && fault.end.is_none_or(|end| end + after >= from)
}

/// The `max-age` of `Cache-Control`.
fn max_age(response: &Response) -> Option<Duration> {
    let mut directives = response.header("cache-control").split(", ");
    directives.find_map(|directive| directive.strip_prefix("max-age=")?.parse().ok()).map(Duration::from_secs)
}
