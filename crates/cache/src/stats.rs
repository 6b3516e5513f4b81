//! What the cache counts.

/// Counters since the start, and the current size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Responses from memory, fresh or stale.
    pub from_memory: u64,
    /// Responses found in Redis.
    pub from_redis: u64,
    /// Fills started.
    pub fills: u64,
    /// Fills that failed or timed out.
    pub failed_fills: u64,
    /// Fills that were not started, and requests that did not wait for one, because of the concurrency limits.
    pub shed: u64,
    /// Responses that were not written to Redis because too many writes were in flight.
    pub dropped_writes: u64,
    /// The bytes of memory in use.
    pub bytes: u64,
    /// The entries with a body in memory.
    pub found_entries: usize,
    /// The entries in memory of keys that the index does not hold.
    pub not_found_entries: usize,
}
