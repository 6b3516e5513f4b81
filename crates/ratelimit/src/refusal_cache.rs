//! Refusals, cached until the earliest time at which Redis might admit the next request.

use std::time::{Duration, Instant};

use ahash::RandomState;
use quick_cache::UnitWeighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use crate::{ClientAddress, Group, Scope};

/// Until when each address is refused, in bounded memory.
///
/// A refusal determines the earliest next admission: no other request can bring that forward. Redis computed
/// the wait at some time between sending and receipt. The cached refusal is used until *sent + wait*: until
/// then Redis would certainly still refuse. `Retry-After` is computed from *received + wait*, when the wait has
/// certainly ended.
///
/// The two clocks may run at different speeds (NTP slews by up to 500 ppm), so the cached wait is shorter by 1
/// in 1,024.
///
/// A refusal by the network is cached for the address only: how long another address of the network has to wait
/// may depend on its own limit as well, which only Redis knows.
///
/// An evicted refusal costs one more command and changes no decision.
#[derive(Debug)]
pub(crate) struct RefusalCache {
    refusals: Cache<(Group, ClientAddress), Refusal, UnitWeighter, RandomState>,
}

#[derive(Debug, Clone, Copy)]
struct Refusal {
    /// The limit that is reached.
    scope: Scope,
    /// Redis would refuse every request before this time.
    certain_until: Instant,
    /// From this time on Redis may admit a request; for `Retry-After`.
    ends_at: Instant,
}

impl RefusalCache {
    /// Capacity for this many addresses. The hasher has a random key, since clients choose the addresses.
    pub(crate) fn with_capacity(addresses: usize) -> Self {
        let (capacity, hasher) = (addresses.max(1), RandomState::new());
        let lifecycle = DefaultLifecycle::default();
        Self { refusals: Cache::with(capacity, capacity as u64, UnitWeighter, hasher, lifecycle) }
    }

    /// The limit that is reached and the time until the next admission, if Redis would certainly refuse now.
    pub(crate) fn get(
        &self,
        group: Group,
        address: ClientAddress,
        now: Instant,
    ) -> Option<(Scope, Duration)> {
        let refusal = self.refusals.get(&(group, address))?;
        (now < refusal.certain_until).then(|| (refusal.scope, refusal.ends_at.saturating_duration_since(now)))
    }

    /// Caches a refusal by Redis to a command that was sent and replied to at these times.
    pub(crate) fn insert(
        &self,
        group: Group,
        address: ClientAddress,
        (scope, wait): (Scope, Duration),
        (sent, received): (Instant, Instant),
    ) {
        let certain_until = sent + wait.saturating_sub(wait / 1024);
        let refusal = Refusal { scope, certain_until, ends_at: received + wait };
        if received < refusal.certain_until {
            self.refusals.insert((group, address), refusal);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(bits: u32) -> ClientAddress {
        Ipv4Addr::from_bits(bits).into()
    }

    #[test]
    fn refusal_ends_by_sending_and_retry_after_by_receipt() {
        let refusals = RefusalCache::with_capacity(10);
        let sent = Instant::now();
        let received = sent + Duration::from_millis(5);
        refusals.insert(
            Group::Rox,
            address(1),
            (Scope::Network, Duration::from_millis(1024)),
            (sent, received),
        );
        let get = |millis| refusals.get(Group::Rox, address(1), sent + Duration::from_millis(millis));
        assert_eq!(get(5), Some((Scope::Network, Duration::from_millis(1024))));
        assert_eq!(get(1022), Some((Scope::Network, Duration::from_millis(7))));
        assert_eq!(get(1023), None, "Redis is asked again");
        assert_eq!(refusals.get(Group::List, address(1), received), None, "another group");
        assert_eq!(refusals.get(Group::Rox, address(2), received), None, "another address");
    }

    #[test]
    fn reply_after_its_own_wait_is_not_cached() {
        let refusals = RefusalCache::with_capacity(10);
        let sent = Instant::now();
        let late = sent + Duration::from_millis(20);
        refusals.insert(Group::Rox, address(1), (Scope::Address, Duration::from_millis(10)), (sent, late));
        assert_eq!(refusals.get(Group::Rox, address(1), sent), None);
    }

    #[test]
    fn memory_is_bounded_for_a_million_addresses() {
        let cache = RefusalCache::with_capacity(1_000);
        let now = Instant::now();
        for bits in 0..1_000_000 {
            cache.insert(Group::Rox, address(bits), (Scope::Address, Duration::from_mins(1)), (now, now));
        }
        assert!(cache.refusals.len() <= 1_100, "{} refusals are cached", cache.refusals.len());
    }
}
