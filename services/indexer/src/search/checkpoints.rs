//! The checkpoints of all nodes that a process syncs.

use std::sync::{Mutex, PoisonError};

use chart_index_domain::search::Checkpoint;

/// The checkpoint of each node, if known.
pub(crate) struct Checkpoints(Mutex<Vec<Option<Checkpoint>>>);

impl Checkpoints {
    /// Unknown checkpoints of this number of nodes.
    pub(crate) fn of_nodes(count: usize) -> Self {
        Self(Mutex::new(vec![None; count]))
    }

    pub(crate) fn set(&self, node: usize, checkpoint: Checkpoint) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[node] = Some(checkpoint);
    }

    pub(crate) fn lowest(&self) -> Option<Checkpoint> {
        let checkpoints = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        checkpoints.iter().copied().min().flatten()
    }

    pub(crate) fn lowest_known(&self) -> Option<Checkpoint> {
        let checkpoints = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        checkpoints.iter().copied().flatten().min()
    }
}
