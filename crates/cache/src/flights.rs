//! One fill per key, however many wait for it; and what an invalidation does to it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::Moment;
use crate::{CacheKey, CachedResponse, FillError};

/// What a fill comes to; `None` while it is under way.
pub(crate) type Outcome<E> = Result<CachedResponse, FillError<E>>;
/// Where those that wait hear of it.
pub(crate) type Arrival<E> = watch::Receiver<Option<Outcome<E>>>;

/// The fills under way, in shards by key. A shard is locked for a moment at a time, never across an await, and only
/// for keys that memory cannot answer.
pub(crate) struct Flights<E> {
    shards: Box<[Mutex<Shard<E>>]>,
}

/// The fills of some of the keys.
pub(crate) struct Shard<E> {
    /// Counts the invalidations. Whoever saw a lower number when it began to read keeps nothing. It is shared by
    /// the keys of the shard: that another key changed meanwhile costs one more read, seldom.
    pub(crate) epoch: u64,
    under_way: HashMap<CacheKey, Flight<E>>,
    /// Until when a key is not read again, after it failed, while an old answer can be served.
    paused: HashMap<CacheKey, Moment>,
    next_number: u64,
}

struct Flight<E> {
    number: u64,
    arrival: Arrival<E>,
}

/// The right and the duty to end a fill. When it is dropped without, because the fill panicked, those that wait are
/// told, and the next request tries again.
pub(crate) struct Landing<E> {
    flights: Arc<Flights<E>>,
    key: CacheKey,
    number: u64,
    pub(crate) epoch: u64,
    arrival: watch::Sender<Option<Outcome<E>>>,
}

const SHARDS: usize = 256;
/// How long after a failure the next attempt comes, while an old answer is served.
const PAUSE: Duration = Duration::from_secs(1);
/// From so many pauses in a shard on, those that are over are cleared away.
const MANY_PAUSES: usize = 64;

impl<E> Flights<E> {
    pub(crate) fn new() -> Self {
        let shard = || {
            Mutex::new(Shard { epoch: 0, under_way: HashMap::new(), paused: HashMap::new(), next_number: 0 })
        };
        Self { shards: (0..SHARDS).map(|_| shard()).collect() }
    }

    pub(crate) fn shard(&self, key: &CacheKey) -> MutexGuard<'_, Shard<E>> {
        self.shards[usize::from(key.spread()) % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets nobody join a fill that is under way now: it may have begun before a change that went unheard.
    pub(crate) fn part_from_all(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.epoch += 1;
            shard.under_way.clear();
        }
    }

    /// Takes off, for a key without a fill under way.
    pub(crate) fn take_off(
        self: &Arc<Self>,
        shard: &mut Shard<E>,
        key: CacheKey,
    ) -> (Landing<E>, Arrival<E>) {
        let (sender, arrival) = watch::channel(None);
        let number = shard.next_number;
        shard.next_number += 1;
        shard.under_way.insert(key, Flight { number, arrival: arrival.clone() });
        let landing = Landing { flights: Arc::clone(self), key, number, epoch: shard.epoch, arrival: sender };
        (landing, arrival)
    }
}

impl<E> Shard<E> {
    /// The fill of a key that is under way.
    pub(crate) fn under_way(&self, key: &CacheKey) -> Option<Arrival<E>> {
        self.under_way.get(key).map(|flight| flight.arrival.clone())
    }

    /// What is under way for a key may miss a change of it: nobody joins it any more, and it keeps nothing.
    pub(crate) fn invalidate(&mut self, key: &CacheKey) {
        self.epoch += 1;
        self.under_way.remove(key);
        self.paused.remove(key);
    }

    /// Whether a read of this key failed a moment ago.
    pub(crate) fn is_paused(&self, key: &CacheKey, now: Moment) -> bool {
        self.paused.get(key).is_some_and(|failed_at| now.since(*failed_at) < PAUSE)
    }

    /// Remembers that a read of this key failed.
    pub(crate) fn pause(&mut self, key: CacheKey, now: Moment) {
        if self.paused.len() >= MANY_PAUSES {
            self.paused.retain(|_, failed_at| now.since(*failed_at) < PAUSE);
        }
        self.paused.insert(key, now);
    }
}

impl<E> Landing<E> {
    /// Ends the fill with this outcome. `keep` runs before anybody can begin another, with the state of the shard;
    /// it tells whether the answer was kept.
    pub(crate) fn land(self, outcome: Outcome<E>, keep: impl FnOnce(&mut Shard<E>) -> bool) -> bool {
        let flights = Arc::clone(&self.flights);
        let kept = {
            let mut shard = flights.shard(&self.key);
            let kept = keep(&mut shard);
            self.leave(&mut shard);
            kept
        };
        self.arrival.send_replace(Some(outcome));
        kept
    }

    fn leave(&self, shard: &mut Shard<E>) {
        if shard.under_way.get(&self.key).is_some_and(|flight| flight.number == self.number) {
            shard.under_way.remove(&self.key);
        }
    }
}

impl<E> Drop for Landing<E> {
    fn drop(&mut self) {
        let mut shard = self.flights.shard(&self.key);
        self.leave(&mut shard);
    }
}
