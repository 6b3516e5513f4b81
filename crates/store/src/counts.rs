//! Totals of lists that were counted before.

use std::fmt;

use chart_index_domain::search::{Direction, Generation, PageRequest, SearchQuery, Sort};
use quick_cache::sync::Cache;

/// How many totals are cached. An entry takes about 100 bytes.
const CAPACITY: usize = 4_096;

/// A total, and the state of the catalogue that it was counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) total: u64,
    pub(crate) generation: Generation,
}

/// Totals by filter, bounded in number.
///
/// Counting reads every chartset that matches, a page only as many as lie before it. So the totals are cached, and used
/// where the statement that reads the page finds the catalogue in the state that was counted.
pub(crate) struct Counts(pub(crate) Cache<CountKey, Counted>);

impl Default for Counts {
    fn default() -> Self {
        Self(Cache::new(CAPACITY))
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counts").field("len", &self.0.len()).finish_non_exhaustive()
    }
}

/// What a total is cached under: the filter of a query, and the generation that the caller asked for, so that after a
/// change the totals of before are not found any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CountKey([u8; 32]);

impl CountKey {
    pub(crate) fn new(query: &SearchQuery, generation: Generation) -> Self {
        let filter = SearchQuery {
            sort: Sort::default(),
            direction: Direction::default(),
            page: PageRequest::default(),
            ..query.clone()
        };
        Self(*blake3::hash(format!("{generation:?} {filter:?}").as_bytes()).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(query_string: &str) -> CountKey {
        let query = chart_index_domain::search::parse_query_string(query_string).unwrap();
        CountKey::new(&query, Generation(1))
    }

    #[test]
    fn lists_with_one_filter_have_one_total() {
        let lists = ["q=x&keys=4,7", "q=x&keys=7,4&sort=title&order=desc", "q=x&keys=4,7&page=9&perPage=60"];
        assert!(lists.iter().all(|list| key(list) == key(lists[0])));
    }

    #[test]
    fn every_part_of_a_filter_is_part_of_the_key() {
        let filters = [
            "",
            "q=x",
            "q=y",
            "keys=4",
            "keys=5",
            "source=alphaSet",
            "source=betaPack",
            "creator=x",
            "bpmMin=1",
            "bpmMin=2",
            "bpmMax=1",
            "lengthMin=1",
            "lengthMax=1",
            "densityMin=1",
            "q=x&creator=y",
            "q=y&creator=x",
        ];
        let distinct: std::collections::HashSet<_> = filters.map(key).into_iter().collect();
        assert_eq!(distinct.len(), filters.len());
    }

    #[test]
    fn another_generation_is_another_key() {
        let query = SearchQuery::default();
        assert_ne!(CountKey::new(&query, Generation(1)), CountKey::new(&query, Generation(2)));
    }
}
