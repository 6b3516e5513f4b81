//! The state of a cache, and the instruments that report it (docs/operations/metrics.md).

use std::sync::{Arc, Weak};

use chart_index_instrumentation::meter;
use opentelemetry::KeyValue;
use strum::VariantArray;

use crate::metrics::{GROUP, OUTCOME, Read};
use crate::{Cache, Kind};

/// Counters since the start, and the current state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Fresh responses found in Redis.
    pub from_redis: u64,
    /// Fills that were started.
    pub fills: u64,
    /// Fills that failed or timed out.
    pub failed_fills: u64,
    /// Fills in flight: of lists and pages for which PostgreSQL searches (2), of others (1), and of all other
    /// responses (0).
    pub fills_in_flight: [usize; 3],
    /// Fills that were not started, and requests that did not wait for one, because of the concurrency limits.
    pub shed: u64,
    /// Responses that were not written to Redis because too many writes were in flight, or it has no memory for
    /// them.
    pub dropped_writes: u64,
    /// Whether entries can be shown to be current, see [Currency](crate#currency).
    pub is_confirmed: bool,
    /// The entities in [`RecentChanges`](crate::RecentChanges).
    pub recent_changes: usize,
    /// The bytes of memory in use.
    pub bytes: u64,
    /// [`CacheConfig::bytes`](crate::CacheConfig::bytes).
    pub max_bytes: u64,
    /// The entries with a body in memory.
    pub found_entries: usize,
    /// The entries in memory of keys that the index does not hold.
    pub not_found_entries: usize,
    /// Entries that made room for others in memory.
    pub evictions: u64,
}

impl Cache {
    /// Counters since the start, and the current state.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        let metrics = &self.metrics;
        let (bytes, found_entries, not_found_entries) = self.memory.size();
        CacheStats {
            from_redis: metrics.reads(Read::RedisHit),
            fills: metrics.fills.get(),
            failed_fills: metrics.failed_fills.get(),
            fills_in_flight: self.limits.in_flight(),
            shed: metrics.shed.get(),
            dropped_writes: metrics.dropped_writes.get(),
            is_confirmed: self.rules.changes.is_confirmed(self.clock.now()),
            recent_changes: self.rules.changes.len(),
            bytes,
            max_bytes: self.memory.max_bytes(),
            found_entries,
            not_found_entries,
            evictions: self.memory.evictions(),
        }
    }
}

/// Reports the state of a cache for as long as it exists.
pub(crate) fn observe(cache: &Arc<Cache>) {
    let cache = Arc::downgrade(cache);
    observe_reads(cache.clone());
    observe_fills_in_flight(cache.clone());
    let meter = meter();
    for &(name, unit, description, value) in GAUGES {
        let cache = cache.clone();
        let gauge = meter.u64_observable_gauge(name).with_unit(unit).with_description(description);
        gauge
            .with_callback(move |observer| {
                observe_value(&cache, value, |value| observer.observe(value, &[]));
            })
            .build();
    }
    let (name, unit, description, value) = EVICTIONS;
    let counter = meter.u64_observable_counter(name).with_unit(unit).with_description(description);
    counter
        .with_callback(move |observer| {
            observe_value(&cache, value, |value| observer.observe(value, &[]));
        })
        .build();
}

/// Name, unit, description and value of an instrument without labels.
type Instrument = (&'static str, &'static str, &'static str, fn(&CacheStats) -> u64);

const GAUGES: &[Instrument] = &[
    ("chart_index.cache.size", "By", "Memory of the entries", |stats| stats.bytes),
    ("chart_index.cache.size.limit", "By", "Maximum memory of the entries", |stats| stats.max_bytes),
    ("chart_index.cache.entries", "{entry}", "Entries in memory", |stats| {
        (stats.found_entries + stats.not_found_entries) as u64
    }),
    ("chart_index.cache.confirmed", "", "Whether entries can be shown to be current", |stats| {
        stats.is_confirmed.into()
    }),
    ("chart_index.cache.recent_changes", "{entity}", "Entities whose last change is known", |stats| {
        stats.recent_changes as u64
    }),
];

const EVICTIONS: Instrument =
    ("chart_index.cache.evictions", "{entry}", "Entries that made room for others", |stats| stats.evictions);

fn observe_value(cache: &Weak<Cache>, value: fn(&CacheStats) -> u64, observe: impl FnOnce(u64)) {
    if let Some(cache) = cache.upgrade() {
        observe(value(&cache.stats()));
    }
}

fn observe_reads(cache: Weak<Cache>) {
    let label = |group: &'static str, read: Read| {
        [
            KeyValue::new(GROUP, group),
            KeyValue::new("chart_index.cache.tier", read.tier()),
            KeyValue::new(OUTCOME, read.outcome()),
        ]
    };
    let groups = Kind::GROUPS.into_iter().enumerate();
    let of_group = |(index, group)| Read::VARIANTS.iter().map(move |&read| (index, read, label(group, read)));
    let series: Vec<_> = groups.flat_map(of_group).collect();
    meter()
        .u64_observable_counter("chart_index.cache.requests")
        .with_unit("{request}")
        .with_description("Reads of a tier")
        .with_callback(move |observer| {
            let Some(cache) = cache.upgrade() else { return };
            for (group, read, labels) in &series {
                observer.observe(cache.metrics.reads_of(*group, *read), labels);
            }
        })
        .build();
}

fn observe_fills_in_flight(cache: Weak<Cache>) {
    let pools = ["store", "search", "postgres_search"].map(|name| [KeyValue::new("chart_index.pool", name)]);
    meter()
        .u64_observable_gauge("chart_index.cache.fills.in_flight")
        .with_unit("{fill}")
        .with_description("Fills in flight")
        .with_callback(move |observer| {
            let Some(cache) = cache.upgrade() else { return };
            for (in_flight, pool) in cache.stats().fills_in_flight.into_iter().zip(&pools) {
                observer.observe(in_flight as u64, pool);
            }
        })
        .build();
}
