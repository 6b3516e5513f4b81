//! The values of typed filters.

use super::tokens::Operator;
use crate::KeyCount;
use crate::search::query_string::{MAX_NUMBER, decimal};
use crate::search::{Bounds, KeySet};
use crate::text::words as words_of;

/// The range of a filter for a number, whose values are whole in this part of its unit (`1_000.0` for
/// thousandths). `None` if it is malformed, or matches no number that is not negative.
pub(super) fn bounds(
    operator: Operator,
    value: &str,
    parse: fn(&str) -> Option<f64>,
    unit: f64,
) -> Option<Bounds> {
    let (min, max) = match operator {
        Operator::Equal => {
            let (least, greatest) = value.split_once('-').unwrap_or((value, value));
            (Some(parse(least)?.ceil()), Some(parse(greatest)?.floor()))
        }
        Operator::Above => (Some(parse(value)?.floor() + 1.0), None),
        Operator::AtLeast => (Some(parse(value)?.ceil()), None),
        Operator::Below => (None, Some(parse(value)?.ceil() - 1.0)),
        Operator::AtMost => (None, Some(parse(value)?.floor())),
    };
    let is_empty = min.zip(max).is_some_and(|(min, max)| min > max) || max.is_some_and(|max| max < 0.0);
    let in_unit = |number: Option<f64>| number.map(|number| number / unit);
    (!is_empty).then(|| Bounds { min: in_unit(min), max: in_unit(max) })
}

/// Key counts from 4 to 7: a list, or a range as of other numbers. `None` if there is none.
pub(super) fn keys(operator: Operator, value: &str) -> Option<KeySet> {
    if operator == Operator::Equal && value.contains(',') {
        let key_count = |part: &str| KeyCount::try_from(part.parse::<u8>().ok()?).ok();
        return value.split(',').map(key_count).collect();
    }
    let range = bounds(operator, value, number, 1.0)?;
    let all = (KeyCount::MIN..=KeyCount::MAX).filter(|keys| range.contains(f64::from(*keys)));
    let keys: KeySet = all.filter_map(|keys| KeyCount::try_from(keys).ok()).collect();
    (!keys.is_empty()).then_some(keys)
}

/// Text that is not empty.
pub(super) fn text(operator: Operator, value: &str) -> Option<&str> {
    let value = value.trim();
    (operator == Operator::Equal && !value.is_empty()).then_some(value)
}

/// Text without quotes, so that the filter can be typed again.
pub(super) fn unquoted(operator: Operator, value: &str) -> Option<&str> {
    text(operator, value).filter(|value| !value.contains('"'))
}

/// Text with a word at least.
pub(super) fn words(operator: Operator, value: &str) -> Option<String> {
    unquoted(operator, value).filter(|value| !words_of(value).is_empty()).map(str::to_owned)
}

/// The least percentage of a pattern, from 1 to 100.
pub(super) fn least_share(operator: Operator, value: &str) -> Option<u8> {
    let Bounds { min: Some(least), max: None } = bounds(operator, value, percent, 1.0)? else { return None };
    (1..=100).find(|percent| f64::from(*percent) >= least).filter(|_| least >= 1.0)
}

pub(super) fn number(value: &str) -> Option<f64> {
    scaled(value, 0)
}

/// A number with or without `%`.
pub(super) fn percent(value: &str) -> Option<f64> {
    number(value.strip_suffix('%').unwrap_or(value))
}

pub(super) fn hundredths(value: &str) -> Option<f64> {
    scaled(value, 2)
}

pub(super) fn thousandths(value: &str) -> Option<f64> {
    scaled(value, 3)
}

/// Seconds, such as `100`, `100.5s` or `1:40`, rounded to whole milliseconds.
pub(super) fn milliseconds(value: &str) -> Option<f64> {
    let Some((minutes, seconds)) = value.split_once(':') else {
        return scaled(value.strip_suffix('s').unwrap_or(value), 3).map(f64::round);
    };
    let whole_seconds = seconds.split('.').next().unwrap_or_default();
    if minutes.contains('.') || whole_seconds.len() != 2 {
        return None;
    }
    let (minutes, seconds) = (scaled(minutes, 0)?, scaled(seconds, 3)?.round());
    (seconds < 60_000.0).then(|| (minutes * 60_000.0 + seconds).min(MAX_NUMBER))
}

/// A decimal number without a sign and an exponent, times a power of ten.
fn scaled(value: &str, power: i32) -> Option<f64> {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_plain.then(|| decimal("query", value, power).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_plain_decimals() {
        for (value, expected) in [
            ("170", Some(170_000.0)),
            ("170.5", Some(170_500.0)),
            (".5", Some(500.0)),
            ("0.0005", Some(0.5)),
            ("99999999999999999999", Some(MAX_NUMBER)),
            ("", None),
            (".", None),
            ("-1", None),
            ("1e3", None),
            ("1.2.3", None),
            ("inf", None),
        ] {
            assert_eq!(thousandths(value), expected, "{value}");
        }
    }

    #[test]
    fn lengths_are_seconds_or_minutes() {
        for (value, expected) in [
            ("100", Some(100_000.0)),
            ("64.1", Some(64_100.0)),
            ("100s", Some(100_000.0)),
            ("1:40", Some(100_000.0)),
            ("0:05.5", Some(5_500.0)),
            ("90:00", Some(5_400_000.0)),
            ("99999999999999:00", Some(MAX_NUMBER)),
            ("1:4", None),
            ("1:60", None),
            ("1:59.9999", None),
            (":40", None),
            ("1.5:40", None),
            ("1:40s", None),
            ("1:02:03", None),
        ] {
            assert_eq!(milliseconds(value), expected, "{value}");
        }
    }
}
