//! The two tiers, and the fill behind them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::catalogue::{GenerationNumber, Seen};
use crate::clock::Now;
use crate::fill_limits::FillLimits;
use crate::flights::{Flights, Landing, Outcome, Shard};
use crate::memory::Memory;
use crate::passage::Passage;
use crate::record::Record;
use crate::redis_tier::RedisTier;
use crate::trust::{Stamp, Standing, Trust};
use crate::{
    CacheConfig, CacheConnections, CacheKey, CacheStats, CachedBody, CachedResponse, Clock, FillError,
    LifetimesByKind, Lookup,
};

/// Where a fill looks first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    RedisThenStore,
    Store,
}

pub(crate) struct Inner<E> {
    memory: Memory,
    pub(crate) tier: RedisTier,
    flights: Arc<Flights<E>>,
    trust: Trust,
    clock: Clock,
    ages: LifetimesByKind,
    fallback_timeout: Duration,
    fill_timeout: Duration,
    limits: FillLimits,
    /// Places for records on their way to Redis.
    writes: Arc<Semaphore>,
    counts: Counts,
}

/// Records that may be on their way to Redis at once.
const MAX_WRITES: usize = 1_024;

#[derive(Debug, Default)]
struct Counts {
    from_memory: AtomicU64,
    from_redis: AtomicU64,
    fills: AtomicU64,
    failed_fills: AtomicU64,
    shed: AtomicU64,
    dropped_writes: AtomicU64,
}

/// When a read began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    now: Now,
    unix_ms: u64,
    /// The catalogue as it was last read by then.
    catalogue: Option<Seen>,
    epoch: u64,
}

