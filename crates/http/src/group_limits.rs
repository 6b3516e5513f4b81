//! Limits the requests in flight of each group of routes.

use chart_index_ratelimit::Group;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The share of a group in the requests in flight, in sixteenths. All others together leave a quarter to
/// lookups, and lookups leave a quarter to them.
const fn sixteenths(group: Group) -> usize {
    match group {
        Group::Lookup => 12,
        Group::List => 4,
        Group::Page => 3,
        Group::Rox => 2,
        Group::Detail | Group::Bulk | Group::Other => 1,
    }
}

/// The permits of each group: requests of one group, which may be slow, cannot use up the permits of all.
#[derive(Debug)]
pub(crate) struct GroupLimits {
    /// By group.
    permits: [Semaphore; Group::ALL.len()],
}

impl GroupLimits {
    /// Divides this number of requests in flight among the groups, at least one for each.
    pub(crate) fn new(max_in_flight: usize) -> Self {
        let share = |group| (max_in_flight * sixteenths(group) / 16).max(1);
        Self { permits: Group::ALL.map(|group| Semaphore::new(share(group))) }
    }

    /// Acquires a permit of the group; `None` if all of them are in use.
    pub(crate) fn try_acquire(&self, group: Group) -> Option<SemaphorePermit<'_>> {
        self.permits[group as usize].try_acquire().ok()
    }
}
