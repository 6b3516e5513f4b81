//! Writes numbers and names as people read them.

use std::fmt::Write as _;

use chart_index_domain::search::Bounds;
use time::OffsetDateTime;

/// A whole number with separators: `12,345`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with a singular or a plural: `1 set`, `2 sets`.
pub(crate) fn counted(number: u64, singular: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {singular}{plural}", count(number))
}

/// A decimal number, rounded to this many places, without trailing zeros: `174.5`, `12,345`.
pub(crate) fn decimal(number: f64, places: usize) -> String {
    let rounded = format!("{number:.places$}");
    let (whole, fraction) = rounded.split_once('.').unwrap_or((&rounded, ""));
    let fraction = fraction.trim_end_matches('0');
    let mut text = whole.parse().map_or_else(|_| whole.to_owned(), count);
    if !fraction.is_empty() {
        let _ = write!(text, ".{fraction}");
    }
    text
}

/// A name, or the placeholder if it is empty.
pub(crate) fn named(name: String, placeholder: &str) -> String {
    if name.is_empty() { placeholder.to_owned() } else { name }
}

/// A song as in titles: `Artist – Title`, or the title if the artist is not known.
pub(crate) fn artist_and_title(artist: &str, title: &str) -> String {
    if artist.is_empty() { title.to_owned() } else { format!("{artist} – {title}") }
}

/// The end of a description that names the creator: `, charted by zoe`; empty if the creator is not known.
pub(crate) fn charted_by(creator: &str) -> String {
    if creator.is_empty() { String::new() } else { format!(", charted by {creator}") }
}

/// Beats per minute: one decimal is as much as people use.
pub(crate) fn bpm(number: f64) -> String {
    decimal(number, 1)
}

/// A range of beats per minute: `175`, `87.5–175`.
pub(crate) fn bpm_range(min: f64, max: f64) -> String {
    range(&bpm(min), &bpm(max))
}

/// Notes per second.
pub(crate) fn density(number: f64) -> String {
    decimal(number, 1)
}

/// The whole seconds of a length, as they are shown.
pub(crate) fn whole_seconds(ms: u32) -> u32 {
    ms / 1_000 + u32::from(ms % 1_000 >= 500)
}

/// A length: `1:32`, `1:02:03`.
pub(crate) fn length(ms: u32) -> String {
    length_of_seconds(whole_seconds(ms))
}

/// The same of a number of seconds.
pub(crate) fn length_of_seconds(seconds: u32) -> String {
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

pub(crate) fn length_range(min_ms: u32, max_ms: u32) -> String {
    range(&length(min_ms), &length(max_ms))
}

/// A size: `812 B`, `4.1 KB`.
pub(crate) fn bytes(number: u64) -> String {
    if number < 1_000 {
        return format!("{number} B");
    }
    let tenths = (number + 50) / 100;
    format!("{}.{} KB", count(tenths / 10), tenths % 10)
}

/// The share of long notes: `31%`; more than none and less than half a percent is `<1%`.
pub(crate) fn share(part: u32, whole: u32) -> String {
    if part == 0 || whole == 0 {
        return "0%".to_owned();
    }
    let percent = (u64::from(part) * 100 + u64::from(whole) / 2) / u64::from(whole);
    if percent == 0 { "<1%".to_owned() } else { format!("{percent}%") }
}

/// The name of a filter by bounds: `100–180`, `from 100`, `up to 180`.
pub(crate) fn bounds(bounds: Bounds, format: impl Fn(f64) -> String) -> String {
    match (bounds.min, bounds.max) {
        (Some(min), Some(max)) => range(&format(min), &format(max)),
        (Some(min), None) => format!("from {}", format(min)),
        (None, Some(max)) => format!("up to {}", format(max)),
        (None, None) => String::new(),
    }
}

/// A length in milliseconds that a filter names, which may have a fraction of a second.
pub(crate) fn filter_length(ms: f64) -> String {
    let seconds = ms / 1000.0;
    if seconds.fract() == 0.0 && seconds < f64::from(u32::MAX) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within the range of u32"
        )]
        let seconds = seconds as u32;
        length_of_seconds(seconds)
    } else {
        format!("{} s", decimal(seconds, 3))
    }
}

/// The seconds of a filter as its field shows them: whole ones as `1:40`.
pub(crate) fn length_field(seconds: String) -> String {
    seconds.parse().map_or(seconds, length_of_seconds)
}

