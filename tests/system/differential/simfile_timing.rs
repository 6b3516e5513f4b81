//! The timing of generated simfiles.

use std::fmt::Write as _;

use chart_index_tests::Random;

use crate::simfiles::Feature;

/// Rows of a beat.
const ROWS: f32 = 48.0;

/// An event on a beat, as it is written.
#[derive(Debug, Clone)]
struct Change {
    beat: String,
    value: String,
}

impl Change {
    /// On a row; or, where two decimals more would be needed for that, near it.
    fn on_row(random: &mut Random, row: u32, value: String) -> Self {
        let beat = f64::from(row) / f64::from(ROWS);
        let beat = if random.one_in(2) { format!("{beat:.3}") } else { format!("{beat:.6}") };
        Self { beat, value }
    }

    /// On a beat in thousandths. None of them is halfway between two rows.
    fn near_row(random: &mut Random, row: u32, value: String) -> Self {
        let thousandths = f64::from(row) / f64::from(ROWS) * 1_000.0;
        let beat = (thousandths + f64::from(random.below(20))).floor() / 1_000.0;
        Self { beat: format!("{beat:.3}"), value }
    }

    /// Whether start and length of a warp, in the single precision of the game, add up to more than the row of
    /// its end.
    fn ends_late(&self) -> bool {
        let [start, length] = [&self.beat, &self.value].map(|beat| to_row(beat.parse().expect("a number")));
        row_beat(start) + row_beat(length) > row_beat(start + length)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a few thousand rows")]
fn to_row(beat: f32) -> i64 {
    (beat * ROWS).round_ties_even() as i64
}

/// The beat of a row, in the precision of the game.
#[expect(clippy::cast_precision_loss, reason = "a few thousand rows")]
fn row_beat(row: i64) -> f32 {
    row as f32 / ROWS
}

/// The timing of a song or of a chart.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    bpms: Vec<Change>,
    stops: Vec<Change>,
    delays: Vec<Change>,
    warps: Vec<Change>,
}

/// The rows on which changes are generated: eight measures.
const LAST_ROW: u32 = 8 * 192;

impl Timing {
    pub(crate) fn generate(random: &mut Random, feature: Feature, has_warps: bool) -> Self {
        let mut timing = Self { bpms: bpms(random), ..Self::default() };
        if random.one_in(2) {
            timing.stops = changes(random, 5, |random| seconds(random, 2_000));
        }
        if random.one_in(4) {
            timing.delays = changes(random, 3, |random| seconds(random, 2_000));
        }
        if has_warps && random.one_in(3) {
            timing.warps = warps(random);
        }
        timing.add(random, feature);
        timing
    }

    fn add(&mut self, random: &mut Random, feature: Feature) {
        match feature {
            Feature::TwoOnOneRow => {
                let (row, value) = (12 + random.below(LAST_ROW), seconds(random, 2_000));
                let first = Change::on_row(random, row, value);
                let second = Change { value: seconds(random, 2_000), ..first.clone() };
                self.stops = vec![first, second];
            }
            Feature::BeforeBeatZero => {
                let stop = Change { beat: "-1.000".to_owned(), value: seconds(random, 2_000) };
                self.stops.insert(0, stop);
            }
            _ => {}
        }
    }

    /// Writes the tags that have values.
    pub(crate) fn write(&self, text: &mut String, as_freezes: bool) {
        let stops = if as_freezes { "FREEZES" } else { "STOPS" };
        for (tag, changes) in
            [("BPMS", &self.bpms), (stops, &self.stops), ("DELAYS", &self.delays), ("WARPS", &self.warps)]
        {
            if !changes.is_empty() {
                let changes: Vec<String> =
                    changes.iter().map(|change| format!("{}={}", change.beat, change.value)).collect();
                _ = writeln!(text, "#{tag}:{};", changes.join(",\n"));
            }
        }
    }
}

/// One to six BPMs from beat 0, in halves, thousandths or millionths.
fn bpms(random: &mut Random) -> Vec<Change> {
    let mut bpms = changes(random, 5, |random| {
        let whole = 40 + random.below(360);
        match random.below(4) {
            0 => format!("{whole}"),
            1 => format!("{whole}.5"),
            2 => format!("{whole}.{:03}", random.below(1_000)),
            _ => format!("{whole}.{:06}", random.below(1_000_000)),
        }
    });
    if let Some(first) = bpms.first_mut() {
        "0.000".clone_into(&mut first.beat);
    } else {
        bpms.push(Change { beat: "0.000".to_owned(), value: "150.000".to_owned() });
    }
    bpms
}

fn seconds(random: &mut Random, most_ms: u32) -> String {
    let ms = 1 + random.below(most_ms);
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}

/// Up to `most` changes in order of their rows, no two of which are on one row.
fn changes(random: &mut Random, most: u32, mut value: impl FnMut(&mut Random) -> String) -> Vec<Change> {
    let count = random.below(most + 1);
    let (mut row, mut changes) = (0, Vec::new());
    for _ in 0..count {
        row += 2 + random.below(LAST_ROW / most);
        let value = value(random);
        let change = if random.one_in(3) {
            Change::near_row(random, row, value)
        } else {
            Change::on_row(random, row, value)
        };
        changes.push(change);
        row += 2;
    }
    changes
}

/// Up to three warps that do not overlap. Most of them end on a row.
fn warps(random: &mut Random) -> Vec<Change> {
    let count = 1 + random.below(3);
    let (mut row, mut warps) = (0, Vec::new());
    for _ in 0..count {
        row += 1 + random.below(300);
        // Sixteenths of a beat are exact in four decimals.
        let length = match random.below(4) {
            0 => f64::from(1 + random.below(1_500)) / 1_000.0,
            _ => f64::from(3 * (1 + random.below(64))) / f64::from(ROWS),
        };
        let warp = Change::on_row(random, row, format!("{length:.6}"));
        // simfile judges the notes where a warp ends, and the game does not if it ends late.
        if !warp.ends_late() {
            warps.push(warp);
        }
        row += 200;
    }
    warps
}
