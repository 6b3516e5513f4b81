//! Which page of the change feed a request asks for.

use chart_index_domain::search::{ParameterError, parse_integers};

/// The number of changes of a page if the request names none.
pub(crate) const DEFAULT_LIMIT: u32 = 100;
/// The maximum number of changes of a page.
pub(crate) const MAX_LIMIT: u32 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FeedPageRequest {
    pub(crate) after: u64,
    pub(crate) limit: u32,
}

impl FeedPageRequest {
    /// Parses a query string, by the rules of lists: numbers out of range are clamped, an empty value is that
    /// of an absent parameter.
    pub(crate) fn parse(query_string: &str) -> Result<Self, ParameterError> {
        let [after, limit] = parse_integers(query_string, ["after", "limit"])?;
        let limit = limit.map_or(DEFAULT_LIMIT, |limit| {
            u32::try_from(limit.clamp(1, MAX_LIMIT.into())).unwrap_or(MAX_LIMIT)
        });
        Ok(Self { after: after.map_or(0, |after| after.max(0).unsigned_abs()), limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_and_clamped() {
        for (query, after, limit) in [
            ("", 0, 100),
            ("after=&limit=", 0, 100),
            ("after=7&limit=20&other=x", 7, 20),
            ("after=-7&limit=0", 0, 1),
            ("limit=-1", 0, 1),
            ("limit=1001", 0, 1_000),
            ("after=9007199254740991", 9_007_199_254_740_991, 100),
            ("after=99999999999999999999", i64::MAX.unsigned_abs(), 100),
        ] {
            assert_eq!(FeedPageRequest::parse(query), Ok(FeedPageRequest { after, limit }), "{query}");
        }
    }

    #[test]
    fn malformed_numbers_name_the_parameter() {
        for (query, parameter) in [
            ("after=x", "after"),
            ("after=1.5", "after"),
            ("after=0x10", "after"),
            ("limit=ten", "limit"),
            ("limit=5&limit=6", "limit"),
            ("limit=%FF", "limit"),
        ] {
            assert_eq!(FeedPageRequest::parse(query).unwrap_err().parameter, parameter, "{query}");
        }
    }
}
