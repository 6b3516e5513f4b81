//! Errors and availability.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{GRACE, MAX_AGE, describe};
use crate::clients::{Exchange, Request, Target};
use crate::history::History;
use crate::model::Moment;
use crate::operator::Scope;
use crate::writers::CommandEvent;

/// Responses of the last minute are served during an outage.
const RECENT: Duration = Duration::from_mins(1);
/// `REQUEST_DEADLINE_MS`, and a second for a busy machine.
const DEADLINE: Duration = Duration::from_secs(6);
/// `timeout server` of HAProxy, with a retry.
const DEADLINE_OF_HAPROXY: Duration = Duration::from_secs(12);

pub(super) fn wrong_error(history: &History, exchange: &Exchange) -> Option<String> {
    let Exchange { target, start, end, .. } = *exchange;
    if matches!(exchange.request, Request::Object(..)) {
        return None;
    }
    let is_target_up = !history.faults(start, end).any(|fault| match fault.scope {
        Scope::Replica(replica) => target == Target::Replica(replica),
        Scope::Haproxy => matches!(target, Target::Haproxy | Target::Edge),
        Scope::Edge => target == Target::Edge,
        _ => false,
    });
    let deadline = if matches!(target, Target::Replica(_)) { DEADLINE } else { DEADLINE_OF_HAPROXY };
    if end.saturating_sub(start) > deadline && is_target_up {
        return Some(format!("took longer than {deadline:?}: {}", describe(exchange)));
    }
    let Ok(response) = &exchange.response else { return is_target_up.then(|| describe(exchange)) };
    let code = response.status.as_u16();
    if code >= 400 && response.header("content-type") != "application/problem+json" {
        return Some(format!("no problem details: {}", describe(exchange)));
    }
    if code == 503 && response.header("retry-after").is_empty() {
        return Some(format!("no Retry-After: {}", describe(exchange)));
    }
    let from = start.saturating_sub(GRACE);
    let is_disturbed = history.faults(from, end).next().is_some()
        || history
            .object_faults(exchange, from, end)
            .any(|fault| code == 503 || fault.name.starts_with("LoseObjects"));
    if (code >= 500 && !is_disturbed) || code == 429 {
        return Some(format!("without a fault: {}", describe(exchange)));
    }
    None
}

pub(super) fn unavailable(history: &History) -> Vec<(Moment, String)> {
    // When the last successful request for each response began: it may be as old as that.
    let mut served: BTreeMap<(Target, &Request), Moment> = BTreeMap::new();
    let mut violations = Vec::new();
    let mut exchanges: Vec<_> = history.recorded.exchanges.iter().collect();
    exchanges.sort_by_key(|exchange| exchange.end);
    for exchange in exchanges {
        let Exchange { target, request, start, end, .. } = exchange;
        let Target::Replica(replica) = *target else { continue };
        let status = exchange.response.as_ref().map_or(0, |response| response.status.as_u16());
        let outage = history.faults(*start, *end).find(|fault| {
            matches!(fault.scope, Scope::Postgres) || fault.scope == Scope::ReplicaPostgres(replica)
        });
        let outage = outage.or_else(|| history.object_faults(exchange, *start, *end).next());
        let last = served.get(&(*target, request));
        if let (Some(outage), Some(last), 503) = (outage, last, status) {
            let is_recent = *last + RECENT >= outage.start;
            let is_restarted = history
                .faults(*last, *end)
                .any(|fault| fault.scope == Scope::Replica(replica) && fault.name.starts_with("Kill"));
            // During the outage it cannot learn of a removal from just before.
            let known = (*last).min(outage.start).saturating_sub(MAX_AGE);
            let may_be_removed = || may_show_removed(history, request, known, *end);
            if is_recent && !is_restarted && request.is_cached() && !may_be_removed() {
                let text = format!("served at {last:.3?}, then {}", describe(exchange));
                violations.push((*start, text));
            }
        }
        if matches!(status, 200 | 302) {
            served.insert((*target, request), *start);
        }
    }
    violations
}

/// Whether a response may show what a command has removed since. A replica that knows of a removal serves
/// nothing that it may affect, and does not know what lists and pages contain.
fn may_show_removed(history: &History, request: &Request, from: Moment, to: Moment) -> bool {
    let names = &history.names;
    let mut commands =
        history.log.commands.iter().filter(|command| command.start <= to && command.end >= from);
    // A list contains charts and chartsets. A chart that was removed or replaced belongs to a chartset of any
    // name.
    let is_of_chart = |words: &str| words.contains("remove chart ") || words.contains("replace-rox ");
    commands.any(|CommandEvent { words, .. }| match request {
        _ if words.contains("remove --from") => true,
        Request::Lookup(chart) | Request::Rox(chart) | Request::Preview(chart) => {
            words.contains("remove chartset") || words.contains(names.hash(*chart))
        }
        Request::Detail(set) | Request::Redirect(set) => is_of_chart(words) || words.contains(names.id(*set)),
        _ => words.contains("remove ") || words.contains("replace-rox "),
    })
}
