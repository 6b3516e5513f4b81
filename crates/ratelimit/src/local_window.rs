//! The sliding window of this replica, for while Redis is unavailable.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ahash::RandomState;

use crate::client_address::Network;
use crate::group::network_limit;
use crate::{Budget, ClientAddress, Decision, Group, Refusal, Scope};

/// An exact sliding window in memory: like the window in Redis, for this replica only.
///
/// Its capacity is a number of *admissions* of all addresses together; one of an IPv6 address counts as two,
/// for the address and for the network. Above the capacity, the oldest half is dropped. That shortens the
/// window for all addresses instead of dropping the windows of some: no address is admitted more often than its
/// limit in the shortened window. At the default of 2^20, it is shortened above 8,700 admissions a second on
/// one replica.
#[derive(Debug)]
pub(crate) struct LocalWindow {
    window: Duration,
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
}

impl LocalWindow {
    /// Enough that threads seldom wait for the same lock.
    const SHARDS: usize = 16;

    /// Capacity for this many admissions.
    pub(crate) fn new(window: Duration, admissions: usize, now: Instant) -> Self {
        let capacity = admissions.div_ceil(2 * Self::SHARDS).max(1);
        let shards = (0..Self::SHARDS).map(|_| Mutex::new(Shard::new(capacity, now))).collect();
        Self { window, hasher: RandomState::new(), shards }
    }

    /// Decides on a request, and counts it if it is admitted.
    pub(crate) fn check(
        &self,
        group: Group,
        address: ClientAddress,
        limit: NonZeroU32,
        now: Instant,
    ) -> Decision {
        let network = address.network().map(|network| (group, Subject::Network(network)));
        let address = (group, Subject::Address(address));
        // An address is in the shard of its network, so that one lock guards both windows.
        let hash = self.hasher.hash_one(network.unwrap_or(address));
        let mut shard = lock(&self.shards[usize::try_from(hash % Self::SHARDS as u64).unwrap_or(0)]);
        // Threads read the clock before they wait for the lock; admissions have to be in order.
        let now = now.max(shard.newest);
        let limits =
            [(network, Scope::Network, network_limit(limit)), (Some(address), Scope::Address, limit)];
        let refusals = limits.into_iter().filter_map(|(key, scope, limit)| {
            let retry_after =
                (shard.oldest_counted(key?, limit)? + self.window).checked_duration_since(now)?;
            (!retry_after.is_zero()).then_some(Refusal { scope, limit, retry_after })
        });
        // Both must have room, so the longer wait counts.
        if let Some(refusal) = refusals.max_by_key(|refusal| refusal.retry_after) {
            return Err(refusal);
        }
        for key in [Some(address), network].into_iter().flatten() {
            shard.push(key, now);
        }
        if !group.reports_budget() {
            return Ok(None);
        }
        let budgets = limits.into_iter().filter_map(|(key, _, of_scope)| {
            let (counted, oldest) = shard.counted(key?, now, self.window)?;
            let remaining = of_scope.get().saturating_sub(counted);
            let renewed_after = (oldest + self.window).saturating_duration_since(now);
            Some(Budget { limit, remaining, renewed_after })
        });
        Ok(budgets.min_by_key(|budget| budget.remaining))
    }

    /// Frees admissions that have left the window. Called once in a window, all are freed after three.
    pub(crate) fn drop_outdated(&self, now: Instant) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            if now >= shard.current_since + self.window {
                shard.drop_previous(now);
            }
        }
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // After a panic, at worst one admission is miscounted.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What admissions are counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Subject {
    Address(ClientAddress),
    Network(Network),
}

type Key = (Group, Subject);
/// The times of admissions, oldest first.
type Admissions = HashMap<Key, Vec<Instant>, RandomState>;

/// The admissions of some keys in two maps. `current` becomes `previous` after a window, or when it has reached
/// its capacity, and what was in `previous` is dropped.
#[derive(Debug)]
struct Shard {
    /// The maximum number of admissions in `current`.
    capacity: usize,
    /// The number of admissions in `current`.
    admissions: usize,
    newest: Instant,
    current_since: Instant,
    current: Admissions,
    previous: Admissions,
}

