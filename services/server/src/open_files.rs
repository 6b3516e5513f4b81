//! The limit of open files of this process, `RLIMIT_NOFILE`: every connection takes one.

use std::num::NonZeroU32;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is open beside the connections of the public listener and of PostgreSQL: the private listener with
/// [`PRIVATE_CONNECTIONS`], the connections to Redis and Meilisearch, the runtime, and those that are being replaced.
const RESERVED: u64 = PRIVATE_CONNECTIONS.get() as u64 + 192;

/// The most connections of the private listener, which is for a few probes and scrapers.
pub(crate) const PRIVATE_CONNECTIONS: NonZeroU32 = NonZeroU32::new(64).unwrap();

/// Raises the limit of this process to what the system allows it (its hard limit), and gives the limit then. `None` for
/// no limit.
pub(crate) fn raise() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, open_files = limit.current, "the limit of open files cannot be raised");
            limit.current
        }
    }
}

/// The connections that the public listener may hold at once under that limit, of those that are configured.
pub(crate) fn clamp(
    max_connections: NonZeroU32,
    database: NonZeroU32,
    open_files: Option<u64>,
) -> NonZeroU32 {
    let Some(open_files) = open_files else { return max_connections };
    let room = open_files.saturating_sub(RESERVED + u64::from(database.get())).max(1);
    let possible = u32::try_from(room).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX);
    if max_connections <= possible {
        return max_connections;
    }
    tracing::warn!(
        max_connections,
        open_files,
        possible,
        "MAX_CONNECTIONS is above what the limit of open files (ulimit -n) leaves room for"
    );
    possible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_other_files() {
        let number = |number| NonZeroU32::new(number).unwrap();
        for (max, open_files, expected) in [
            (8_192, None, 8_192),
            (8_192, Some(1_048_576), 8_192),
            (8_192, Some(8_192 + 256 + 16), 8_192),
            (8_192, Some(8_192 + 256 + 15), 8_191),
            (8_192, Some(1_024), 752),
            (100, Some(1_024), 100),
            (8_192, Some(64), 1),
            (u32::MAX, Some(u64::MAX), u32::MAX),
        ] {
            assert_eq!(clamp(number(max), number(16), open_files), number(expected), "{max} {open_files:?}");
        }
    }
}
