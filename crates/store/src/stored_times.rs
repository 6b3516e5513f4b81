//! The times that are stored with a chartset.

/// The times that are stored with a chartset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredTimes {
    pub(crate) updated_at_ms: i64,
    pub(crate) checked_at_ms: i64,
    /// The current time, for the outbox and for new charts.
    pub(crate) now_ms: i64,
    /// Whether the times are those of another index: then they decide whether a stored chartset is replaced.
    pub(crate) is_import: bool,
}

impl StoredTimes {
    /// The times of an ingest.
    pub(crate) const fn now(now_ms: i64) -> Self {
        Self { updated_at_ms: now_ms, checked_at_ms: now_ms, now_ms, is_import: false }
    }

    /// The times of an import.
    pub(crate) const fn imported(updated_at_ms: i64, checked_at_ms: i64, now_ms: i64) -> Self {
        Self { updated_at_ms, checked_at_ms, now_ms, is_import: true }
    }
}
