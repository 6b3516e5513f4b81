//! Rate limits: no client has more than 240 admissions within 60 s, and none is refused below that.

use std::collections::BTreeMap;
use std::time::Duration;

use super::GRACE;
use crate::clients::{LimitedRequest, Target, WITH_REDIS};
use crate::history::History;
use crate::model::Moment;
use crate::operator::{FaultEvent, Scope};

/// Requests per window of a client.
const LIMIT: usize = 240;
const WINDOW: Duration = Duration::from_mins(1);

/// A client, whose requests are to the replicas that share Redis or to the one without.
struct LimitedClient<'a> {
    history: &'a History,
    requests: Vec<LimitedRequest>,
    has_redis: bool,
}

pub(super) fn wrong_limits(history: &History) -> Vec<(Moment, String)> {
    let mut clients: BTreeMap<u32, LimitedClient<'_>> = BTreeMap::new();
    for request in &history.recorded.limited {
        let has_redis = WITH_REDIS.map(Target::Replica).contains(&request.target);
        let client = || LimitedClient { history, requests: Vec::new(), has_redis };
        clients.entry(request.client).or_insert_with(client).requests.push(*request);
    }
    clients
        .values()
        .flat_map(|client| [client.excess_admissions(), client.early_refusals()].concat())
        .collect()
}

impl LimitedClient<'_> {
    fn excess_admissions(&self) -> Vec<(Moment, String)> {
        let admitted: Vec<_> = self.requests.iter().filter(|request| request.status == Some(200)).collect();
        let windows = admitted.iter().enumerate().filter_map(|(index, first)| {
            let end = first.start + WINDOW;
            let in_window = admitted[index..].iter().take_while(|request| request.end <= end);
            let (count, last) = (in_window.clone().count(), in_window.last()?);
            if count <= LIMIT || self.has_lost_counts(first.start, last.end) {
                return None;
            }
            let local = self.local_admissions(first.start, last.end);
            let text = format!(
                "{count} requests to {:?} within {WINDOW:?}, {local} at most without Redis",
                first.target
            );
            (count > LIMIT + local).then_some((first.start, text))
        });
        windows.collect()
    }

    fn early_refusals(&self) -> Vec<(Moment, String)> {
        let refused = self.requests.iter().filter(|request| request.status == Some(429));
        let early = refused.filter_map(|refused| {
            let counted = self.requests.iter().filter(|request| {
                request.status != Some(429)
                    && request.end + WINDOW >= refused.start
                    && request.start <= refused.end
            });
            let (counted, from) = (counted.count(), self.counted_since(refused.start));
            if counted >= LIMIT
                || self.has_lost_counts(refused.start, refused.end)
                || self.counts_late(from, refused.end)
            {
                return None;
            }
            // A check that timed out counts when Redis receives it.
            let local = self.local_admissions(from.saturating_sub(GRACE), refused.end);
            let text = format!(
                "refused by {:?} after {counted} requests, {local} at most without Redis",
                refused.target
            );
            (counted + local < LIMIT).then_some((refused.start, text))
        });
        early.collect()
    }

    /// When the window of a request begins. What happened before the first request of a client is over: nothing
    /// was counted.
    fn counted_since(&self, moment: Moment) -> Moment {
        moment.saturating_sub(WINDOW).max(self.requests[0].start)
    }

    /// Whether Redis or a replica lost what it had counted in the window before one of these moments.
    fn has_lost_counts(&self, from: Moment, to: Moment) -> bool {
        self.is_affected(self.counted_since(from), to, |scope| match scope {
            Scope::RedisReset => self.has_redis,
            Scope::Replica(replica) => self.has_redis == WITH_REDIS.contains(&replica),
            _ => false,
        })
    }

    /// Whether Redis receives checks that a replica no longer waits for: once a partition ends, or a frozen
    /// server continues.
    fn counts_late(&self, from: Moment, to: Moment) -> bool {
        self.has_redis
            && self.is_affected(from, to, |scope| matches!(scope, Scope::Redis | Scope::ReplicaRedis(_)))
    }

    fn is_affected(&self, from: Moment, to: Moment, is_relevant: impl Fn(Scope) -> bool) -> bool {
        self.history.faults(from, to).any(|FaultEvent { scope, .. }| is_relevant(*scope))
    }

    /// Maximum number of requests that replicas admitted without Redis between two moments, since it did not
    /// decide in time. A replica that was restarted meanwhile has lost its counts.
    fn local_admissions(&self, from: Moment, to: Moment) -> usize {
        let of_replica = |replica: usize| {
            let all = self.history.recorded.observations.iter();
            let observed = all.filter(move |observation| observation.replica == replica);
            let before = observed.clone().rfind(|observation| observation.end <= from);
            let after = observed.clone().find(|observation| observation.start >= to);
            let after = after.or_else(|| observed.clone().next_back());
            let [before, after] = [before, after].map(|at| at.map_or(0, |at| at.local_admissions));
            after.saturating_sub(before)
        };
        let replicas = WITH_REDIS.into_iter().filter(|_| self.has_redis);
        usize::try_from(replicas.map(of_replica).sum::<u64>()).expect("few requests")
    }
}
