//! The state of a cache, and the metrics that report it (docs/operations/metrics.md).

use chart_index_instrumentation::Metrics;

use crate::Cache;

/// Counters since the start, and the current state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
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

/// Reports the state of a cache at a scrape.
pub(crate) fn report(cache: &Cache, metrics: &Metrics) {
    let stats = cache.stats();
    for (pool, in_flight) in ["store", "search", "postgres_search"].into_iter().zip(stats.fills_in_flight) {
        metrics.chart_index_cache_fills_in_flight.set([pool], in_flight);
    }
    metrics.chart_index_cache_size_bytes.set([], stats.bytes);
    metrics.chart_index_cache_size_limit_bytes.set([], stats.max_bytes);
    metrics.chart_index_cache_entries.set([], stats.found_entries + stats.not_found_entries);
    metrics.chart_index_cache_evictions_total.set([], stats.evictions);
    metrics.chart_index_cache_confirmed.set([], stats.is_confirmed);
    metrics.chart_index_cache_recent_changes.set([], stats.recent_changes);
}
