//! Which page of the change feed a request asks for.

use std::time::Duration;

use chart_index_domain::search::{ParameterError, Parameters};
use chart_index_domain::{Lineage, MalformedLineage};

/// The number of changes of a page if the request names none.
pub(crate) const DEFAULT_LIMIT: u32 = 100;
/// The maximum number of changes of a page.
pub(crate) const MAX_LIMIT: u32 = 1_000;
/// The maximum time, in seconds, that a request waits for a change.
pub(crate) const MAX_WAIT: u32 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FeedPageRequest {
    pub(crate) after: u64,
    /// The database that numbered `after`, if the client names it.
    pub(crate) lineage: Option<Lineage>,
    pub(crate) limit: u32,
    /// How long to wait for a change if there is none yet.
    pub(crate) wait: Duration,
}

impl FeedPageRequest {
    /// Parses a query string, by the rules of lists: numbers out of range are clamped, an empty value is that
    /// of an absent parameter.
    pub(crate) fn parse(query_string: &str) -> Result<Self, ParameterError> {
        let numbers = Parameters::parse(query_string, &["after", "limit", "wait"])?;
        let after = numbers.integer("after")?.map_or(0, |after| after.max(0).unsigned_abs());
        let limit = numbers.integer("limit")?.map_or(DEFAULT_LIMIT, |limit| {
            u32::try_from(limit.clamp(1, MAX_LIMIT.into())).unwrap_or(MAX_LIMIT)
        });
        let wait = numbers.integer("wait")?.unwrap_or(0).clamp(0, MAX_WAIT.into()).unsigned_abs();
        let lineage = Parameters::parse(query_string, &["lineage"])?.parsed("lineage", |text| {
            text.parse().map_err(|error: MalformedLineage| ParameterError {
                parameter: "lineage",
                reason: error.to_string().into(),
            })
        })?;
        Ok(Self { after, lineage, limit, wait: Duration::from_secs(wait) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_and_clamped() {
        for (query, after, limit, wait) in [
            ("", 0, 100, 0),
            ("after=&limit=&wait=", 0, 100, 0),
            ("after=7&limit=20&wait=30&other=x", 7, 20, 30),
            ("after=-7&limit=0&wait=-1", 0, 1, 0),
            ("limit=-1", 0, 1, 0),
            ("limit=1001&wait=61", 0, 1_000, 60),
            ("after=9007199254740991", 9_007_199_254_740_991, 100, 0),
            ("after=99999999999999999999", i64::MAX.unsigned_abs(), 100, 0),
        ] {
            let wait = Duration::from_secs(wait);
            let expected = FeedPageRequest { after, lineage: None, limit, wait };
            assert_eq!(FeedPageRequest::parse(query), Ok(expected), "{query}");
        }
    }

    #[test]
    fn lineage_is_parsed() {
        let request = FeedPageRequest::parse("after=7&lineage=0102030405060708").unwrap();
        assert_eq!(request.lineage, Some(Lineage::from_bytes([1, 2, 3, 4, 5, 6, 7, 8])));
        assert_eq!(FeedPageRequest::parse("lineage=").unwrap().lineage, None);
    }

    #[test]
    fn malformed_values_name_the_parameter() {
        for (query, parameter) in [
            ("after=x", "after"),
            ("after=1.5", "after"),
            ("after=0x10", "after"),
            ("limit=ten", "limit"),
            ("wait=1s", "wait"),
            ("limit=5&limit=6", "limit"),
            ("limit=%FF", "limit"),
            ("lineage=01", "lineage"),
            ("lineage=010203040506070G", "lineage"),
        ] {
            assert_eq!(FeedPageRequest::parse(query).unwrap_err().parameter, parameter, "{query}");
        }
    }
}
