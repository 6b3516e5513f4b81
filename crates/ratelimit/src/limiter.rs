//! The rate limiter: cached refusals, then Redis, then the local window.

use std::num::NonZeroU32;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use chart_index_redis::RedisConnection;

use crate::check_queue::CheckQueue;
use crate::error_transitions::ErrorTransitions;
use crate::group::network_limit;
use crate::local_window::LocalWindow;
use crate::metrics::{Decider, DecisionCounters};
use crate::refusal_cache::RefusalCache;
use crate::window_script::{Check, WindowScript};
use crate::{ClientAddress, Decision, Group, LimiterConfig, Limits, Refusal, Scope};

/// Admits or refuses requests by an exact sliding window across all replicas that share one Redis.
///
/// In no window more requests of an address are admitted than the limit of the group, and none is refused below
/// the limit (docs/api.md, "Rate limits"). An IPv6 address must also be below the limit of its /48, which is 16
/// times as high.
///
/// Clones share everything. A decision comes from
///
/// 1. the *refusal cache*, if Redis would certainly refuse the request as well: no round trip;
/// 2. *Redis*, in one round trip, together with other requests that were received at the same time;
/// 3. the *local window*, if Redis is unavailable, too slow or replies with an error, e.g. because its memory
///    is full.
///
/// So while Redis is unavailable, each replica admits an address up to its limit once more. When Redis is
/// available again, it decides by the admissions that it still has. Redis may still count a command that timed
/// out.
#[derive(Debug, Clone)]
pub struct Limiter {
    shared: Arc<SharedLimiter>,
    queue: Arc<CheckQueue>,
}

#[derive(Debug)]
struct SharedLimiter {
    limits: Limits,
    refusals: RefusalCache,
    local_window: LocalWindow,
    counters: Arc<DecisionCounters>,
}

/// The number of decisions since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DecisionCounts {
    /// Refusals from the refusal cache.
    pub from_memory: u64,
    /// Decisions that Redis made.
    pub by_redis: u64,
    /// Decisions that the local window made, since Redis was unavailable.
    pub by_local_window: u64,
}

impl Limiter {
    /// A limiter over this connection. Spawns a task on the current runtime.
    #[must_use]
    pub fn new(config: LimiterConfig, connection: RedisConnection) -> Self {
        let (window, now) = (config.window, Instant::now());
        let script = Arc::new(WindowScript::new(config.key_prefix, window));
        let errors = Arc::new(ErrorTransitions::new(now));
        let shared = SharedLimiter {
            limits: config.limits,
            refusals: RefusalCache::with_capacity(config.cached_refusals),
            local_window: LocalWindow::new(window, config.local_window_admissions, now),
            counters: DecisionCounters::new(),
        };
        let shared = Arc::new(shared);
        tokio::spawn(free_local_window(Arc::downgrade(&shared), window));
        Self { shared, queue: Arc::new(CheckQueue::new(connection, script, errors)) }
    }

    /// The same limiter for another thread, which sends its checks apart from those of others.
    #[must_use]
    pub fn with_own_queue(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), queue: Arc::new(self.queue.empty()) }
    }

    /// Decides on a request, and counts it if it is admitted.
    pub async fn check(&self, group: Group, address: ClientAddress) -> Decision {
        let (asked_at, limit) = (Instant::now(), self.shared.limits.get(group));
        if let Some(refusal) = self.cached_refusal(group, address, limit, asked_at) {
            self.shared.counters.count(group, Decider::Memory, &Err(refusal));
            return Err(refusal);
        }
        let decision = self.queue.decide(Check { group, address, limit }).await;
        let received_at = Instant::now();
        let Some(decision) = decision else {
            let decision = self.shared.local_window.check(group, address, limit, received_at);
            self.shared.counters.count(group, Decider::Local, &decision);
            return decision;
        };
        self.shared.counters.count(group, Decider::Redis, &decision);
        if let Err(Refusal { scope, retry_after, .. }) = decision {
            let times = (asked_at, received_at);
            self.shared.refusals.insert(group, address, (scope, retry_after), times);
        }
        decision
    }

    /// The refusal of a request that Redis would certainly refuse.
    fn cached_refusal(
        &self,
        group: Group,
        address: ClientAddress,
        limit: NonZeroU32,
        now: Instant,
    ) -> Option<Refusal> {
        let (scope, retry_after) = self.shared.refusals.get(group, address, now)?;
        let limit = match scope {
            Scope::Address => limit,
            Scope::Network => network_limit(limit),
        };
        Some(Refusal { scope, limit, retry_after })
    }

    /// The number of decisions since the start.
    #[must_use]
    pub fn counts(&self) -> DecisionCounts {
        DecisionCounts {
            from_memory: self.shared.counters.decided_by(Decider::Memory),
            by_redis: self.shared.counters.decided_by(Decider::Redis),
            by_local_window: self.shared.counters.decided_by(Decider::Local),
        }
    }
}

/// Frees the memory of the local window after an outage of Redis.
async fn free_local_window(shared: Weak<SharedLimiter>, window: Duration) {
    loop {
        tokio::time::sleep(window).await;
        let Some(shared) = shared.upgrade() else { return };
        shared.local_window.drop_outdated(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn memory_is_freed_without_further_requests() {
        let config = LimiterConfig { window: Duration::from_millis(10), ..LimiterConfig::default() };
        let limiter = Limiter::new(config, RedisConnection::disabled());
        for bits in 0..1_000 {
            assert!(limiter.check(Group::List, Ipv4Addr::from_bits(bits).into()).await.is_ok());
        }
        let freed = async {
            while !limiter.shared.local_window.is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), freed).await.expect("the memory is freed");
    }
}
