//! Durations in whole milliseconds.

use std::num::{NonZeroU64, ParseIntError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Parses a duration from a whole number of milliseconds, at least 1.
///
/// # Errors
///
/// The text is not a number, or it is 0.
pub fn parse_milliseconds(text: &str) -> Result<Duration, ParseIntError> {
    text.parse::<NonZeroU64>().map(|number| Duration::from_millis(number.get()))
}

/// Parses a delay from a whole number of milliseconds, which may be 0.
///
/// # Errors
///
/// The text is not a number.
pub fn parse_delay_milliseconds(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_millis)
}

/// A duration for people, in the greatest unit of which it has two: `3 days`, `26 hours`, `90 minutes`.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [("day", 24 * 60 * 60), ("hour", 60 * 60), ("minute", 60)];
    let unit = units.into_iter().find(|(_, length)| seconds >= 2 * length);
    let (unit, length) = unit.unwrap_or(("second", 1));
    match seconds / length {
        1 => format!("1 {unit}"),
        number => format!("{number} {unit}s"),
    }
}

/// How long ago a time in Unix epoch milliseconds was, such as `3 days ago`; `0 seconds ago` for one to come.
#[must_use]
pub fn format_age(time_ms: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = Duration::from_millis(u64::try_from(time_ms).unwrap_or_default());
    format!("{} ago", format_duration(now.saturating_sub(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_in_their_greatest_unit() {
        for (seconds, expected) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (119, "119 seconds"),
            (120, "2 minutes"),
            (7_199, "119 minutes"),
            (7_200, "2 hours"),
            (172_799, "47 hours"),
            (864_000, "10 days"),
        ] {
            assert_eq!(format_duration(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn duration_is_a_positive_number_of_milliseconds() {
        assert_eq!(parse_milliseconds("1500"), Ok(Duration::from_millis(1500)));
        for bad in ["0", "-1", "1.5", "1s", ""] {
            assert!(parse_milliseconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn delay_may_be_zero() {
        assert_eq!(parse_delay_milliseconds("0"), Ok(Duration::ZERO));
        assert_eq!(parse_delay_milliseconds("1500"), Ok(Duration::from_millis(1500)));
        for bad in ["-1", "1.5", "1s", ""] {
            assert!(parse_delay_milliseconds(bad).is_err(), "{bad}");
        }
    }
}
