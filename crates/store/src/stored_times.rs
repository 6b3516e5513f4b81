//! The times that are stored with a chartset.

/// The times of a write, in Unix epoch milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredTimes {
    pub(crate) updated_at_ms: i64,
    pub(crate) checked_at_ms: i64,
    /// The current time, for changes and for new charts.
    pub(crate) now_ms: i64,
    /// Whether the times come from another index: if so, a stored chartset is replaced only if it is not newer.
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
