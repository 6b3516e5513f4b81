//! The concurrency limit of the PostgreSQL search engine.

use std::time::Duration;

use chart_index_permits::{PermitQueue, QueueLimits};

/// Maximum number of searches that wait for a permit: each of them occupies a request, and some are left for
/// lookups.
const MAX_QUEUED: usize = 256;
/// Maximum time that a search waits for a permit: the usual deadline of a request minus the time of the search
/// itself.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(4);
/// Longest time that searches wait for permits before further ones are rejected.
const MAX_BURST: Duration = Duration::from_millis(500);

/// Creates the limit of searches. At most `max_searches` are in flight, on at most half of the connections,
/// since one may take as long as hundreds of lookups; the number of those that wait is limited as well.
pub(crate) fn search_limit(max_searches: usize, max_connections: u32) -> PermitQueue {
    let half = usize::try_from(max_connections / 2).unwrap_or(usize::MAX);
    PermitQueue::new(QueueLimits {
        permits: max_searches.min(half),
        max_queued: MAX_QUEUED,
        max_wait: QUEUE_TIMEOUT,
        max_burst: MAX_BURST,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookups_keep_half_of_the_connections() {
        for (max_searches, max_connections, expected) in
            [(4, 16, 4), (4, 8, 4), (4, 4, 2), (4, 1, 1), (1, 16, 1), (100, 16, 8)]
        {
            let limit = search_limit(max_searches, max_connections);
            assert_eq!(limit.available_permits(), expected);
        }
    }
}
