//! What the cache counts.

/// Counters since the start, and the current state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Responses found in Redis, fresh or stale.
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
    /// Responses that were not written to Redis because too many writes were in flight.
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
