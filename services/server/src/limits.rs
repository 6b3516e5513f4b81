//! How much a replica does at a time, by its settings. What may take long leaves half to everything else.

use std::num::{NonZeroU32, NonZeroUsize};

use chart_index_ratelimit::Group;

use crate::arguments::ServeArguments;

/// Reads of the store at a time: of lists and pages, and of all other responses.
pub(crate) const fn reads(arguments: &ServeArguments) -> NonZeroUsize {
    arguments.cache.max_fills_in_flight
}

/// Reads of objects at a time: while the object store hangs, half of the reads is left to lookups.
pub(crate) fn object_reads(arguments: &ServeArguments) -> NonZeroUsize {
    half(reads(arguments).get())
}

/// Searches of PostgreSQL at a time: half of the connections is left to lookups, hundreds of which may take as
/// long as a search.
pub(crate) fn postgres_searches(arguments: &ServeArguments) -> NonZeroUsize {
    arguments.cache.postgres_max_searches.min(half(as_usize(arguments.store.database_max_connections)))
}

/// Requests of a group that wait for a read: half of those in flight is left to cache hits, which take
/// microseconds. The group of lists stands for pages as well, and that of lookups for all others.
pub(crate) fn waiting(arguments: &ServeArguments, group: Group) -> NonZeroUsize {
    half(arguments.request_limits.max_in_flight_of(group))
}

/// Long polls at a time: half of the connections is left to other requests.
pub(crate) fn long_polls(arguments: &ServeArguments, max_connections: NonZeroU32) -> NonZeroUsize {
    let max_long_polls = as_usize(arguments.changes.max_long_polls);
    half(as_usize(max_connections)).min(NonZeroUsize::new(max_long_polls).unwrap_or(NonZeroUsize::MIN))
}

fn half(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number / 2).unwrap_or(NonZeroUsize::MIN)
}

fn as_usize(number: NonZeroU32) -> usize {
    usize::try_from(number.get()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        arguments: ServeArguments,
    }

    fn arguments(settings: &[&str]) -> ServeArguments {
        let database = ["serve", "--database-url", "postgres://user@127.0.0.1/none"];
        Program::try_parse_from(database.iter().chain(settings)).unwrap().arguments
    }

    #[test]
    fn some_requests_in_flight_are_left_for_cache_hits() {
        for (in_flight, lookups, lists) in [("1024", 384, 128), ("8", 3, 1), ("1", 1, 1)] {
            let arguments = arguments(&["--max-requests-in-flight", in_flight]);
            let waiting = [Group::Lookup, Group::List].map(|group| waiting(&arguments, group).get());
            assert_eq!(waiting, [lookups, lists], "{in_flight}");
        }
    }

    #[test]
    fn lookups_keep_half_of_the_connections() {
        for (connections, searches) in [("16", 8), ("5", 2), ("1", 1)] {
            let settings = ["--database-max-connections", connections, "--postgres-max-searches", "9"];
            assert_eq!(postgres_searches(&arguments(&settings)).get(), searches, "{connections}");
        }
    }
}