impl<E: Send + Sync + 'static> Inner<E> {
    pub(crate) fn new(config: CacheConfig, connections: CacheConnections) -> Self {
        Self {
            memory: Memory::with_bytes(config.bytes),
            limits: FillLimits::new(&config),
            tier: RedisTier::new(connections, config.key_prefix),
            flights: Arc::new(Flights::new()),
            trust: Trust::new(config.catalogue),
            clock: config.clock,
            ages: config.lifetimes,
            fallback_timeout: config.fallback_timeout,
            fill_timeout: config.fill_timeout,
            writes: Arc::new(Semaphore::new(MAX_WRITES)),
            counts: Counts::default(),
        }
    }

    /// What memory alone says.
    pub(crate) fn get(&self, key: &CacheKey) -> Lookup {
        let Some((answer, standing)) = self.kept(key) else { return Lookup::Miss };
        let lookup = match standing {
            Standing::Fresh => Lookup::Fresh(answer),
            Standing::Stale => Lookup::Stale(answer),
            Standing::Doubtful if self.is_paused(key) => Lookup::Stale(answer),
            Standing::Doubtful | Standing::Dead => return Lookup::Miss,
        };
        self.counts.from_memory.fetch_add(1, Ordering::Relaxed);
        lookup
    }

    /// An answer from the fill that is under way, or from one that begins now.
    pub(crate) async fn fetch<F, Fut>(self: &Arc<Self>, key: CacheKey, source: Source, fill: F) -> Outcome<E>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        let Some(_waiting) = self.limits.waiting(key.kind()) else {
            self.counts.shed.fetch_add(1, Ordering::Relaxed);
            return self.usable(&key).ok_or(FillError::Overloaded);
        };
        let mut passage = match self.board(key, source, fill) {
            Ok(answer) => return Ok(answer),
            Err(passage) => passage,
        };
        if self.usable(&key).is_none() {
            return passage.outcome().await;
        }
        let outcome = tokio::time::timeout(self.fallback_timeout, passage.outcome()).await;
        match (outcome, self.usable(&key)) {
            (Ok(Ok(answer)), _) => Ok(answer),
            (Ok(Err(_)) | Err(_), Some(old)) => {
                self.flights.shard(&key).pause(key, self.clock.now().moment);
                Ok(old)
            }
            (Ok(failed), None) => failed,
            // The old answer was invalidated while this waited.
            (Err(_), None) => passage.outcome().await,
        }
    }

    /// Begins a fill behind an answer, unless one is under way or failed a moment ago.
    pub(crate) fn refresh<F, Fut>(self: &Arc<Self>, key: CacheKey, source: Source, fill: F)
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        if !self.is_paused(&key) {
            // Nobody waits: what was boarded goes on by itself.
            drop(self.board(key, source, fill));
        }
    }

    /// The answer, if one has come meanwhile; else the way to the fill that is under way, or to one that begins now.
    fn board<F, Fut>(
        self: &Arc<Self>,
        key: CacheKey,
        source: Source,
        fill: F,
    ) -> Result<CachedResponse, Passage<E>>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        let (landing, arrival) = {
            let mut shard = self.flights.shard(&key);
            if let Some(arrival) = shard.under_way(&key) {
                return Err(Passage::with_another(arrival));
            }
            if let Some((answer, Standing::Fresh)) = self.kept(&key) {
                return Ok(answer);
            }
            self.flights.take_off(&mut shard, key)
        };
        let begun = self.begun_at(landing.epoch);
        let inner = Arc::clone(self);
        Err(Passage::carry(arrival, async move { inner.fly(key, source, begun, landing, fill).await }))
    }

    /// The fill itself.
    async fn fly<F, Fut>(
        self: &Arc<Self>,
        key: CacheKey,
        source: Source,
        begun: Begun,
        landing: Landing<E>,
        fill: F,
    ) where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<CachedResponse, E>>,
    {
        if source == Source::RedisThenStore
            && let Some(record) = self.tier.read(&key).await
            && let (answer, Standing::Fresh) = self.keep_record(key, record, begun)
        {
            landing.land(Ok(answer), |_| true);
            return;
        }
        let Some(_permit) = self.limits.fill(key.kind()).await else {
            self.counts.shed.fetch_add(1, Ordering::Relaxed);
            return self.fail(key, FillError::Overloaded, landing);
        };
        self.counts.fills.fetch_add(1, Ordering::Relaxed);
        let begun = self.begun_at(begun.epoch);
        let error = match tokio::time::timeout(self.fill_timeout, fill()).await {
            Ok(Ok(answer)) => return self.land(key, answer, begun, landing),
            Ok(Err(error)) => FillError::Failed(Arc::new(error)),
            Err(_) => FillError::TimedOut,
        };
        self.counts.failed_fills.fetch_add(1, Ordering::Relaxed);
        self.fail(key, error, landing);
    }

    /// A read that begins now.
    fn begun_at(&self, epoch: u64) -> Begun {
        let catalogue = self.trust.catalogue.seen();
        Begun { now: self.clock.now(), unix_ms: self.clock.unix_ms(), catalogue, epoch }
    }

    fn land(self: &Arc<Self>, key: CacheKey, answer: CachedResponse, begun: Begun, landing: Landing<E>) {
        let answer = self.memory.reuse(&key, answer);
        let generation = begun.catalogue.map_or(GenerationNumber::UNKNOWN, |seen| seen.number);
        let stamp = Stamp { read_at: begun.now.moment, checked_at: begun.now.moment, generation };
        let kept = landing
            .land(Ok(answer.clone()), |shard| self.keep(shard, key, answer.clone(), stamp, begun.epoch));
        if kept && !self.tier.is_away(key.kind()) {
            let lives = self.trust.vary(&key, self.ages.of(key.kind()).revalidate_after);
            let generation = begun.catalogue.map(|seen| seen.generation);
            let record = Record { answer, read_unix_ms: begun.unix_ms, generation };
            // Where Redis, or this process, does not keep up with what is read, a copy that is not written costs another
            // replica a read; all that wait to be written would cost everyone.
            let Ok(place) = Arc::clone(&self.writes).try_acquire_owned() else {
                self.counts.dropped_writes.fetch_add(1, Ordering::Relaxed);
                return;
            };
            let inner = Arc::clone(self);
            // Whoever waits is not kept waiting while this is put together.
            tokio::spawn(async move {
                let _place = place;
                let took = Duration::from_millis(inner.clock.now().real_ms - begun.now.real_ms);
                inner.tier.write(&key, &record, took, lives).await;
            });
        }
    }

    fn fail(&self, key: CacheKey, error: FillError<E>, landing: Landing<E>) {
        let old = self.usable(&key);
        let stands_in = old.is_some();
        landing.land(old.ok_or(error), |shard| {
            if stands_in {
                shard.pause(key, self.clock.now().moment);
            }
            false
        });
    }

    /// When a read outside of a fill begins; `None` while a fill is under way, which is then to be waited for.
    pub(crate) fn begun(&self, key: &CacheKey) -> Option<Begun> {
        let begun = self.begun_at(0);
        let shard = self.flights.shard(key);
        shard.under_way(key).is_none().then(|| Begun { epoch: shard.epoch, ..begun })
    }

    /// Keeps what Redis had, as old as it is, and tells how it stands.
    pub(crate) fn keep_record(
        &self,
        key: CacheKey,
        record: Record,
        begun: Begun,
    ) -> (CachedResponse, Standing) {
        self.counts.from_redis.fetch_add(1, Ordering::Relaxed);
        let age = Duration::from_millis(begun.unix_ms.saturating_sub(record.read_unix_ms));
        let generation = self.trust.catalogue.number_of(record.generation);
        let stamp = Stamp { read_at: begun.now.moment.before(age), checked_at: begun.now.moment, generation };
        let answer = self.memory.reuse(&key, record.answer);
        let mut shard = self.flights.shard(&key);
        self.keep(&mut shard, key, answer.clone(), stamp, begun.epoch);
        let standing = self.trust.standing(&key, stamp, self.ages.of(key.kind()), begun.now);
        (answer, standing)
    }

    /// Keeps an answer in memory, unless its key was invalidated since the read began.
    fn keep(
        &self,
        shard: &mut Shard<E>,
        key: CacheKey,
        answer: CachedResponse,
        stamp: Stamp,
        epoch: u64,
    ) -> bool {
        let holds = shard.epoch == epoch;
        if holds {
            self.memory.keep(key, answer, stamp);
        }
        holds
    }

    /// What memory has, and how it stands.
    fn kept(&self, key: &CacheKey) -> Option<(CachedResponse, Standing)> {
        let (answer, stamp) = self.memory.get(key)?;
        Some((answer, self.trust.standing(key, stamp, self.ages.of(key.kind()), self.clock.now())))
    }

    /// What may be served if nothing better is to be had.
    fn usable(&self, key: &CacheKey) -> Option<CachedResponse> {
        self.kept(key).filter(|(_, standing)| *standing != Standing::Dead).map(|(answer, _)| answer)
    }

    fn is_paused(&self, key: &CacheKey) -> bool {
        let now = self.clock.now().moment;
        self.flights.shard(key).is_paused(key, now)
    }

    pub(crate) fn invalidate(&self, keys: &[CacheKey]) {
        for key in keys {
            let mut shard = self.flights.shard(key);
            shard.invalidate(key);
            self.memory.forget(key);
        }
    }

    /// Accounts for a body that was compressed meanwhile.
    pub(crate) fn weigh_again(&self, key: &CacheKey, body: &CachedBody) {
        let _shard = self.flights.shard(key);
        self.memory.weigh_again(*key, body);
    }

    /// Nothing that was read until now is trusted: changes of it may have gone unheard.
    pub(crate) fn doubt_everything(&self) {
        self.trust.begin(self.clock.now());
        self.flights.part_from_all();
    }

    /// Whether invalidations are heard now.
    pub(crate) fn is_heard(&self) -> bool {
        self.trust.is_heard(self.clock.now())
    }

    pub(crate) fn counts(&self) -> CacheStats {
        let counts = &self.counts;
        let (bytes, found_entries, not_found_entries) = self.memory.size();
        CacheStats {
            from_memory: counts.from_memory.load(Ordering::Relaxed),
            from_redis: counts.from_redis.load(Ordering::Relaxed),
            fills: counts.fills.load(Ordering::Relaxed),
            failed_fills: counts.failed_fills.load(Ordering::Relaxed),
            shed: counts.shed.load(Ordering::Relaxed),
            dropped_writes: counts.dropped_writes.load(Ordering::Relaxed),
            bytes,
            found_entries,
            not_found_entries,
        }
    }

    /// Invalidations are heard.
    pub(crate) fn hears(&self) {
        self.trust.confirm(self.clock.now());
    }
}