/// The seconds of a length such as `1:40` or `1:02:03`.
pub(crate) fn parse_length(text: &str) -> Option<u64> {
    let parts = text.split(':').map(|part| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u32>().ok().filter(|_| is_number).map(u64::from)
    });
    let parts = parts.collect::<Option<Vec<_>>>()?;
    let is_length = matches!(parts.len(), 2 | 3) && parts[1..].iter().all(|part| *part < 60);
    is_length.then(|| parts.iter().fold(0, |sum, part| 60 * sum + part))
}

fn range(min: &str, max: &str) -> String {
    if min == max { min.to_owned() } else { format!("{min}–{max}") }
}

/// A moment in Unix epoch milliseconds as RFC 3339 in UTC, `2026-11-22T14:02:00Z`.
pub(crate) fn rfc3339(epoch_ms: i64) -> String {
    let moment = moment(epoch_ms);
    let (hour, minute, second) = moment.to_hms();
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", moment.date())
}

/// The day of a moment in Unix epoch milliseconds: `2026-11-22`, in UTC.
pub(crate) fn date(epoch_ms: i64) -> String {
    moment(epoch_ms).date().to_string()
}

/// The time of day of a moment in Unix epoch milliseconds: `14:02`, in UTC.
pub(crate) fn time_of_day(epoch_ms: i64) -> String {
    let (hour, minute, _) = moment(epoch_ms).to_hms();
    format!("{hour:02}:{minute:02}")
}

/// A moment in UTC. One outside the years -9999 to 9999 is the beginning of the epoch.
fn moment(epoch_ms: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(epoch_ms.div_euclid(1_000)).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators_and_no_trailing_zeros() {
        assert_eq!([0, 7, 999, 1_000, 1_234_567].map(count), ["0", "7", "999", "1,000", "1,234,567"]);
        assert_eq!([counted(1, "set"), counted(2, "set")], ["1 set", "2 sets"]);
        for (number, expected) in
            [(175.0, "175"), (87.5, "87.5"), (174.96, "175"), (1e6, "1,000,000"), (0.04, "0"), (0.0, "0")]
        {
            assert_eq!(bpm(number), expected);
        }
        assert_eq!([999, 1_049, 60_000].map(bytes), ["999 B", "1.0 KB", "60.0 KB"]);
        assert_eq!(bpm_range(87.5, 175.0), "87.5–175");
        assert_eq!(bpm_range(175.0, 175.0), "175");
    }

    #[test]
    fn lengths_have_minutes_and_seconds() {
        for (ms, expected) in [
            (0, "0:00"),
            (499, "0:00"),
            (500, "0:01"),
            (92_000, "1:32"),
            (3_723_000, "1:02:03"),
            (u32::MAX, "1193:02:47"),
        ] {
            assert_eq!(length(ms), expected);
        }
        for (ms, expected) in [(64_100.0, "64.1 s"), (90_000.0, "1:30"), (1e13, "10,000,000,000 s")] {
            assert_eq!(filter_length(ms), expected);
        }
        for (seconds, expected) in [("9999999", "2777:46:39"), ("99999999999", "99999999999"), ("1.5", "1.5")]
        {
            assert_eq!(length_field(seconds.to_owned()), expected);
        }
    }

    #[test]
    fn lengths_are_parsed() {
        for (text, seconds) in [
            ("1:40", Some(100)),
            ("0:05", Some(5)),
            ("90:00", Some(5_400)),
            ("1:02:03", Some(3_723)),
            ("1:60", None),
            ("100", None),
            ("1:", None),
            ("1:+5", None),
            ("1:2:3:4", None),
        ] {
            assert_eq!(parse_length(text), seconds, "{text}");
        }
    }

    #[test]
    fn share_of_long_notes_is_never_rounded_to_none() {
        for (part, whole, expected) in [
            (0, 10, "0%"),
            (1, 1_000, "<1%"),
            (5, 1_000, "1%"),
            (31, 100, "31%"),
            (1, 1, "100%"),
            (0, 0, "0%"),
        ] {
            assert_eq!(share(part, whole), expected);
        }
    }

    #[test]
    fn moments_are_in_utc() {
        for (epoch_ms, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_790_000_000_000, "2026-09-21T14:13:20Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (i64::MAX, "1970-01-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(epoch_ms), expected);
            assert_eq!(
                (date(epoch_ms), time_of_day(epoch_ms)),
                (expected[..10].to_owned(), expected[11..16].to_owned())
            );
        }
    }
}
