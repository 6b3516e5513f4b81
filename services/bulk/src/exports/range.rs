//! Range requests (RFC 9110, section 14): one range of bytes. A request for several is answered with the whole
//! file, as the RFC allows.

use axum::http::header::{IF_RANGE, RANGE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method};
use chart_index_http::EntityTag;

/// The headers of a request that ask for a part of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct RangeRequest {
    range: Option<String>,
    if_range: Option<HeaderValue>,
}

/// What to send of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selected {
    Whole,
    /// The bytes from the first to the last, both included.
    Part {
        first: u64,
        last: u64,
    },
    /// The range begins after the end of the file.
    Unsatisfiable,
}

impl<S: Sync> axum::extract::FromRequestParts<S> for RangeRequest {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::new(&parts.method, &parts.headers))
    }
}

impl RangeRequest {
    fn new(method: &Method, headers: &HeaderMap) -> Self {
        // Ranges are defined for GET alone (section 14.2).
        let range = if method == Method::GET { headers.get(RANGE) } else { None };
        let is_repeated = headers.get_all(RANGE).iter().nth(1).is_some();
        let range = range.filter(|_| !is_repeated).and_then(|range| range.to_str().ok());
        Self { range: range.map(str::to_owned), if_range: headers.get(IF_RANGE).cloned() }
    }

    /// Selects what to send of a file with this tag and size. A malformed range is ignored, and so is any range
    /// if `If-Range` has another tag, or a time, which no file here has (section 13.1.5).
    pub(crate) fn select(&self, tag: &EntityTag, size: u64) -> Selected {
        let Some(range) = &self.range else { return Selected::Whole };
        if self.if_range.as_ref().is_some_and(|if_range| *if_range != tag.to_header_value()) {
            return Selected::Whole;
        }
        parse(range, size).unwrap_or(Selected::Whole)
    }
}

/// `None` if it is malformed, has several ranges, or is of another unit.
fn parse(range: &str, size: u64) -> Option<Selected> {
    let (unit, range) = range.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let end = size.saturating_sub(1);
    let (first, last) = match (first, last) {
        ("", suffix) => match number(suffix)? {
            0 => return Some(Selected::Unsatisfiable),
            length => (size.saturating_sub(length), end),
        },
        (first, "") => (number(first)?, end),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return None;
            }
            (first, last.min(end))
        }
    };
    Some(if first < size { Selected::Part { first, last } } else { Selected::Unsatisfiable })
}

/// Digits; a number that is too large is beyond every file.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1000;

    fn tag() -> EntityTag {
        "abc".parse().unwrap()
    }

    fn selected(method: &Method, headers: &[(axum::http::HeaderName, &str)]) -> Selected {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        RangeRequest::new(method, &map).select(&tag(), SIZE)
    }

    #[test]
    fn ranges_are_those_of_the_rfc() {
        use Selected::{Part, Unsatisfiable, Whole};
        for (range, expected) in [
            ("bytes=0-499", Part { first: 0, last: 499 }),
            ("bytes=500-999", Part { first: 500, last: 999 }),
            ("bytes=999-", Part { first: 999, last: 999 }),
            ("bytes=0-0", Part { first: 0, last: 0 }),
            ("bytes=-500", Part { first: 500, last: 999 }),
            ("bytes=-5000", Part { first: 0, last: 999 }),
            ("bytes=900-99999999999999999999999", Part { first: 900, last: 999 }),
            ("BYTES= 1-2 ", Part { first: 1, last: 2 }),
            ("bytes=1000-", Unsatisfiable),
            ("bytes=99999999999999999999999-", Unsatisfiable),
            ("bytes=-0", Unsatisfiable),
            ("bytes=2-1", Whole),
            ("bytes=0-1,5-6", Whole),
            ("bytes=", Whole),
            ("bytes=-", Whole),
            ("bytes=+1-2", Whole),
            ("bytes=a-b", Whole),
            ("bytes", Whole),
            ("items=0-1", Whole),
        ] {
            assert_eq!(selected(&Method::GET, &[(RANGE, range)]), expected, "{range}");
        }
        assert_eq!(RangeRequest::default().select(&tag(), SIZE), Whole);
        assert_eq!(selected(&Method::GET, &[(RANGE, "bytes=0-1"), (RANGE, "bytes=2-3")]), Whole);
        assert_eq!(selected(&Method::HEAD, &[(RANGE, "bytes=0-1")]), Whole);
    }

    #[test]
    fn an_empty_file_has_no_ranges() {
        for range in ["bytes=0-", "bytes=0-0", "bytes=-1"] {
            assert_eq!(parse(range, 0), Some(Selected::Unsatisfiable), "{range}");
        }
    }

    #[test]
    fn if_range_must_have_the_tag() {
        let part = Selected::Part { first: 0, last: 1 };
        for (if_range, expected) in [
            ("\"abc\"", part),
            ("W/\"abc\"", Selected::Whole),
            ("\"abd\"", Selected::Whole),
            ("abc", Selected::Whole),
            ("Sun, 22 Nov 2026 18:20:49 GMT", Selected::Whole),
        ] {
            let headers = [(RANGE, "bytes=0-1"), (IF_RANGE, if_range)];
            assert_eq!(selected(&Method::GET, &headers), expected, "{if_range}");
        }
    }
}
