//! When a refused request is repeated.

use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// The statuses of an index, or of a proxy in front of it, that responds later.
pub(crate) const REFUSALS: &[StatusCode] = &[
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::BAD_GATEWAY,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::GATEWAY_TIMEOUT,
];
/// The shortest pause. It doubles with each refusal without `Retry-After`.
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause without `Retry-After`, before the random part.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// How often a refused request is repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retries {
    pub(crate) max: u32,
    /// The longest total pause of a request.
    pub(crate) max_wait: Duration,
    /// Whether only a refusal with `Retry-After` is followed by a pause.
    pub(crate) only_when_asked: bool,
}

/// A pause before a refused request is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// The status of the refusal.
    pub status: StatusCode,
    /// How long it is.
    pub duration: Duration,
}

impl Retries {
    /// The pause after a refusal that follows `earlier` others: that of `Retry-After`, or one that doubles. The
    /// latter is up to a half longer, so that clients that were refused together do not return together. `None`
    /// if the request is not repeated.
    pub(crate) fn pause(&self, headers: &HeaderMap, earlier: u32, random: f64) -> Option<Duration> {
        if earlier >= self.max {
            return None;
        }
        let backoff = || {
            let doubled = MIN_PAUSE.saturating_mul(2_u32.saturating_pow(earlier)).min(MAX_BACKOFF);
            doubled + doubled.mul_f64(random / 2.0)
        };
        let asked = retry_after(headers).map(|pause| pause.max(MIN_PAUSE));
        asked.or_else(|| (!self.only_when_asked).then(backoff))
    }
}

/// `Retry-After` (RFC 9110, section 10.2.3), in seconds or as a date. A date is compared with the clock of the
/// server.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let now = headers.get(DATE).and_then(|value| httpdate::parse_http_date(value.to_str().ok()?).ok());
    Some(date.duration_since(now.unwrap_or_else(SystemTime::now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRIES: Retries = Retries { max: 10, max_wait: Duration::MAX, only_when_asked: false };

    fn seconds(date: Option<&str>, retry_after: Option<&str>, earlier: u32, random: f64) -> u64 {
        let mut headers = HeaderMap::new();
        for (name, value) in [(DATE, date), (RETRY_AFTER, retry_after)] {
            headers.extend(value.map(|value| (name, value.parse().unwrap())));
        }
        RETRIES.pause(&headers, earlier, random).unwrap().as_secs()
    }

    #[test]
    fn retry_after_is_in_seconds_or_a_date() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        for (retry_after, expected) in [
            ("7", 7),
            (" 120 ", 120),
            ("0", 1),
            ("99999999999999999999", u64::MAX),
            ("Sun, 06 Nov 1994 08:49:47 GMT", 10),
            ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
            ("Sun Nov  6 09:49:37 1994", 3600),
            // In the past.
            ("Sun, 06 Nov 1994 08:49:00 GMT", 1),
        ] {
            assert_eq!(seconds(Some(date), Some(retry_after), 9, 1.0), expected, "{retry_after}");
        }
    }

    #[test]
    fn pauses_without_a_readable_retry_after_double() {
        for retry_after in [None, Some(""), Some("soon"), Some("-1"), Some("1.5")] {
            for (random, expected) in [(0.0, [1, 2, 4, 8, 16, 30, 30]), (1.0, [1, 3, 6, 12, 24, 45, 45])] {
                let found: Vec<u64> =
                    (0..7).map(|earlier| seconds(None, retry_after, earlier, random)).collect();
                assert_eq!(found, expected, "{retry_after:?}");
            }
        }
        assert_eq!(RETRIES.pause(&HeaderMap::new(), 10, 0.0), None);
        let endless = Retries { max: u32::MAX, ..RETRIES };
        assert_eq!(endless.pause(&HeaderMap::new(), u32::MAX - 1, 0.0), Some(MAX_BACKOFF));
        let only_when_asked = Retries { only_when_asked: true, ..RETRIES };
        assert_eq!(only_when_asked.pause(&HeaderMap::new(), 0, 0.0), None);
    }
}
