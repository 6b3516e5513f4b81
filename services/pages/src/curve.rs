//! Draws the density of a chart as an SVG path.

use std::fmt::Write as _;

use chart_index_domain::DensityCurve;

/// The density at the top of a drawing, in notes per second: few charts have more over a 48th of their length,
/// and differences between the others are larger than on the scale of [`DensityCurve`], whose form is the same.
const TOP_DENSITY: f64 = 25.0;

/// How far the line may be from the density of a point, in steps of the height.
const TOLERANCE: f32 = 0.75;

/// How a curve is drawn: one unit wide between two points, and a number of steps high.
#[derive(Debug, Clone, Copy)]
struct Drawing {
    /// How many values of the curve a point is the mean of.
    values_per_point: u8,
    height: u8,
}

/// In a line of text more is not visible, and a list has hundreds of paths.
const LINE: Drawing = Drawing { values_per_point: 2, height: 12 };

const FIGURE: Drawing = Drawing { values_per_point: 1, height: 64 };

/// The path of the area under a curve in a line of text: in a view box of 23 to 12.
pub(crate) fn in_line(curve: &DensityCurve) -> String {
    area(curve, LINE)
}

/// The path of the area under a curve as a figure of its own: in a view box of 47 to 64.
pub(crate) fn figure(curve: &DensityCurve) -> String {
    area(curve, FIGURE)
}

/// Draws the area with as few segments as [`TOLERANCE`] allows, with relative commands and without optional
/// separators.
fn area(curve: &DensityCurve, drawing: Drawing) -> String {
    let height = drawing.height;
    let exact: Vec<f32> = curve
        .as_bytes()
        .chunks(drawing.values_per_point.into())
        .map(|values| exact_height(values, drawing))
        .collect();
    let heights: Vec<i16> = exact.iter().map(|exact| drawn_height(*exact)).collect();
    let mut path = format!("M0 {height}V{}", i16::from(height) - heights[0]);
    let mut is_line_before = false;
    let mut from = 0;
    while from + 1 < heights.len() {
        let to = end_of_segment(&exact, &heights, from);
        let (run, fall) = (to - from, heights[from] - heights[to]);
        let _ = match (fall, is_line_before) {
            (0, _) => write!(path, "h{run}"),
            (_, false) => write!(path, "l{run}{}{fall}", separator(fall)),
            (_, true) => write!(path, " {run}{}{fall}", separator(fall)),
        };
        (from, is_line_before) = (to, fall != 0);
    }
    let _ = write!(path, "V{height}");
    path
}

/// The separator before a number: a sign needs none.
const fn separator(number: i16) -> &'static str {
    if number < 0 { "" } else { " " }
}

/// The last point to which a straight line from this point is near every point between them. Each point narrows
/// the range of slopes that pass near enough.
#[expect(clippy::cast_precision_loss, reason = "the points are few")]
fn end_of_segment(exact: &[f32], heights: &[i16], from: usize) -> usize {
    let start = f32::from(heights[from]);
    let (mut lowest, mut highest) = (f32::NEG_INFINITY, f32::INFINITY);
    let mut end = from + 1;
    for to in from + 1..heights.len() {
        let run = (to - from) as f32;
        if (lowest..=highest).contains(&((f32::from(heights[to]) - start) / run)) {
            end = to;
        }
        lowest = lowest.max((exact[to] - TOLERANCE - start) / run);
        highest = highest.min((exact[to] + TOLERANCE - start) / run);
        if lowest > highest {
            break;
        }
    }
    end
}

/// The height of the mean of these values of a curve, in steps.
#[expect(clippy::cast_possible_truncation, reason = "at most 255")]
fn exact_height(values: &[u8], drawing: Drawing) -> f32 {
    let sum: f64 = values.iter().map(|value| f64::from(*value)).sum();
    let mean = sum / f64::from(drawing.values_per_point) / 255.0;
    let of_top = mean * (DensityCurve::MAX_DENSITY / TOP_DENSITY).sqrt();
    (of_top.min(1.0) * f64::from(drawing.height)) as f32
}

/// A height in whole steps; a part with notes is never without any.
#[expect(clippy::cast_possible_truncation, reason = "at most 255")]
fn drawn_height(exact: f32) -> i16 {
    if exact > 0.0 { (exact.round() as i16).max(1) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(densities: [u8; 48]) -> String {
        figure(&DensityCurve::from_bytes(densities))
    }

    #[test]
    fn area_starts_and_ends_at_the_bottom() {
        assert_eq!(path([0; 48]), "M0 64V64h47V64");
        assert_eq!(path([255; 48]), "M0 64V0h47V64");
        let mut rising = [0; 48];
        rising[1] = 255;
        rising[2] = 30;
        assert_eq!(path(rising), "M0 64V64l1-64 1 52 1 12h44V64");
        let curve = DensityCurve::from_bytes([82; 48]);
        assert_eq!(in_line(&curve), "M0 12V6h23V12");
    }

    #[test]
    fn top_is_25_notes_per_second() {
        let curve = |notes_per_second: u32| {
            let starts = (0..48 * notes_per_second).map(|note| note * 1_000 / notes_per_second);
            DensityCurve::from_starts(starts, 48_000)
        };
        assert_eq!(in_line(&curve(25)), "M0 12V0h23V12");
        assert_eq!(in_line(&curve(6)), "M0 12V6h23V12", "half of the height at a quarter of the density");
    }

    #[test]
    fn steady_parts_are_one_segment() {
        let noise = std::array::from_fn(|part| if part % 2 == 0 { 82 } else { 83 });
        assert_eq!(path(noise), "M0 64V32h47V64");
        let slope = std::array::from_fn(|part| u8::try_from(part * 3).unwrap());
        assert_eq!(path(slope), "M0 64V64l47-55V64");
    }

    #[test]
    fn line_is_near_every_density() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..1_000 {
            let most = random.u8(1..=255);
            let densities = std::array::from_fn(|_| random.u8(0..=most));
            for (drawn, density) in points(&path(densities)).iter().zip(densities) {
                let exact = exact_height(&[density], FIGURE);
                // A part with few notes is drawn one step high.
                let tolerance = if exact < 1.0 { 1.0 } else { TOLERANCE };
                assert!((drawn - exact).abs() <= tolerance + 1e-3, "{drawn} {exact}: {densities:?}");
            }
        }
    }

    fn points(path: &str) -> Vec<f32> {
        let spaced = path.replace('h', " h ").replace('l', " l ").replace('V', " V ").replace('-', " -");
        let mut words = spaced.split_whitespace().skip(3);
        let number = |word: &str| -> f32 { word.parse().unwrap() };
        let mut heights = vec![64.0 - number(words.next().unwrap())];
        let mut is_flat = false;
        while let Some(word) = words.next().filter(|word| *word != "V") {
            if matches!(word, "h" | "l") {
                is_flat = word == "h";
                continue;
            }
            let fall = if is_flat { 0.0 } else { number(words.next().unwrap()) };
            let (run, last) = (number(word), heights[heights.len() - 1]);
            let steps = (1_u8..).map(f32::from).take_while(|step| *step <= run);
            heights.extend(steps.map(|step| last - fall * step / run));
        }
        assert_eq!(heights.len(), 48, "{path}");
        heights
    }

    #[test]
    fn few_notes_are_visible() {
        assert_eq!([0.0, 0.06, 0.44, 1.5, 12.0].map(drawn_height), [0, 1, 1, 2, 12]);
    }
}
