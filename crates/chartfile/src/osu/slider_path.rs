//! The length of the path of a slider.
//!
//! ppy/osu e9451fe7, `ConvertHitObjectParser.convertPathString`, `convertPoints`; `SliderPath.calculateLength`.

use super::hit_objects::ObjectFormat;

/// A position in the playfield, in single precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Position {
    pub(super) x: f32,
    pub(super) y: f32,
}

impl Position {
    const ZERO: Self = Self { x: 0.0, y: 0.0 };

    fn minus(self, other: Self) -> Self {
        Self { x: self.x - other.x, y: self.y - other.y }
    }

    fn length(self) -> f32 {
        (self.x * self.x + self.y * self.y).sqrt()
    }
}

/// A part of a path that begins with a letter.
struct Segment {
    /// `L` for lines, `P` for an arc, `B` for a spline; anything else is a Catmull spline.
    letter: u8,
    /// The index of its first point.
    start: usize,
}

/// The length of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Distance {
    /// Given by the file, or by lines.
    Known(f64),
    /// That of a curve, which is not computed here.
    OfCurve,
}

/// The length of a path such as `L|100:100|200:100`, with the length that the file gives. `None` where the game
/// throws an exception.
pub(super) fn read_distance(
    path: &[u8],
    start: Position,
    given: Option<f64>,
    format: ObjectFormat,
) -> Option<Distance> {
    let (segments, points) = read_path(path, start, format)?;
    let is_straight = points.len() < 3
        && segments.iter().all(|segment| matches!(segment.letter, b'B' | b'L' | b'P'))
        || (0..segments.len()).all(|index| is_linear(&segments, index, &points, format));
    let points = segments.first().map_or(&[][..], |first| &points[first.start..]);
    let lines = points.array_windows().map(|[from, to]| f64::from(to.minus(*from).length()));
    let calculated = is_straight.then(|| lines.sum::<f64>());
    let ends_twice = matches!(points, [.., before, last] if before == last);
    let distance = match (given, calculated) {
        (None, calculated) => calculated,
        (Some(_), _) if points.len() < 2 => Some(0.0),
        // A path whose end is there twice is not extended.
        (Some(given), calculated) if ends_twice => calculated.map(|calculated| given.min(calculated)),
        (Some(given), _) => Some(given),
    };
    Some(distance.map_or(Distance::OfCurve, Distance::Known))
}

/// The segments and the points, which are relative to the start.
fn read_path(path: &[u8], start: Position, format: ObjectFormat) -> Option<(Vec<Segment>, Vec<Position>)> {
    let (mut segments, mut points) = (Vec::new(), Vec::new());
    for part in path.split(|&byte| byte == b'|') {
        if is_letter(part) {
            segments.push(Segment { letter: part[0], start: points.len() });
            if points.is_empty() {
                points.push(Position::ZERO);
            }
        } else {
            let mut numbers = part.split(|&byte| byte == b':');
            points.push(format.position(numbers.next()?, numbers.next()?)?.minus(start));
        }
    }
    // A segment without a point of its own has no first point.
    let ends = segments.iter().skip(1).map(|next| next.start).chain([points.len()]);
    segments.iter().zip(ends).all(|(segment, end)| segment.start < end).then_some((segments, points))
}

/// `char.IsLetter` of the first character.
fn is_letter(part: &[u8]) -> bool {
    let first = part.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
    first.is_some_and(char::is_alphabetic)
}

/// Whether a segment consists of lines: also an arc of old formats whose three points are on one line.
fn is_linear(segments: &[Segment], index: usize, points: &[Position], format: ObjectFormat) -> bool {
    let segment = &segments[index];
    // A segment of an arc includes the first point of the next one.
    let end = segments.get(index + 1).map_or(points.len(), |next| next.start + 1);
    match (segment.letter, &points[segment.start..end]) {
        (b'L', _) => true,
        (b'P', [first, second, third]) if !format.has_decimals() => {
            let (second, third) = (second.minus(*first), third.minus(*first));
            (second.y * third.x - second.x * third.y).abs() <= 1e-3
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ConvertHitObjectParser.convertPathString`, `SliderPath.calculateLength`.
    #[test]
    fn distance_is_given_or_that_of_lines() {
        use Distance::{Known, OfCurve};
        let start = Position { x: 10.0, y: 20.0 };
        for (path, given, expected) in [
            ("L|110:20", Some(140.0), Some(Known(140.0))),
            ("L|110:20", Some(40.0), Some(Known(40.0))),
            ("L|110:20", None, Some(Known(100.0))),
            ("L|110:20|110:60", None, Some(Known(140.0))),
            ("L|110.9:20.9", None, Some(Known(100.0))),
            ("B|110:20", None, Some(Known(100.0))),
            ("P|60:20|110:20", None, Some(Known(100.0))),
            ("L|60:20|P|70:20|85:20|110:20", None, Some(Known(100.0))),
            ("L|60:20|L|110:20", None, Some(Known(100.0))),
            // The end is there twice: not extended.
            ("L|110:20|110:20", Some(140.0), Some(Known(100.0))),
            ("L|110:20|110:20", Some(40.0), Some(Known(40.0))),
            ("B|60:90|110:20|110:20", Some(140.0), Some(OfCurve)),
            // Nothing to follow.
            ("L", Some(140.0), Some(Known(0.0))),
            ("L", None, Some(Known(0.0))),
            ("110:20", Some(140.0), Some(Known(0.0))),
            // Curves.
            ("B|60:90|110:20", Some(140.0), Some(Known(140.0))),
            ("B|60:90|110:20", None, Some(OfCurve)),
            ("P|60:90|110:20", None, Some(OfCurve)),
            ("C|110:20", None, Some(OfCurve)),
            ("é|60:90|110:20", None, Some(OfCurve)),
            ("L|60:20|B|85:90|110:20", None, Some(OfCurve)),
            // Exceptions.
            ("", Some(140.0), None),
            ("L|", Some(140.0), None),
            ("L|110", Some(140.0), None),
            ("L|110:x", Some(140.0), None),
            ("L|200000:20", Some(140.0), None),
            ("L|110:20|B", Some(140.0), None),
        ] {
            let format = ObjectFormat::new(14, 0.0);
            assert_eq!(read_distance(path.as_bytes(), start, given, format), expected, "{path} {given:?}");
        }
        let with_decimals = |path: &[u8]| read_distance(path, start, None, ObjectFormat::new(128, 0.0));
        assert_eq!(with_decimals(b"L|110.5:20"), Some(Known(100.5)));
        assert_eq!(with_decimals(b"P|60:20|110:20"), Some(OfCurve), "an arc through one line");
    }
}
