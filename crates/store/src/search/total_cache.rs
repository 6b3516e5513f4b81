//! Caches the totals of lists.

use std::fmt;
use std::time::{Duration, Instant};

use chart_index_domain::Position;
use chart_index_domain::search::SearchQuery;
use quick_cache::sync::Cache;

use crate::feed::change_feed::position;

/// Maximum number of cached totals. An entry takes about 100 bytes.
const CAPACITY: usize = 4_096;

/// The maximum age of a total at the start of a search while the catalogue changes. A search takes at most 5 s
/// more, and a total is at most 30 s old (docs/api.md, "Chartset list").
pub(crate) const MAX_AGE: Duration = Duration::from_secs(25);

/// A total, and the state of the catalogue in which it was counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Total {
    pub(crate) count: u64,
    pub(crate) state: CatalogueState,
    /// When the statement that counted it began.
    pub(crate) counted_at: Instant,
}

/// The position of the change feed, which differs after every change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct CatalogueState {
    origin: i64,
    pub(crate) last_sequence: i64,
}

impl CatalogueState {
    pub(crate) const fn position(&self) -> Position {
        position(self.last_sequence, self.origin)
    }

    /// Whether this may be a later state than `other`, or the same one. An earlier one shows that the database
    /// was restored.
    pub(crate) fn may_follow(&self, other: &Self) -> bool {
        self.origin == other.origin && self.last_sequence >= other.last_sequence
    }
}

/// Totals by filter.
///
/// A count reads every chartset that matches; a page reads only those before its end. A cached total is used if
/// the statement that reads the page finds the state in which it was counted, and for [`MAX_AGE`] in any later
/// state: an ingest changes the state several times a second.
pub(crate) struct TotalCache(pub(crate) Cache<TotalKey, Total>);

impl Default for TotalCache {
    fn default() -> Self {
        Self(Cache::new(CAPACITY))
    }
}

impl fmt::Debug for TotalCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TotalCache").field("len", &self.0.len()).finish_non_exhaustive()
    }
}

/// The key of a cached total: the filter of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TotalKey([u8; 32]);

impl TotalKey {
    pub(crate) fn new(query: &SearchQuery) -> Self {
        Self(*blake3::hash(format!("{:?}", query.filters()).as_bytes()).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(query_string: &str) -> TotalKey {
        let query = chart_index_domain::search::parse_query_string(query_string).unwrap();
        TotalKey::new(&query)
    }

    #[test]
    fn equal_filters_have_equal_keys() {
        let lists = [
            "q=x&keys=4,7",
            "q=x&keys=7,4&sort=title&order=desc",
            "q=x&keys=4,7&page=9&perPage=60",
            "q=x&keys=4,7&after=start",
            "query=x+keys%3D4,7",
        ];
        assert!(lists.iter().all(|list| key(list) == key(lists[0])));
    }
}
