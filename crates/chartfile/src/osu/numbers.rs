//! Numbers of an `.osu` file, with the limits of the game. What the game throws an exception for is `None`: it
//! skips the line.
//!
//! ppy/osu e9451fe7, `Parsing`.

use crate::dotnet::{self, INVARIANT};

const MAX_VALUE: f64 = 2_147_483_647.0;

/// The same in single precision.
const MAX_SINGLE: f32 = 2_147_483_648.0;

/// The limit for coordinates and lengths, `Parsing.MAX_COORDINATE_VALUE`.
const MAX_COORDINATE: f64 = 131_072.0;

/// `Parsing.ParseInt`. The limit excludes the lowest number.
pub(super) fn int(text: &[u8]) -> Option<i32> {
    dotnet::int(text).filter(|&value| value != i32::MIN)
}

/// `Parsing.ParseFloat`: a number in single precision.
pub(super) fn single(text: &[u8]) -> Option<f32> {
    let value = dotnet::single(text, &INVARIANT)?;
    (value.abs() <= MAX_SINGLE).then_some(value)
}

/// `Parsing.ParseFloat` of a coordinate.
pub(super) fn coordinate(text: &[u8]) -> Option<f32> {
    single(text).filter(|value| f64::from(value.abs()) <= MAX_COORDINATE)
}

/// `Parsing.ParseDouble`.
pub(super) fn double(text: &[u8]) -> Option<f64> {
    double_or_nan(text).filter(|value| !value.is_nan())
}

/// `Parsing.ParseDouble`, which may give a value that is not a number.
pub(super) fn double_or_nan(text: &[u8]) -> Option<f64> {
    dotnet::double(text, &INVARIANT).filter(|value| value.is_nan() || value.abs() <= MAX_VALUE)
}

/// `Parsing.ParseDouble` of a length.
pub(super) fn length(text: &[u8]) -> Option<f64> {
    double(text).filter(|value| value.abs() <= MAX_COORDINATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_game() {
        for (text, expected) in [
            ("2147483647", Some(2_147_483_647.0)),
            ("-2147483647", Some(-2_147_483_647.0)),
            ("2147483647.5", None),
            ("-2147483648", None),
            ("Infinity", None),
            ("NaN", None),
        ] {
            assert_eq!(double(text.as_bytes()), expected, "{text}");
        }
        assert!(double_or_nan(b"NaN").is_some_and(f64::is_nan) && double_or_nan(b"Infinity").is_none());
        assert_eq!((int(b"2147483647"), int(b"-2147483648")), (Some(i32::MAX), None));
        assert_eq!((single(b"2147483700"), single(b"2147484000")), (Some(2_147_483_648.0), None));
        assert_eq!((single(b"NaN"), coordinate(b"NaN"), length(b"NaN")), (None, None, None));
        assert_eq!((coordinate(b"-131072"), coordinate(b"131072.1")), (Some(-131_072.0), None));
        assert_eq!((length(b"131072"), length(b"131072.1")), (Some(131_072.0), None));
    }
}