impl Shard {
    fn new(capacity: usize, now: Instant) -> Self {
        let (current, previous) = Default::default();
        Self { capacity, admissions: 0, newest: now, current_since: now, current, previous }
    }

    /// If a key has as many admissions as its limit, the oldest of the newest `limit`: the key is at its limit
    /// until that one leaves the window.
    fn oldest_counted(&self, key: Key, limit: NonZeroU32) -> Option<Instant> {
        let [previous, current] = [&self.previous, &self.current]
            .map(|admissions| admissions.get(&key).map_or(&[][..], Vec::as_slice));
        let index = (previous.len() + current.len()).checked_sub(limit.get() as usize)?;
        previous.get(index).or_else(|| current.get(index - previous.len())).copied()
    }

    /// The number of admissions of a key in the window that ends now, and the oldest of them.
    fn counted(&self, key: Key, now: Instant, window: Duration) -> Option<(u32, Instant)> {
        let in_window = |admissions: &Admissions| {
            let times = admissions.get(&key).map_or(&[][..], Vec::as_slice);
            let outdated = times.partition_point(|at| *at + window <= now);
            (times.len() - outdated, times.get(outdated).copied())
        };
        let [(previous, oldest), (current, newer)] = [&self.previous, &self.current].map(in_window);
        Some((u32::try_from(previous + current).unwrap_or(u32::MAX), oldest.or(newer)?))
    }

    fn push(&mut self, key: Key, now: Instant) {
        if self.admissions >= self.capacity {
            self.drop_previous(now);
        }
        // Most addresses send few requests.
        self.current.entry(key).or_insert_with(|| Vec::with_capacity(1)).push(now);
        self.admissions += 1;
        self.newest = now;
    }

    fn drop_previous(&mut self, now: Instant) {
        self.previous = std::mem::take(&mut self.current);
        self.current_since = now;
        self.admissions = 0;
    }
}

