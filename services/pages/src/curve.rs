//! Draws the density of a chart as an SVG path.

use std::fmt::Write as _;

use chart_index_domain::DensityCurve;

/// The height of a drawing. Steps of a sixteenth are visible at the height of a line of text, and shorter than finer ones.
const HEIGHT: u8 = 16;

/// The path of an area under the curve: one unit wide for each point and [`HEIGHT`] high.
///
/// Relative line segments without optional separators: about 2.5 bytes a point.
pub(crate) fn area(curve: &DensityCurve) -> String {
    let heights = curve.as_bytes().map(height);
    let mut path = format!("M0 {HEIGHT}V{}", HEIGHT - heights[0]);
    let mut pending = 0_u32;
    let mut command = "l";
    for pair in heights.windows(2) {
        let fall = i16::from(pair[0]) - i16::from(pair[1]);
        pending += 1;
        if fall != 0 {
            let run = pending - 1;
            if run > 0 {
                let _ = write!(path, "h{run}");
                command = "l";
            }
            let separator = if command.is_empty() { " " } else { command };
            let _ = write!(path, "{separator}1{}{fall}", if fall < 0 { "" } else { " " });
            (pending, command) = (0, "");
        }
    }
    if pending > 0 {
        let _ = write!(path, "h{pending}");
    }
    let _ = write!(path, "V{HEIGHT}z");
    path
}

/// The height of a density; a chart part with notes is never without any.
fn height(density: u8) -> u8 {
    let scaled = (u16::from(density) * u16::from(HEIGHT) + 127) / 255;
    u8::try_from(scaled).unwrap_or(HEIGHT).max(u8::from(density > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(densities: [u8; 48]) -> String {
        area(&DensityCurve::from_bytes(densities))
    }

    #[test]
    fn area_starts_and_ends_at_the_bottom() {
        assert_eq!(path([0; 48]), "M0 16V16h47V16z");
        assert_eq!(path([255; 48]), "M0 16V0h47V16z");
        let mut rising = [0; 48];
        rising[1] = 255;
        rising[2] = 128;
        assert_eq!(path(rising), "M0 16V16l1-16 1 8 1 8h44V16z");
    }

    #[test]
    fn few_notes_are_visible() {
        assert_eq!([0, 1, 7, 8, 255].map(height), [0, 1, 1, 1, 16]);
    }
}
