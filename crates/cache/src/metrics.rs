//! The metrics of the cache (docs/operations/metrics.md).

use std::array;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use chart_index_instrumentation::{Counter, Histogram, metrics};
use strum::{IntoStaticStr, VariantArray};

use crate::{CachedResponse, Kind};

/// The outcome of a read of a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub(crate) enum Read {
    /// Memory has a fresh response.
    MemoryHit,
    /// Memory has a stale response, which is served.
    MemoryStale,
    /// Memory has no response that may be served.
    MemoryMiss,
    /// Redis has a fresh response.
    RedisHit,
    /// Redis has no response that may be served, or is unavailable.
    RedisMiss,
    /// The request started the fill.
    Filled,
    /// The request waited for the fill of another one, or came when that had just completed.
    Joined,
    /// The fill failed, took too long or was not possible, and an older response was served.
    Older,
    /// There was neither a fill nor an older response.
    Error,
    /// The request ended before its fill.
    Dropped,
}

impl Read {
    pub(crate) const fn tier(self) -> &'static str {
        match self {
            Self::MemoryHit | Self::MemoryStale | Self::MemoryMiss => "memory",
            Self::RedisHit | Self::RedisMiss => "redis",
            Self::Filled | Self::Joined | Self::Older | Self::Error | Self::Dropped => "store",
        }
    }

    pub(crate) const fn outcome(self) -> &'static str {
        match self {
            Self::MemoryHit | Self::RedisHit => "hit",
            Self::MemoryStale => "stale",
            Self::MemoryMiss | Self::RedisMiss => "miss",
            Self::Filled => "filled",
            Self::Joined => "joined",
            Self::Older => "older",
            Self::Error => "error",
            Self::Dropped => "dropped",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub(crate) enum FillOutcome {
    /// The index holds the key.
    Found,
    /// The index does not hold the key.
    NotFound,
    /// The fill failed.
    Error,
    /// The fill took too long.
    Timeout,
}

impl FillOutcome {
    /// The outcome of a fill that returned this response.
    pub(crate) const fn of(response: &CachedResponse) -> Self {
        match response {
            CachedResponse::Found(_) => Self::Found,
            CachedResponse::NotFound => Self::NotFound,
        }
    }
}

/// What the cache counts and measures. A [`Count`] is of this cache, while the metrics are those of the
/// process.
#[derive(Debug)]
pub(crate) struct CacheMetrics {
    /// By group and outcome.
    reads: [[Counter; Read::VARIANTS.len()]; Kind::GROUPS.len()],
    /// By group and outcome.
    fill_durations: [Vec<Histogram>; Kind::GROUPS.len()],
    pub(crate) fills: Count,
    pub(crate) failed_fills: Count,
    pub(crate) shed: Count,
    pub(crate) dropped_writes: Count,
}

/// A counter of this cache.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl CacheMetrics {
    pub(crate) fn new() -> Self {
        let requests = &metrics().chart_index_cache_requests_total;
        let reads = Kind::GROUPS.map(|group| {
            let of = |read: Read| requests.with([group, read.tier(), read.outcome()]);
            array::from_fn(|read| of(Read::VARIANTS[read]))
        });
        let duration = &metrics().chart_index_cache_fill_duration_seconds;
        let fill_durations = Kind::GROUPS.map(|group| {
            let of = |outcome: &FillOutcome| duration.with([group, outcome.into_str()]);
            FillOutcome::VARIANTS.iter().map(of).collect()
        });
        Self {
            reads,
            fill_durations,
            fills: Count::default(),
            failed_fills: Count::default(),
            shed: Count::default(),
            dropped_writes: Count::default(),
        }
    }

    pub(crate) fn count(&self, kind: Kind, read: Read) {
        self.reads[kind.group()][read as usize].inc();
    }

    /// Counts the read when it is over, also if its request is dropped before.
    pub(crate) const fn count_on_drop(&self, kind: Kind, read: Read) -> CountOnDrop<'_> {
        CountOnDrop { metrics: self, kind, read: Some(read) }
    }

    /// Counts a fill, and measures it until the timer is dropped.
    pub(crate) fn start_fill(&self, kind: Kind) -> FillTimer<'_> {
        self.fills.add(1);
        FillTimer { metrics: self, kind, started: Instant::now(), outcome: FillOutcome::Error }
    }
}

pub(crate) struct CountOnDrop<'metrics> {
    metrics: &'metrics CacheMetrics,
    kind: Kind,
    /// What to count; `None` for a request that did not read the tier after all.
    pub(crate) read: Option<Read>,
}

impl Drop for CountOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(read) = self.read {
            self.metrics.count(self.kind, read);
        }
    }
}

/// Records the duration of a fill when it is dropped: as an error unless another outcome was set, since a fill
/// may panic.
pub(crate) struct FillTimer<'metrics> {
    metrics: &'metrics CacheMetrics,
    kind: Kind,
    started: Instant,
    pub(crate) outcome: FillOutcome,
}

impl Drop for FillTimer<'_> {
    fn drop(&mut self) {
        let duration = self.started.elapsed().as_secs_f64();
        self.metrics.fill_durations[self.kind.group()][self.outcome as usize].observe(duration);
        if matches!(self.outcome, FillOutcome::Error | FillOutcome::Timeout) {
            self.metrics.failed_fills.add(1);
        }
    }
}
