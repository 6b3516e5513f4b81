//! The state of the catalogue and the cache when a read of the store starts.

use crate::clock::Now;
use crate::freshness::Timestamps;
use crate::generation::{CurrentGeneration, LocalGenerationId};

/// What was known when a read started; decides whether its response may be cached, and when it counts as
/// checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadStart {
    pub(crate) now: Now,
    pub(crate) unix_ms: u64,
    pub(crate) generation: Option<CurrentGeneration>,
    /// [`Shard::invalidations`](crate::single_flight::Shard::invalidations) of the key.
    pub(crate) invalidations: u64,
}

impl ReadStart {
    /// The timestamps of a response that this read returned.
    pub(crate) fn timestamps(&self) -> Timestamps {
        let generation = self.generation.map_or(LocalGenerationId::UNKNOWN, |current| current.local_id);
        Timestamps { read_at: self.now.coarse, checked_at: self.now.coarse, generation }
    }
}
