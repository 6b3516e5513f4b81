//! When a response was read, and what may have kept a replica from reading its current state.

use std::time::Duration;

use super::reaches;
use crate::clients::{Exchange, Target};
use crate::history::History;
use crate::model::Moment;
use crate::operator::{FaultEvent, Scope};

/// A read that takes longer is replaced by an older response (docs/api.md, "Caching and conditional requests").
const SLOW_READ: Duration = Duration::from_millis(500);
/// It goes on until 5 s after its begin. If it fails, those of the same within the next second are replaced as
/// well.
const RETRY_AFTER_SLOW_READ: Duration = Duration::from_millis(5_000 - 500 + 1_000);

/// The time for which the edge had the response.
pub(super) fn age(exchange: &Exchange) -> Duration {
    match &exchange.response {
        Ok(response) if exchange.target == Target::Edge => {
            Duration::from_secs(response.header("age").parse().unwrap_or_default())
        }
        _ => Duration::ZERO,
    }
}

/// The start and the end of the request to which a replica or HAProxy responded: that of the edge, if the edge
/// had the response.
pub(super) fn fetched(exchange: &Exchange) -> (Moment, Moment) {
    let (start, end) = (exchange.start, exchange.end);
    if exchange.target != Target::Edge {
        return (start, end);
    }
    // `Age` is rounded down.
    let age = age(exchange);
    (start.saturating_sub(age + Duration::from_secs(1)), end.saturating_sub(age))
}

/// Whether a read of the same took too long at this replica, now or shortly before.
pub(super) fn is_slow(history: &History, exchange: &Exchange) -> bool {
    let (from, to) = fetched(exchange);
    let is_same = |other: &Exchange| {
        let targets = [exchange.target, other.target];
        other.request == exchange.request
            && (targets[0] == targets[1]
                || !targets.iter().all(|target| matches!(target, Target::Replica(_))))
            && other.start <= to
            && other.end + RETRY_AFTER_SLOW_READ >= from
    };
    let mut others = history.recorded.exchanges.iter();
    others.any(|other| other.end.saturating_sub(other.start) >= SLOW_READ && is_same(other))
}

/// Whether PostgreSQL is unavailable for whom handles a request.
pub(super) fn lacks_postgres(fault: &FaultEvent, target: Target) -> bool {
    match fault.scope {
        Scope::Postgres | Scope::Reset => true,
        Scope::ReplicaPostgres(replica) => reaches(target, replica),
        _ => false,
    }
}
