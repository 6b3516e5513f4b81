//! The window of one replica, for while Redis is away.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::client_address::Network;
use crate::group::network_limit;
use crate::{ClientAddress, Decision, Group, Scope};

type Key = (Group, Subject);

/// What admissions are counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Subject {
    Address(ClientAddress),
    Network(Network),
}

/// The exact sliding window in memory: the semantics of the one in Redis, for one replica alone.
///
/// Memory is bounded by the number of *admissions* that it remembers, over all addresses. When there are more of
/// them in one window, the oldest is forgotten first, whoever's it is: the window gets shorter for everybody, by
/// as much as memory lacks, instead of being lost for some. An address can so be admitted more often than its limit
/// in 60 s (an admission of an IPv6 address counts as two: it is remembered for the network as well) only as far as all addresses together exceed the memory (at the default of 2^20, above 17,000
/// admissions a second on one replica), and never more often than its limit in what remains of the window.
#[derive(Debug)]
pub(crate) struct StandIn {
    begun: Instant,
    window: Duration,
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
}

impl StandIn {
    /// So that the threads of a server seldom meet at one lock.
    const SHARDS: usize = 16;

    /// Room for this many admissions.
    pub(crate) fn new(window: Duration, admissions: usize, now: Instant) -> Self {
        let room = admissions.div_ceil(Self::SHARDS).max(1);
        let shards = (0..Self::SHARDS).map(|_| Mutex::new(Shard::with_room(room))).collect();
        Self { begun: now, window, hasher: RandomState::new(), shards }
    }

    /// Decides on one request, and counts it if it passes.
    pub(crate) fn check(
        &self,
        group: Group,
        address: ClientAddress,
        limit: NonZeroU32,
        now: Instant,
    ) -> Decision {
        let network = address.network().map(|network| (group, Subject::Network(network)));
        let key = (group, Subject::Address(address));
        // An address shares the shard of its network, so that one lock guards both of their windows.
        let hash = self.hasher.hash_one(network.unwrap_or(key));
        let shard = usize::try_from(hash % Self::SHARDS as u64).unwrap_or(0);
        let elapsed = now.saturating_duration_since(self.begun);
        // A panic cannot leave a shard half changed in a way that matters: at worst one admission is miscounted.
        let mut shard = self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner);
        // Threads read the clock before they queue for the lock: whoever comes second decides no earlier.
        let elapsed = shard.queue.back().map_or(elapsed, |newest| elapsed.max(newest.at));
        shard.forget_until(elapsed.checked_sub(self.window));
        let until_it_leaves = |at: Duration| (at + self.window).saturating_sub(elapsed);

        let of_address = shard.full_since(key, limit).map(|at| (at, Scope::Address, limit));
        let of_network = network.and_then(|network| {
            let limit = network_limit(limit);
            shard.full_since(network, limit).map(|at| (at, Scope::Network, limit))
        });
        // The scope whose oldest admission leaves last: only then is there room in both.
        if let Some((at, scope, limit)) = of_network.into_iter().chain(of_address).max_by_key(|(at, ..)| *at)
        {
            return Decision::Refused { scope, limit, retry_after: until_it_leaves(at) };
        }
        let in_network = network.map(|network| shard.push(network, network_limit(limit), elapsed).0);
        let (remaining, oldest) = shard.push(key, limit, elapsed);
        let remaining = in_network.map_or(remaining, |in_network| remaining.min(in_network));
        Decision::Admitted { limit, remaining, reset_after: until_it_leaves(oldest) }
    }
}

/// The admissions of some addresses in one queue, oldest first. Those of one address are linked, so that its own
/// oldest is at hand; the oldest of all is the oldest of its address as well, and can be dropped from both.
#[derive(Debug)]
struct Shard {
    room: usize,
    /// The number of the admission at the front of the queue.
    first: u64,
    queue: VecDeque<Admission>,
    counted: HashMap<Key, Counted>,
}

/// One admission.
#[derive(Debug)]
struct Admission {
    key: Key,
    /// Since the stand-in was made.
    at: Duration,
    /// The number of the next admission of the same address; meaningless for its newest.
    next: u64,
}

/// What the queue holds of one address.
#[derive(Debug)]
struct Counted {
    oldest: u64,
    newest: u64,
    admissions: u32,
}

impl Shard {
    fn with_room(room: usize) -> Self {
        Self { room, first: 0, queue: VecDeque::new(), counted: HashMap::new() }
    }

