//! The length of the path of a slider, as far as it does not depend on the form of a curve.
//!
//! ppy/osu e9451fe7, `ConvertHitObjectParser.convertPathString`, `convertPoints`; `SliderPath.calculateLength`.

use super::hit_objects::{ObjectFormat, Position};

/// The length of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Distance {
    Known(f64),
    OfCurve,
}

/// The length of a path such as `L|100:100|200:100`, with the place of the slider and the length that the file
/// gives. `None` where the game throws an exception.
pub(super) fn read_distance(
    path: &[u8],
    start: Position,
    given: Option<f64>,
    format: ObjectFormat,
) -> Option<Distance> {
    // How many points the last segment has, of which the first begins at the slider itself.
    let (mut in_segment, mut has_points, mut begins_elsewhere) = (None, false, false);
    let (mut last, mut ends_twice, mut has_length) = (start, false, false);
    for part in path.split(|&byte| byte == b'|') {
        if is_letter(part) {
            begins_elsewhere |= in_segment.is_none() && has_points;
            if in_segment.replace(usize::from(!has_points)) == Some(0) {
                return None;
            }
        } else {
            let mut numbers = part.split(|&byte| byte == b':');
            let point = format.position(numbers.next()?, numbers.next()?)?;
            ends_twice = point == last;
            has_length |= !ends_twice;
            last = point;
            in_segment = in_segment.map(|count| count + 1);
        }
        has_points = true;
    }
    Some(match (in_segment, given) {
        (Some(0), _) => return None,
        (None, _) => Distance::Known(0.0),
        (_, _) if begins_elsewhere => Distance::OfCurve,
        (_, _) if !has_length => Distance::Known(0.0),
        // A path whose end is there twice is not extended.
        (_, Some(given)) if !ends_twice => Distance::Known(given),
        _ => Distance::OfCurve,
    })
}

/// `char.IsLetter` of the first character.
fn is_letter(part: &[u8]) -> bool {
    let first = part.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
    first.is_some_and(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ConvertHitObjectParser.convertPathString`, `SliderPath.calculateLength`.
    #[test]
    fn distance_is_given_or_that_of_a_curve() {
        use Distance::{Known, OfCurve};
        for (path, given, expected) in [
            ("L|110:20", Some(140.0), Some(Known(140.0))),
            ("L|110:20|10:20", Some(40.0), Some(Known(40.0))),
            ("B|60:90|60:90|110:20", Some(140.0), Some(Known(140.0))),
            ("L|60:20|P|70:20|85:20|110:20", Some(140.0), Some(Known(140.0))),
            ("é|60:90|110:20", Some(140.0), Some(Known(140.0))),
            // Without a length.
            ("L|110:20", None, Some(OfCurve)),
            ("B|60:90|110:20", None, Some(OfCurve)),
            // The end is there twice: not extended.
            ("L|110:20|110:20", Some(140.0), Some(OfCurve)),
            ("L|60:20|L|60:20", Some(140.0), Some(OfCurve)),
            // Nothing to follow.
            ("L", Some(140.0), Some(Known(0.0))),
            ("L|10:20", Some(140.0), Some(Known(0.0))),
            ("B|10:20|10.5:20.5", None, Some(Known(0.0))),
            ("110:20", Some(140.0), Some(Known(0.0))),
            // Points before the first segment are no part of it.
            ("60:20|L|110:20", Some(140.0), Some(OfCurve)),
            // Exceptions.
            ("", Some(140.0), None),
            ("L|", Some(140.0), None),
            ("L|110", Some(140.0), None),
            ("L|110:x", Some(140.0), None),
            ("L|200000:20", Some(140.0), None),
            ("L|110:20|B", Some(140.0), None),
            ("L|B", Some(140.0), None),
            ("60:20|L", Some(140.0), None),
        ] {
            let read = read_distance(path.as_bytes(), (10.0, 20.0), given, ObjectFormat::new(14, 0.0));
            assert_eq!(read, expected, "{path} {given:?}");
        }
        let with_decimals =
            read_distance(b"B|10:20|10.5:20.5", (10.0, 20.0), Some(9.0), ObjectFormat::new(128, 0.0));
        assert_eq!(with_decimals, Some(Known(9.0)));
    }
}
