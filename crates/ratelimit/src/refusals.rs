//! The refusals that need no question: remembered until the earliest moment at which Redis might admit again.

use std::hash::RandomState;
use std::time::{Duration, Instant};

use quick_cache::UnitWeighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use crate::{ClientAddress, Group, Scope};

/// Remembers until when an address is refused, in bounded memory.
///
/// A refusal fixes the earliest next admission: nothing that happens in between can bring it forward. Redis says
/// how far off it is at a moment between the sending of the question and the arrival of the answer, by the local
/// monotonic clock. So the wait is over, at the earliest, that long after the *sending*: until then a refusal from
/// memory is one that Redis would give as well, and from then on Redis is asked. `Retry-After` has to be true, so
/// it counts from the latest moment, the *arrival*.
///
/// The two clocks may run at different speeds (NTP slews by up to 500 ppm): the wait is remembered short by
/// 1 part in 1,024.
///
/// A refusal is remembered for the address alone, also where its network is what refuses: how long another address of
/// that network has to wait may depend on its own limit too, which only Redis knows.
///
/// A refusal that is forgotten early, for want of room, costs one question to Redis and changes no decision.
#[derive(Debug)]
pub(crate) struct Refusals {
    held: Cache<(Group, ClientAddress), Refusal, UnitWeighter, RandomState>,
}

/// One remembered refusal.
#[derive(Debug, Clone, Copy)]
struct Refusal {
    /// Whose limit is reached.
    scope: Scope,
    /// Redis would refuse before this.
    certain_until: Instant,
    /// Redis admits from here on.
    over_at: Instant,
}

impl Refusals {
    /// Room for this many addresses; the ones that were of least use go first.
    ///
    /// The hasher is keyed at random: addresses are chosen by clients.
    pub(crate) fn with_capacity(addresses: usize) -> Self {
        let (room, hasher) = (addresses.max(1), RandomState::new());
        let lifecycle = DefaultLifecycle::default();
        Self { held: Cache::with(room, room as u64, UnitWeighter, hasher, lifecycle) }
    }

    /// Whose limit is reached and how long until the address passes again, where a refusal is certain now.
    pub(crate) fn get(
        &self,
        group: Group,
        address: ClientAddress,
        now: Instant,
    ) -> Option<(Scope, Duration)> {
        let refusal = self.held.get(&(group, address))?;
        (now < refusal.certain_until).then(|| (refusal.scope, refusal.over_at.saturating_duration_since(now)))
    }

    /// Remembers a refusal that Redis gave between two moments.
    pub(crate) fn remember(
        &self,
        group: Group,
        address: ClientAddress,
        (scope, wait): (Scope, Duration),
        (sent, received): (Instant, Instant),
    ) {
        let certain_until = sent + wait.saturating_sub(wait / 1024);
        let refusal = Refusal { scope, certain_until, over_at: received + wait };
        if received < refusal.certain_until {
            self.held.insert((group, address), refusal);
        }
    }

    /// How many are held.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.held.len()
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
    fn a_refusal_is_certain_from_the_sending_and_true_from_the_arrival() {
        let refusals = Refusals::with_capacity(10);
        let sent = Instant::now();
        let received = sent + Duration::from_millis(5);
        refusals.remember(
            Group::Rox,
            address(1),
            (Scope::Network, Duration::from_millis(1024)),
            (sent, received),
        );
        let ask = |millis| refusals.get(Group::Rox, address(1), sent + Duration::from_millis(millis));
        assert_eq!(ask(5), Some((Scope::Network, Duration::from_millis(1024))));
        assert_eq!(ask(1022), Some((Scope::Network, Duration::from_millis(7))));
        assert_eq!(ask(1023), None, "Redis is asked again");
        assert_eq!(refusals.get(Group::List, address(1), received), None, "another group");
        assert_eq!(refusals.get(Group::Rox, address(2), received), None, "another address");
    }

    #[test]
    fn an_answer_that_comes_after_its_own_end_is_not_remembered() {
        let refusals = Refusals::with_capacity(10);
        let sent = Instant::now();
        let late = sent + Duration::from_millis(20);
        refusals.remember(Group::Rox, address(1), (Scope::Address, Duration::from_millis(10)), (sent, late));
        assert_eq!(refusals.len(), 0);
    }

    #[test]
    fn memory_is_bounded_under_a_million_addresses() {
        let refusals = Refusals::with_capacity(1_000);
        let now = Instant::now();
        for bits in 0..1_000_000 {
            refusals.remember(
                Group::Rox,
                address(bits),
                (Scope::Address, Duration::from_mins(1)),
                (now, now),
            );
        }
        assert!(refusals.len() <= 1_100, "{} refusals are held", refusals.len());
    }
}
