//! The density curve of a chart: its shape in 48 bytes.

const PARTS: u32 = 48;

/// How dense a chart is over its length, for rows of a list that compare charts.
///
/// Each of the 48 values is the density in an equal part of the chart, in notes per second that start there.
/// The scale is that of the square root, so that slow charts show differences too, and is the same for all
/// charts: 0 is no note, 1 very few, 255 is [`MAX_DENSITY`](Self::MAX_DENSITY) or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DensityCurve([u8; Self::PARTS]);

impl DensityCurve {
    /// The number of equal parts that a chart is divided into.
    pub const PARTS: usize = PARTS as usize;

    /// The density at which a value reaches its maximum, 255, in notes per second.
    pub const MAX_DENSITY: f64 = 60.0;

    /// A curve from stored values, in the order of time.
    #[must_use]
    pub const fn from_bytes(values: [u8; Self::PARTS]) -> Self {
        Self(values)
    }

    /// The values in the order of time, as they are stored.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::PARTS] {
        &self.0
    }

    /// The density of each part, in notes per second.
    #[must_use]
    pub fn densities(&self) -> [f64; Self::PARTS] {
        self.0.map(|value| Self::MAX_DENSITY * (f64::from(value) / 255.0).powi(2))
    }

    /// The curve of a chart of this length whose notes start at these times, in milliseconds after the first
    /// note.
    ///
    /// A start on the boundary of two parts belongs to the later one, and a start at the end of the chart to
    /// the last. All values of a chart of length 0 are 0, like its average density.
    #[must_use]
    pub fn from_starts(starts_ms: impl IntoIterator<Item = u32>, length_ms: u32) -> Self {
        let mut counts = [0_u32; Self::PARTS];
        for start_ms in starts_ms {
            if let Some(count) = part(start_ms, length_ms).and_then(|part| counts.get_mut(part)) {
                *count = count.saturating_add(1);
            }
        }
        let parts_per_second = f64::from(PARTS) * 1000.0 / f64::from(length_ms);
        Self(counts.map(|count| if count == 0 { 0 } else { level(f64::from(count) * parts_per_second) }))
    }
}

/// The part of the chart that the time belongs to; `None` in a chart of length 0.
fn part(start_ms: u32, length_ms: u32) -> Option<usize> {
    let part = (u64::from(start_ms) * u64::from(PARTS)).checked_div(u64::from(length_ms))?;
    usize::try_from(part.min(u64::from(PARTS) - 1)).ok()
}

/// The value of a part with notes: at least 1, so that a single note of a long chart is not lost.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to 255, and the cast saturates"
)]
fn level(density: f64) -> u8 {
    ((255.0 * (density / DensityCurve::MAX_DENSITY).min(1.0).sqrt()).round() as u8).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_the_density_of_its_part() {
        // 48 parts of a second, each with as many notes as its number.
        let starts = (0..48_u32).flat_map(|part| (0..part).map(move |note| part * 1000 + note));
        let curve = DensityCurve::from_starts(starts, 48_000);
        let expected: Vec<u8> =
            (0..48_u8).map(|notes| if notes == 0 { 0 } else { level(notes.into()) }).collect();
        assert_eq!(curve.as_bytes()[..], expected);
        assert_eq!((expected[0], expected[15]), (0, 128), "half of the height at a quarter of the density");
    }

    #[test]
    fn boundaries_belong_to_the_later_part() {
        let curve = DensityCurve::from_starts([999, 1000, 47_000, 48_000], 48_000);
        let counted: Vec<usize> = (0..48).filter(|&part| curve.as_bytes()[part] > 0).collect();
        assert_eq!(counted, [0, 1, 47]);
        assert!(curve.as_bytes()[47] > curve.as_bytes()[0], "the last part includes the end");
    }

    #[test]
    fn the_scale_ends_at_the_highest_density() {
        for (notes, expected) in [(1, 33), (15, 128), (60, 255), (61, 255), (100_000, 255)] {
            let curve = DensityCurve::from_starts(std::iter::repeat_n(500, notes), 48_000);
            assert_eq!(curve.as_bytes()[0], expected, "{notes} notes per second");
        }
    }

    #[test]
    fn any_length_has_a_curve() {
        assert_eq!(*DensityCurve::from_starts([0, 0], 0).as_bytes(), [0; 48]);
        assert_eq!(DensityCurve::from_starts([0, 1], 1).as_bytes()[47], 255);
        let longest = DensityCurve::from_starts([0, u32::MAX], u32::MAX);
        assert_eq!((longest.as_bytes()[0], longest.as_bytes()[47]), (1, 1), "a note in a day");
    }
}
