//! The times that are stored with a chartset.

use crate::Precedence;

/// The times of a write, in Unix epoch milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredTimes {
    pub(crate) updated_at_ms: i64,
    pub(crate) checked_at_ms: i64,
    /// The current time, for changes and for new charts.
    pub(crate) now_ms: i64,
    /// What stays if the chartset is stored already; `None` for an ingest, whose times are the current one.
    pub(crate) imported: Option<Precedence>,
}

impl StoredTimes {
    /// The times of an ingest.
    pub(crate) const fn now(now_ms: i64) -> Self {
        Self { updated_at_ms: now_ms, checked_at_ms: now_ms, now_ms, imported: None }
    }
}
