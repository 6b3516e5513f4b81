//! The open file limit of the process, `RLIMIT_NOFILE`, which limits its connections.

use std::num::NonZeroU32;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open files other than connections of the public listener and to PostgreSQL: [`PRIVATE_CONNECTIONS`],
/// connections to Redis and Meilisearch, those of the runtime, and a margin for reconnects.
const RESERVED_FILES: u64 = PRIVATE_CONNECTIONS.get() as u64 + 192;

/// Maximum connections of the private listener, which serves few probes.
pub(crate) const PRIVATE_CONNECTIONS: NonZeroU32 = NonZeroU32::new(64).unwrap();

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
    database: NonZeroU32,
    open_files: Option<u64>,
) -> NonZeroU32 {
    let Some(open_files) = open_files else { return max_connections };
    let available = open_files.saturating_sub(RESERVED_FILES + u64::from(database.get())).max(1);
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
            assert_eq!(
                clamp_connections(number(max), number(16), open_files),
                number(expected),
                "{max} {open_files:?}"
            );
        }
    }
}