    /// Drops what has left the window: admissions at this moment or before. In all, one step per admission.
    fn forget_until(&mut self, moment: Option<Duration>) {
        let Some(moment) = moment else { return };
        while self.queue.front().is_some_and(|oldest| oldest.at <= moment) {
            self.forget_oldest();
        }
        if self.queue.is_empty() && self.queue.capacity() > 1_024 {
            // The outage that this memory was for is long over, or nobody comes.
            self.queue.shrink_to_fit();
            self.counted.shrink_to_fit();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.queue.pop_front() else { return };
        self.first += 1;
        if let Some(counted) = self.counted.get_mut(&oldest.key) {
            counted.admissions -= 1;
            counted.oldest = oldest.next;
            if counted.admissions == 0 {
                self.counted.remove(&oldest.key);
            }
        }
    }

    /// When the oldest admission was, whose leaving makes room, where there are `limit` of them.
    fn full_since(&self, key: Key, limit: NonZeroU32) -> Option<Duration> {
        let counted = self.counted.get(&key)?;
        (counted.admissions >= limit.get()).then(|| self.at(counted.oldest).unwrap_or_default())
    }

    /// Counts an admission: how many more would pass, and when the oldest was.
    fn push(&mut self, key: Key, limit: NonZeroU32, at: Duration) -> (u32, Duration) {
        if self.queue.len() >= self.room {
            self.forget_oldest();
        }
        let number = self.first + self.queue.len() as u64;
        self.queue.push_back(Admission { key, at, next: number });
        let counted =
            self.counted.entry(key).or_insert(Counted { oldest: number, newest: number, admissions: 0 });
        counted.admissions += 1;
        let previous = std::mem::replace(&mut counted.newest, number);
        let (remaining, oldest) = (limit.get().saturating_sub(counted.admissions), counted.oldest);
        if let Some(previous) = self.index(previous).and_then(|index| self.queue.get_mut(index)) {
            previous.next = number;
        }
        (remaining, self.at(oldest).unwrap_or(at))
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
        /// The oracle is the definition: an address passes if fewer than `limit` of its admissions lie in the
        /// window that ends now.
        #[test]
        fn decides_as_the_definition_does(steps in prop::collection::vec((0_u64..400, 0_u32..3), 1..300)) {
            let begun = Instant::now();
            let stand_in = StandIn::new(WINDOW, 100_000, begun);
            let (mut now, mut admitted) = (begun, vec![Vec::<Instant>::new(); 3]);
            for (pause, who) in steps {
                now += Duration::from_millis(pause);
                let own = &mut admitted[who as usize];
                let counted: Vec<Instant> = own.iter().copied().filter(|at| *at + WINDOW > now).collect();
                let decision = stand_in.check(Group::List, address(who), limit(3), now);
                let expected = if counted.len() < 3 {
                    own.push(now);
                    let oldest = counted.first().copied().unwrap_or(now);
                    let remaining = 2 - u32::try_from(counted.len()).unwrap();
                    Decision::Admitted { limit: limit(3), remaining, reset_after: oldest + WINDOW - now }
                } else {
                    Decision::Refused { scope: Scope::Address, limit: limit(3), retry_after: counted[0] + WINDOW - now }
                };
                prop_assert_eq!(decision, expected);
            }
        }
    }

    proptest! {
        /// The same for addresses of two /48s: an admission needs room in the window of the address and of its network.
        #[test]
        fn a_network_is_limited_as_the_definition_says(steps in prop::collection::vec((0_u64..60, 0_u16..24), 1..300)) {
            let begun = Instant::now();
            let stand_in = StandIn::new(WINDOW, 100_000, begun);
            let (mut now, mut admitted) = (begun, Vec::<(u16, Instant)>::new());
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
                let refused = |at: Instant, scope, limit| Decision::Refused {
                    scope,
                    limit,
                    retry_after: at + WINDOW - now,
                };
                let expected = match (full(&own, 2), full(&all, 32)) {
                    (Some(own), all) if all.is_none_or(|all| all <= own) => {
                        refused(own, Scope::Address, limit(2))
                    }
                    (_, Some(all)) => refused(all, Scope::Network, limit(32)),
                    _ => {
                        let remaining = u32::try_from((1 - own.len()).min(31 - all.len())).unwrap();
                        let oldest = own.first().copied().unwrap_or(now);
                        admitted.push((subnet, now));
                        Decision::Admitted { limit: limit(2), remaining, reset_after: oldest + WINDOW - now }
                    }
                };
                prop_assert_eq!(stand_in.check(Group::List, address.into(), limit(2), now), expected);
            }
        }
    }

    #[test]
    fn memory_is_bounded_under_a_million_addresses() {
        let begun = Instant::now();
        let stand_in = StandIn::new(WINDOW, 1_600, begun);
        for bits in 0..1_000_000 {
            assert!(stand_in.check(Group::List, address(bits), limit(3), begun).is_admitted());
        }
        for shard in &stand_in.shards {
            let shard = shard.lock().unwrap();
            assert!(shard.queue.len() <= 100 && shard.counted.len() <= 100);
        }
    }

    #[test]
    fn an_address_cannot_push_out_its_own_admissions() {
        let begun = Instant::now();
        let stand_in = StandIn::new(WINDOW, 1_600, begun);
        let asked = (0..10_000).map(|_| stand_in.check(Group::List, address(1), limit(50), begun));
        assert_eq!(asked.filter(Decision::is_admitted).count(), 50);
    }

    #[test]
    fn beyond_the_memory_the_window_shortens_and_the_limit_holds_in_what_remains() {
        let begun = Instant::now();
        let stand_in = StandIn::new(WINDOW, 16 * 100, begun);
        let mut hot = 0;
        // The hot address asks after every other request; each shard remembers its last 100 admissions.
        for bits in 2..20_002 {
            assert!(stand_in.check(Group::List, address(bits), limit(10), begun).is_admitted());
            hot += usize::from(stand_in.check(Group::List, address(1), limit(10), begun).is_admitted());
        }
        // Of the 20,000 others about 1,250 share its shard: some 12 turns of that memory, 10 admissions each.
        assert!((100..=180).contains(&hot), "{hot} admissions");
    }

    #[test]
    fn memory_is_given_back_when_the_outage_is_over() {
        let begun = Instant::now();
        let stand_in = StandIn::new(WINDOW, 1 << 20, begun);
        for bits in 0..200_000 {
            let _ = stand_in.check(Group::List, address(bits), limit(3), begun);
        }
        for bits in 0..1_000 {
            let _ = stand_in.check(Group::List, address(bits), limit(3), begun + WINDOW);
        }
        let held: usize = stand_in.shards.iter().map(|shard| shard.lock().unwrap().queue.capacity()).sum();
        assert!(held < 50_000, "room for {held} admissions is held");
    }
}