#[cfg(test)]
impl LocalWindow {
    pub(crate) fn is_empty(&self) -> bool {
        self.shards.iter().map(lock).all(|shard| shard.current.capacity() + shard.previous.capacity() == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    const WINDOW: Duration = Duration::from_secs(1);

    fn address(bits: u32) -> ClientAddress {
        Ipv4Addr::from_bits(bits).into()
    }

    fn limit(limit: u32) -> NonZeroU32 {
        NonZeroU32::new(limit).unwrap()
    }

    proptest! {
        /// The definition: a request is admitted if fewer than `limit` admissions of its address are in the
        /// window that ends now.
        #[test]
        fn decisions_match_the_definition(steps in prop::collection::vec((0_u64..400, 0_u32..3), 1..300)) {
            let start = Instant::now();
            let window = LocalWindow::new(WINDOW, 100_000, start);
            let (mut now, mut admitted) = (start, vec![Vec::<Instant>::new(); 3]);
            for (pause, client) in steps {
                now += Duration::from_millis(pause);
                let own = &mut admitted[client as usize];
                let counted: Vec<Instant> = own.iter().copied().filter(|at| *at + WINDOW > now).collect();
                window.drop_outdated(now);
                let decision = window.check(Group::List, address(client), limit(3), now);
                let expected = if counted.len() < 3 {
                    own.push(now);
                    Ok(None)
                } else {
                    let retry_after = counted[0] + WINDOW - now;
                    Err(Refusal { scope: Scope::Address, limit: limit(3), retry_after })
                };
                prop_assert_eq!(decision, expected);
            }
        }
    }

    proptest! {
        /// The same for addresses of two /48s: the windows of the address and of its network both need room.
        #[test]
        fn network_decisions_match_the_definition(steps in prop::collection::vec((0_u64..60, 0_u16..24), 1..300)) {
            let start = Instant::now();
            let window = LocalWindow::new(WINDOW, 100_000, start);
            let (mut now, mut admitted) = (start, Vec::<(u16, Instant)>::new());
            for (pause, subnet) in steps {
                now += Duration::from_millis(pause);
                // Of 24 addresses, every sixth belongs to the second network.
                let network = u16::from(subnet % 6 == 0);
                let address = std::net::Ipv6Addr::new(0x2001, 0xdb8, network, subnet, 0, 0, 0, 1);
                let counted = |is_counted: &dyn Fn(u16) -> bool| -> Vec<Instant> {
                    let of = admitted.iter().filter(|(of, at)| is_counted(*of) && *at + WINDOW > now);
                    of.map(|(_, at)| *at).collect()
                };
                let own = counted(&|of| of == subnet);
                let all = counted(&|of| u16::from(of % 6 == 0) == network);
                let full = |counted: &[Instant], limit: usize| counted.len().checked_sub(limit).map(|at| counted[at]);
                let refused =
                    |at: Instant, scope, limit| Err(Refusal { scope, limit, retry_after: at + WINDOW - now });
                let expected = match (full(&own, 2), full(&all, 32)) {
                    (Some(own), all) if all.is_none_or(|all| all <= own) => {
                        refused(own, Scope::Address, limit(2))
                    }
                    (_, Some(all)) => refused(all, Scope::Network, limit(32)),
                    _ => {
                        admitted.push((subnet, now));
                        Ok(None)
                    }
                };
                window.drop_outdated(now);
                prop_assert_eq!(window.check(Group::List, address.into(), limit(2), now), expected);
            }
        }
    }

    proptest! {
        /// The limit without the admissions in the window, of the address or of its network.
        #[test]
        fn budgets_match_the_definition(steps in prop::collection::vec((0_u64..200, 0_u16..20), 1..200)) {
            let start = Instant::now();
            let window = LocalWindow::new(WINDOW, 100_000, start);
            let (mut now, mut admitted) = (start, Vec::<(u16, Instant)>::new());
            for (pause, subnet) in steps {
                now += Duration::from_millis(pause);
                window.drop_outdated(now);
                let address = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, subnet, 0, 0, 0, 1);
                let Ok(budget) = window.check(Group::Feed, address.into(), limit(5), now) else { continue };
                admitted.push((subnet, now));
                let counted = |of: Option<u16>| {
                    let is_counted = |(other, at): &&(u16, Instant)| {
                        of.is_none_or(|of| of == *other) && *at + WINDOW > now
                    };
                    admitted.iter().filter(is_counted).map(|(_, at)| *at).collect::<Vec<_>>()
                };
                let (all, own) = (counted(None), counted(Some(subnet)));
                let budgets = [(80 - all.len(), all[0]), (5 - own.len(), own[0])];
                let (remaining, oldest) = budgets.into_iter().min_by_key(|(remaining, _)| *remaining).unwrap();
                let remaining = u32::try_from(remaining).unwrap();
                let expected = Budget { limit: limit(5), remaining, renewed_after: oldest + WINDOW - now };
                prop_assert_eq!(budget, Some(expected));
            }
        }
    }

    #[test]
    fn memory_is_bounded_for_a_million_addresses() {
        let start = Instant::now();
        let window = LocalWindow::new(WINDOW, 1_600, start);
        for bits in 0..1_000_000 {
            assert!(window.check(Group::List, address(bits), limit(3), start).is_ok());
        }
        for shard in &window.shards {
            let shard = shard.lock().unwrap();
            assert!(shard.current.len() <= 50 && shard.previous.len() <= 50);
        }
    }

    #[test]
    fn address_does_not_drop_its_own_admissions() {
        let start = Instant::now();
        let window = LocalWindow::new(WINDOW, 1_600, start);
        let decisions = (0..10_000).map(|_| window.check(Group::List, address(1), limit(50), start));
        assert_eq!(decisions.flatten().count(), 50);
    }

    #[test]
    fn window_shortens_above_its_capacity() {
        let start = Instant::now();
        let window = LocalWindow::new(WINDOW, 16 * 100, start);
        let mut hot = 0;
        // The hot address sends every second request; each shard has capacity for 100 admissions.
        for bits in 2..20_002 {
            assert!(window.check(Group::List, address(bits), limit(10), start).is_ok());
            hot += usize::from(window.check(Group::List, address(1), limit(10), start).is_ok());
        }
        // About 1,250 of the 20,000 others share its shard. They drop its 10 admissions once in 50 to 100.
        assert!((100..=330).contains(&hot), "{hot} admissions");
    }
}
