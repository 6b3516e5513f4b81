//! The sliding window of this replica, for while Redis is unavailable.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ahash::RandomState;

use crate::client_address::Network;
use crate::group::network_limit;
use crate::{ClientAddress, Decision, Group, Refusal, Scope};

type Key = (Group, Subject);

/// What admissions are counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Subject {
    Address(ClientAddress),
    Network(Network),
}

/// An exact sliding window in memory: like the window in Redis, for this replica only.
///
/// Its capacity is a number of *admissions* of all addresses together; one of an IPv6 address counts as two,
/// for the address and for the network. Above the capacity, the oldest admissions are dropped. That shortens
/// the window for all addresses instead of dropping the windows of some: no address is admitted more often than
/// its limit in the shortened window. At the default of 2^20, it is shortened above 17,000 admissions a second
/// on one replica.
#[derive(Debug)]
pub(crate) struct LocalWindow {
    created_at: Instant,
    window: Duration,
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
}

impl LocalWindow {
    /// Enough that threads seldom wait for the same lock.
    const SHARDS: usize = 16;

    /// Capacity for this many admissions.
    pub(crate) fn new(window: Duration, admissions: usize, now: Instant) -> Self {
        let capacity = admissions.div_ceil(Self::SHARDS).max(1);
        let shards = (0..Self::SHARDS).map(|_| Mutex::new(Shard::with_capacity(capacity))).collect();
        Self { created_at: now, window, hasher: RandomState::new(), shards }
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
        let key = (group, Subject::Address(address));
        // An address is in the shard of its network, so that one lock guards both windows.
        let hash = self.hasher.hash_one(network.unwrap_or(key));
        let shard = usize::try_from(hash % Self::SHARDS as u64).unwrap_or(0);
        let now = now.saturating_duration_since(self.created_at);
        // After a panic, at worst one admission is miscounted.
        let mut shard = self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner);
        // Threads read the clock before they wait for the lock; admissions have to be in order.
        let now = shard.queue.back().map_or(now, |newest| now.max(newest.at));
        shard.drop_until(now.checked_sub(self.window));
        shard.decide(key, network, limit, now, |at| (at + self.window).saturating_sub(now))
    }
}

/// The admissions of some keys in one queue, oldest first. The admissions of a key are a linked list within the
/// queue, so that its oldest is known. The oldest of the queue is the oldest of its key as well, so dropping it
/// is one step.
#[derive(Debug)]
struct Shard {
    capacity: usize,
    /// The number of the admission at the front of the queue.
    first: u64,
    queue: VecDeque<Admission>,
    windows: HashMap<Key, KeyWindow, RandomState>,
}

#[derive(Debug)]
struct Admission {
    key: Key,
    /// The time since the creation of the local window.
    at: Duration,
    /// The number of the next admission of the key; meaningless for its newest.
    next: u64,
}

/// The admissions of a key in the queue.
#[derive(Debug)]
struct KeyWindow {
    oldest: u64,
    newest: u64,
    admissions: u32,
}

impl Shard {
    fn with_capacity(capacity: usize) -> Self {
        Self { capacity, first: 0, queue: VecDeque::new(), windows: HashMap::default() }
    }

    /// Decides on a request at this time, and counts it if it is admitted. `time_until_left` is the time until
    /// an admission leaves the window.
    fn decide(
        &mut self,
        key: Key,
        network: Option<Key>,
        limit: NonZeroU32,
        now: Duration,
        time_until_left: impl Fn(Duration) -> Duration,
    ) -> Decision {
        let by_address = self.blocked_by(key, limit).map(|at| (at, Scope::Address, limit));
        let by_network = network.and_then(|network| {
            let limit = network_limit(limit);
            self.blocked_by(network, limit).map(|at| (at, Scope::Network, limit))
        });
        // Both must have room, so the later one counts.
        let blocked = by_network.into_iter().chain(by_address).max_by_key(|(at, ..)| *at);
        if let Some((at, scope, limit)) = blocked {
            return Err(Refusal { scope, limit, retry_after: time_until_left(at) });
        }
        if let Some(network) = network {
            self.push(network, now);
        }
        self.push(key, now);
        Ok(())
    }

    /// Drops the admissions at this time or before, which have left the window.
    fn drop_until(&mut self, time: Option<Duration>) {
        let Some(time) = time else { return };
        while self.queue.front().is_some_and(|oldest| oldest.at <= time) {
            self.drop_oldest();
        }
        if self.queue.is_empty() && self.queue.capacity() > 1_024 {
            // The outage of Redis is probably over.
            self.queue.shrink_to_fit();
            self.windows.shrink_to_fit();
        }
    }

    fn drop_oldest(&mut self) {
        let Some(oldest) = self.queue.pop_front() else { return };
        self.first += 1;
        if let Some(window) = self.windows.get_mut(&oldest.key) {
            window.admissions -= 1;
            window.oldest = oldest.next;
            if window.admissions == 0 {
                self.windows.remove(&oldest.key);
            }
        }
    }

    /// If a key has reached its limit, the time of the admission that has to leave the window first.
    fn blocked_by(&self, key: Key, limit: NonZeroU32) -> Option<Duration> {
        let window = self.windows.get(&key)?;
        (window.admissions >= limit.get()).then(|| self.at(window.oldest).unwrap_or_default())
    }

    /// Counts an admission.
    fn push(&mut self, key: Key, at: Duration) {
        if self.queue.len() >= self.capacity {
            self.drop_oldest();
        }
        let number = self.first + self.queue.len() as u64;
        self.queue.push_back(Admission { key, at, next: number });
        let window =
            self.windows.entry(key).or_insert(KeyWindow { oldest: number, newest: number, admissions: 0 });
        window.admissions += 1;
        let previous = std::mem::replace(&mut window.newest, number);
        if let Some(previous) = self.index(previous).and_then(|index| self.queue.get_mut(index)) {
            previous.next = number;
        }
    }

    fn at(&self, number: u64) -> Option<Duration> {
        self.queue.get(self.index(number)?).map(|admission| admission.at)
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.first)?).ok()
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
                let decision = window.check(Group::List, address(client), limit(3), now);
                let expected = if counted.len() < 3 {
                    own.push(now);
                    Ok(())
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
                        Ok(())
                    }
                };
                prop_assert_eq!(window.check(Group::List, address.into(), limit(2), now), expected);
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
            assert!(shard.queue.len() <= 100 && shard.windows.len() <= 100);
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
        // About 1,250 of the 20,000 others share its shard, which fills it 12 times: 10 admissions each time.
        assert!((100..=180).contains(&hot), "{hot} admissions");
    }

    #[test]
    fn memory_is_freed_after_the_outage() {
        let start = Instant::now();
        let window = LocalWindow::new(WINDOW, 1 << 20, start);
        for bits in 0..200_000 {
            let _ = window.check(Group::List, address(bits), limit(3), start);
        }
        for bits in 0..1_000 {
            let _ = window.check(Group::List, address(bits), limit(3), start + WINDOW);
        }
        let capacity: usize = window.shards.iter().map(|shard| shard.lock().unwrap().queue.capacity()).sum();
        assert!(capacity < 50_000, "capacity for {capacity} admissions");
    }
}
