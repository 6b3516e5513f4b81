//! Decides which root spans are created.

use std::str::FromStr;

/// Samples a share of the root spans. The decision is made before a span is created, so that unsampled ones
/// cost nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    ratio: f64,
}

/// A sample ratio is not a number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a number from 0 to 1")]
pub struct InvalidSampleRatio;

impl Sampler {
    /// Samples nothing.
    pub const OFF: Self = Self { ratio: 0.0 };

    /// Samples this share of the root spans.
    ///
    /// # Errors
    ///
    /// The ratio is not from 0 to 1.
    pub fn new(ratio: f64) -> Result<Self, InvalidSampleRatio> {
        if (0.0..=1.0).contains(&ratio) { Ok(Self { ratio }) } else { Err(InvalidSampleRatio) }
    }

    /// Whether to create a root span now.
    #[must_use]
    pub fn sample(self) -> bool {
        // Without a random number in the usual case that nothing is sampled.
        self.ratio > 0.0 && fastrand::f64() < self.ratio
    }

    /// Whether it samples nothing, not even what a caller samples.
    #[must_use]
    pub fn is_off(self) -> bool {
        self.ratio == 0.0
    }
}

impl FromStr for Sampler {
    type Err = InvalidSampleRatio;

    fn from_str(text: &str) -> Result<Self, InvalidSampleRatio> {
        Self::new(text.parse().map_err(|_| InvalidSampleRatio)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_is_a_number_from_0_to_1() {
        for (text, valid) in [
            ("0", true),
            ("0.01", true),
            ("1", true),
            ("1.1", false),
            ("-0.1", false),
            ("NaN", false),
            ("", false),
        ] {
            assert_eq!(text.parse::<Sampler>().is_ok(), valid, "{text:?}");
        }
    }

    #[test]
    fn ratio_is_the_share_that_is_sampled() {
        let sampled = |ratio| (0..10_000).filter(|_| Sampler { ratio }.sample()).count();
        assert_eq!((sampled(0.0), sampled(1.0)), (0, 10_000));
        let tenth = sampled(0.1);
        assert!((700..1_300).contains(&tenth), "{tenth} of 10,000");
    }
}
