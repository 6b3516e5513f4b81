//! The difficulty of charts as the pages show it: a number on a colour.

use std::cmp::Ordering;

use chart_index_domain::{Chart, Rating};

use crate::format;

/// The ratings in hundredths at which the colours begin, `.l0` to `.l7` of `style.css`. Lower ratings have the
/// first colour.
pub(crate) const STOPS: [u16; 8] = [50, 100, 150, 200, 270, 350, 450, 600];

/// What the difficulties are called, each with the rating in hundredths at which it begins.
pub(crate) const WORDS: [(&str, u16); 6] =
    [("Beginner", 0), ("Easy", 100), ("Medium", 200), ("Hard", 300), ("Expert", 400), ("Extreme", 500)];

/// The same for charts without a rating, by their peak density in notes per second.
pub(crate) const DENSITY_STOPS: [f64; 8] = [0.0, 5.0, 8.0, 11.0, 15.0, 20.0, 26.0, 34.0];

/// The same for the parts of a curve, which are longer than the second of the peak: the densest part of most
/// charts has the colour of their rating.
const PART_STOPS: [f64; 8] = [0.0, 3.0, 5.0, 7.5, 10.5, 15.0, 20.0, 27.0];

/// The rating of a chart, or without one its peak density, with a colour.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    /// The index of the colour in [`STOPS`].
    pub(crate) colour: usize,
    /// Such as `5.27`, or `13/s`.
    pub(crate) number: String,
    /// What the number is, for those who do not see it in its place.
    pub(crate) meaning: &'static str,
}

impl Level {
    pub(crate) fn new(chart: &Chart) -> Self {
        chart.rating.map_or_else(|| Self::of_density(chart.numbers.density_peak), Self::of_rating)
    }

    pub(crate) fn of_rating(rating: Rating) -> Self {
        Self {
            colour: colour_of_rating(rating.hundredths()),
            number: format!("{:.2}", rating.value()),
            meaning: "difficulty",
        }
    }

    fn of_density(density: f64) -> Self {
        let colour = DENSITY_STOPS.iter().skip(1).filter(|stop| **stop <= density).count();
        Self { colour, number: format!("{}/s", format::decimal(density, 0)), meaning: "peak" }
    }
}

/// The index of the colour of a rating in hundredths.
pub(crate) fn colour_of_rating(hundredths: u16) -> usize {
    STOPS.iter().skip(1).filter(|stop| **stop <= hundredths).count()
}

/// What a difficulty is called.
pub(crate) fn word(rating: Rating) -> &'static str {
    let reached = WORDS.iter().take_while(|(_, least)| *least <= rating.hundredths());
    reached.last().map_or("", |(word, _)| word)
}

/// The index of the colour of a part of a curve, by its density in notes per second.
pub(crate) fn colour_of_part(density: f64) -> usize {
    PART_STOPS.iter().skip(1).filter(|stop| **stop <= density).count()
}

/// Orders the charts of a set as the pages show them: by keys, then by rating, those without a rating last and
/// by their peak density.
pub(crate) fn order(a: &Chart, b: &Chart) -> Ordering {
    let key = |chart: &Chart| (chart.numbers.keys, chart.rating.is_none(), chart.rating);
    key(a).cmp(&key(b)).then_with(|| a.numbers.density_peak.total_cmp(&b.numbers.density_peak))
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
            let level = Level::of_rating(Rating::from_hundredths(hundredths).unwrap());
            assert_eq!((level.colour, level.number.as_str()), (colour, number));
        }
    }

    #[test]
    fn peak_density_takes_the_place_of_a_rating() {
        for (density, colour, number) in [(0.5, 0, "0/s"), (13.4, 3, "13/s"), (40.0, 7, "40/s")] {
            let level = Level::of_density(density);
            assert_eq!((level.colour, level.number.as_str()), (colour, number));
        }
    }

    /// WCAG 2.2, "Contrast (Minimum)": 4.5:1. The numbers have the colour of the page on that of the level, or
    /// that of the level on the page or on a tint.
    #[test]
    fn levels_contrast_with_the_page() {
        for colour in 0..STOPS.len() {
            let levels = light_and_dark(&format!("\n.l{colour} {{ --level"));
            for ground in ["  --page", "  --raised", "  --tint"] {
                for (level, ground) in levels.into_iter().zip(light_and_dark(ground)) {
                    let contrast = contrast(level, ground);
                    assert!(contrast >= 4.5, ".l{colour}: {level} on {ground} has {contrast:.2}:1");
                }
            }
        }
        assert!(!STYLE.contains(&format!(".l{} ", STOPS.len())), "as many colours as stops");
    }

    /// The two colours of a property.
    fn light_and_dark(property: &str) -> [&'static str; 2] {
        let (_, value) = STYLE.split_once(&format!("{property}: light-dark(")).unwrap();
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
