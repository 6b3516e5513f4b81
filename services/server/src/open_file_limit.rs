//! The open file limit of the process, `RLIMIT_NOFILE`, which limits its connections.

use std::num::NonZeroU32;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What takes files besides the connections of the public listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OtherFiles {
    /// Connections to PostgreSQL for requests.
    pub(crate) database: NonZeroU32,
    /// Threads that handle requests. Each has a connection to every Redis node, and a runtime.
    pub(crate) threads: usize,
    pub(crate) redis_nodes: usize,
    /// Searches in Meilisearch at a time.
    pub(crate) searches: usize,
    /// Reads of objects at a time.
    pub(crate) objects: usize,
}

/// Files of the runtime of a thread.
const RUNTIME_FILES: usize = 4;

/// Maximum number of connections to a Redis node besides those of the threads: `rox`, and 4 for batches and
/// writes, which are one in a cluster.
const REDIS_CONNECTIONS: usize = 5;

/// The standard streams, listeners, polls of the catalogue, exports, and a margin for reconnects.
const MARGIN: u64 = 64;

impl OtherFiles {
    fn number(&self) -> u64 {
        let of_threads = self.threads.saturating_mul(RUNTIME_FILES + self.redis_nodes);
        let others =
            of_threads.saturating_add(REDIS_CONNECTIONS * self.redis_nodes + self.searches + self.objects);
        u64::from(PRIVATE_CONNECTIONS + self.database.get()) + MARGIN + others as u64
    }
}

/// Connections of the private listener: more than scrapers and probes need.
const PRIVATE_CONNECTIONS: u32 = 64;

/// Raises the soft limit to the hard limit and returns it; `None` if there is no limit.
pub(crate) fn raise() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, open_files = limit.current, "failed to raise the open file limit");
            limit.current
        }
    }
}

/// The connections that the public listener may accept: the configured maximum, or what the open file limit
/// allows.
pub(crate) fn clamp_connections(
    max_connections: NonZeroU32,
    others: OtherFiles,
    open_files: Option<u64>,
) -> NonZeroU32 {
    let Some(open_files) = open_files else { return max_connections };
    let available = open_files.saturating_sub(others.number()).max(1);
    let possible = u32::try_from(available).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX);
    if max_connections <= possible {
        return max_connections;
    }
    tracing::warn!(
        max_connections,
        open_files,
        possible,
        "MAX_CONNECTIONS exceeds the open file limit (ulimit -n)"
    );
    possible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_other_files() {
        let number = |number| NonZeroU32::new(number).unwrap();
        // 64 + 16 + 64 + 4 × (4 + 3) + 5 × 3 + 64.
        let others =
            OtherFiles { database: number(16), threads: 4, redis_nodes: 3, searches: 64, objects: 0 };
        for (max, open_files, expected) in [
            (8_192, None, 8_192),
            (8_192, Some(1_048_576), 8_192),
            (8_192, Some(8_192 + 251), 8_192),
            (8_192, Some(8_192 + 250), 8_191),
            (8_192, Some(1_024), 773),
            (100, Some(1_024), 100),
            (8_192, Some(64), 1),
            (u32::MAX, Some(u64::MAX), u32::MAX),
        ] {
            assert_eq!(
                clamp_connections(number(max), others, open_files),
                number(expected),
                "{max} {open_files:?}"
            );
        }
    }
}
