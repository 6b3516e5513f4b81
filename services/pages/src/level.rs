//! The difficulty of charts as the pages show it: a number on a colour.

use chart_index_domain::{Chart, KeyCount, Rating};

/// The ratings in hundredths at which the colours begin, `.l0` to `.l7` of `style.css`. Lower ratings have the
/// first colour.
pub(crate) const STOPS: [u16; 8] = [50, 100, 150, 200, 270, 350, 450, 600];

/// A rating with its colour.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    /// The index of the colour in [`STOPS`].
    pub(crate) colour: usize,
    /// Such as `5.27`.
    pub(crate) number: String,
}

impl Level {
    /// The level of a chart, if it has a rating.
    pub(crate) fn of_chart(chart: &Chart) -> Option<Self> {
        chart.rating.map(Self::new)
    }

    pub(crate) fn new(rating: Rating) -> Self {
        let colour = STOPS.iter().skip(1).filter(|stop| **stop <= rating.hundredths()).count();
        Self { colour, number: format!("{:.2}", rating.value()) }
    }
}

/// Orders the charts of a set as the pages show them: by keys, then by rating, those without a rating last.
pub(crate) fn order(chart: &Chart) -> (KeyCount, bool, Option<Rating>) {
    (chart.numbers.keys, chart.rating.is_none(), chart.rating)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: &str = include_str!("../assets/style.css");

    #[test]
    fn colour_follows_the_rating() {
        for (hundredths, colour, number) in [
            (0, 0, "0.00"),
            (99, 0, "0.99"),
            (100, 1, "1.00"),
            (269, 3, "2.69"),
            (270, 4, "2.70"),
            (527, 6, "5.27"),
            (600, 7, "6.00"),
            (1_500, 7, "15.00"),
        ] {
            let level = Level::new(Rating::from_hundredths(hundredths).unwrap());
            assert_eq!((level.colour, level.number.as_str()), (colour, number));
        }
    }

    /// WCAG 2.2, "Contrast (Minimum)": 4.5:1.
    #[test]
    fn numbers_are_readable_on_their_colours() {
        for colour in 0..STOPS.len() {
            let grounds = light_and_dark(colour, "background");
            let texts = light_and_dark(colour, "--on-level");
            for (ground, text) in grounds.into_iter().zip(texts) {
                let contrast = contrast(ground, text);
                assert!(contrast >= 4.5, ".l{colour}: {text} on {ground} has {contrast:.2}:1");
            }
        }
        assert!(!STYLE.contains(&format!(".l{} ", STOPS.len())), "as many colours as stops");
    }

    /// The two colours of a property of `.l0` and so on.
    fn light_and_dark(colour: usize, property: &str) -> [&'static str; 2] {
        let (_, rule) = STYLE.split_once(&format!("\n.l{colour} {{")).unwrap();
        let (_, value) = rule.split_once(&format!(" {property}: light-dark(")).unwrap();
        let (light, dark) = value.split_once(')').unwrap().0.split_once(", ").unwrap();
        [light, dark]
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// The relative luminance of a colour of six hexadecimal digits.
    fn luminance(colour: &str) -> f64 {
        let rgb = u32::from_str_radix(colour.strip_prefix('#').unwrap(), 16).unwrap();
        let [_, red, green, blue] = rgb.to_be_bytes().map(|channel| {
            let channel = f64::from(channel) / 255.0;
            if channel <= 0.04045 { channel / 12.92 } else { ((channel + 0.055) / 1.055).powf(2.4) }
        });
        assert_eq!(colour.len(), 7, "{colour}");
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
}
