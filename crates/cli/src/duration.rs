//! Durations in whole milliseconds.

use std::num::{NonZeroU64, ParseIntError};
use std::time::Duration;

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

#[cfg(test)]
mod tests {
    use super::*;

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
