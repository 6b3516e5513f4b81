//! Checks a recorded history against the model.

mod catalogue;
mod edge;
mod freshness;
mod limits;
mod objects;
mod reads;
mod service;
mod untouched;

use std::time::Duration;

use chart_index_tests::Response;

use self::catalogue::{changed_files, mixed_up_files, wrong_exports, wrong_mirror, wrong_walks};
use self::edge::outlived;
use self::freshness::{filter_lacks_known, shows_removed, stale, wrong_total};
use self::limits::wrong_limits;
use self::objects::{left_objects, wrong_object};
use self::service::{unavailable, wrong_error};
use self::untouched::lacks_untouched;
use crate::clients::{Exchange, Target};
use crate::history::History;
use crate::model::{Chart, Moment};
use crate::names::versions_in;
use crate::operator::{FaultEvent, Scope};

/// Maximum age of what a replica serves while it reaches PostgreSQL (docs/api.md, "Caching and conditional
/// requests").
pub(crate) const MAX_AGE: Duration = Duration::from_secs(5);
/// The same during an outage of PostgreSQL, or of the object store for files, and while reads take too
/// long: longer than a history.
const MAX_AGE_IN_OUTAGE: Duration = Duration::from_hours(1);
/// How long a fault affects responses after its end.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Check {
    /// Every response is a state of the catalogue that is not too old.
    Freshness,
    /// A removal takes effect within 5 s on each replica that reaches PostgreSQL, and at the edge.
    Removal,
    /// A chart or chartset that no command touches is known all the time.
    Untouched,
    /// What was served in the last minute is served while PostgreSQL is unavailable.
    Availability,
    /// ROX files, apart from replaced ones, previews and the hash filters of a sequence never change, and none
    /// is that of another chart.
    Immutability,
    /// Errors have their form, and nothing hangs.
    Errors,
    /// No client has more than 240 requests in a minute, and none is refused below that.
    Limits,
    /// A page walk returns each set once.
    Walks,
    /// A mirror is a past state, a recent one without faults, and ends equal to the index.
    Mirror,
    /// An export is the state at one moment of its command; a hash filter has its charts.
    Exports,
    /// A removal leaves no object of its charts, and a redirect leads to the object that it names.
    Objects,
    /// Everything agrees once all faults have ended.
    Ending,
}

#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) check: Check,
    pub(crate) moment: Moment,
    pub(crate) text: String,
}

/// All violations in the order of their checks and times.
pub(crate) fn check(history: &History) -> Vec<Violation> {
    let mut violations = Vec::new();
    let exchanges = &history.recorded.exchanges;
    let of_exchanges = |find: fn(&History, &Exchange) -> Option<String>| -> Vec<_> {
        exchanges.iter().filter_map(|exchange| Some((exchange.start, find(history, exchange)?))).collect()
    };
    for (check, found) in [
        (Check::Freshness, of_exchanges(stale)),
        (Check::Freshness, of_exchanges(wrong_total)),
        (Check::Freshness, of_exchanges(filter_lacks_known)),
        (Check::Freshness, of_exchanges(outlived)),
        (Check::Removal, of_exchanges(shows_removed)),
        (Check::Untouched, of_exchanges(lacks_untouched)),
        (Check::Availability, unavailable(history)),
        (Check::Limits, wrong_limits(history)),
        (Check::Errors, of_exchanges(wrong_error)),
        (Check::Immutability, changed_files(history)),
        (Check::Immutability, mixed_up_files(history)),
        (Check::Walks, wrong_walks(history)),
        (Check::Mirror, wrong_mirror(history)),
        (Check::Exports, wrong_exports(history)),
        (Check::Objects, of_exchanges(wrong_object)),
        (Check::Objects, left_objects(history)),
        (
            Check::Ending,
            history.ending.violations.iter().map(|text| (history.repaired, text.clone())).collect(),
        ),
    ] {
        let violation = |(moment, text)| Violation { check, moment, text };
        violations.extend(found.into_iter().map(violation));
    }
    violations.sort_by_key(|violation| (violation.check, violation.moment));
    violations
}

impl History {
    /// The faults that affect what happens between two moments, apart from responses with files.
    fn faults(&self, from: Moment, to: Moment) -> impl Iterator<Item = &FaultEvent> {
        self.log.faults.iter().filter(move |fault| {
            !matches!(fault.scope, Scope::Nothing | Scope::ManyChanges | Scope::Objects(_))
                && fault.overlaps(from, to)
        })
    }

    /// The faults of the object store that affect a response which was fetched between two moments: it
    /// needs a file.
    fn object_faults(
        &self,
        exchange: &Exchange,
        from: Moment,
        to: Moment,
    ) -> impl Iterator<Item = &FaultEvent> {
        let (target, is_file) = (exchange.target, exchange.request.is_file());
        self.log.faults.iter().filter(move |fault| {
            let is_affected = match fault.scope {
                Scope::Objects(replica) => replica.is_none_or(|replica| reaches(target, replica)),
                _ => false,
            };
            is_file && is_affected && fault.overlaps(from, to)
        })
    }
}

impl FaultEvent {
    fn overlaps(&self, from: Moment, to: Moment) -> bool {
        self.start <= to && self.end.is_none_or(|end| end + GRACE >= from)
    }
}

/// Whether a ROX file is the first one of its chart: the replacement has another tag (docs/api.md, "ROX file").
fn has_first_file(history: &History, chart: Chart, response: &Response) -> bool {
    response.header("etag").trim_matches('"') == history.names.hash(chart)
}

/// Whether a replica may have handled the request.
fn reaches(target: Target, replica: usize) -> bool {
    !matches!(target, Target::Replica(other) if other != replica)
}

pub(crate) fn describe(exchange: &Exchange) -> String {
    let Exchange { target, request, start, end, response } = exchange;
    let response = match response {
        Ok(Response { status, headers, body }) => {
            let engine =
                headers.get("x-search-engine").and_then(|value| value.to_str().ok()).unwrap_or_default();
            let body = String::from_utf8_lossy(body);
            let start: String = body.chars().take(300).collect();
            let start = if body.starts_with('<') { "" } else { &start };
            let age = headers.get("age").map(|age| format!("aged {age:?} ")).unwrap_or_default();
            format!("{status} {age}{engine} with {:?} {start}", versions_in(&body))
        }
        Err(error) => error.clone(),
    };
    format!("{target:?} {request:?} from {start:.3?} to {end:.3?}: {response}")
}
