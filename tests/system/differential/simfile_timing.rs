//! The timing of generated simfiles.

use std::fmt::Write as _;

use chart_index_tests::Random;

use crate::simfiles::{Feature, OLD_VERSION};

/// Rows of a beat.
const ROWS: f32 = 48.0;

/// A BPM above this one is a warp in an `.sm`.
pub(crate) const MAX_BPM: f32 = 9_999_999.0;

/// Whether a file has warps, and how their values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Warps {
    None,
    /// The value is the length.
    Lengths,
    /// The value is the beat of the end, as before version 0.7.
    Ends,
}

impl Warps {
    pub(crate) fn of(is_ssc: bool, version: &str) -> Self {
        match (is_ssc, version) {
            (false, _) => Self::None,
            (true, OLD_VERSION) => Self::Ends,
            (true, _) => Self::Lengths,
        }
    }
}

/// An event on a beat, as it is written.
#[derive(Debug, Clone)]
pub(crate) struct Change {
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

    /// The beat, in the precision of the game.
    pub(crate) fn beat(&self) -> f32 {
        self.beat.parse().expect("a number")
    }

    /// The row that the game puts it on.
    pub(crate) fn row(&self) -> i64 {
        to_row(self.beat())
    }

    /// The value, as far as it is a number.
    pub(crate) fn value(&self) -> f32 {
        self.value.trim_end_matches(char::is_alphabetic).parse().expect("a number")
    }

    /// The row of the end of an interval whose value is its length.
    pub(crate) fn end_row(&self) -> i64 {
        self.row() + to_row(self.value())
    }

    /// The beat of the end, in the precision of the game, which may be after that of its row.
    pub(crate) fn end(&self) -> f32 {
        row_beat(self.row()) + row_beat(to_row(self.value()))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a few thousand rows")]
fn to_row(beat: f32) -> i64 {
    (beat * ROWS).round_ties_even() as i64
}

/// The beat of a row, in the precision of the game.
#[expect(clippy::cast_precision_loss, reason = "a few thousand rows")]
pub(crate) fn row_beat(row: i64) -> f32 {
    row as f32 / ROWS
}

/// The timing of a song or of a chart.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timing {
    pub(crate) bpms: Vec<Change>,
    pub(crate) stops: Vec<Change>,
    pub(crate) delays: Vec<Change>,
    pub(crate) warps: Vec<Change>,
    pub(crate) fakes: Vec<Change>,
    pub(crate) has_label: bool,
}

/// The rows on which changes are generated: eight measures.
const LAST_ROW: u32 = 8 * 192;

impl Timing {
    pub(crate) fn generate(random: &mut Random, feature: Feature, warps: Warps) -> Self {
        let mut timing = Self { bpms: bpms(random), ..Self::default() };
        if random.one_in(2) {
            timing.stops = changes(random, 5, |random| seconds(random, 2_000));
        }
        if random.one_in(4) {
            timing.delays = changes(random, 3, |random| seconds(random, 2_000));
        }
        if warps != Warps::None && random.one_in(3) {
            timing.warps = intervals(random, warps);
        }
        timing.add(random, feature);
        timing
    }

    fn add(&mut self, random: &mut Random, feature: Feature) {
        let row = 12 + random.below(LAST_ROW);
        match feature {
            Feature::Fakes => self.fakes = intervals(random, Warps::Lengths),
            Feature::NegativeBpm => self.set_bpm(random, row, &["-120", "-60.5", "-400"]),
            Feature::FastBpm => self.set_bpm(random, row, &["10000000", "99999999"]),
            Feature::ZeroBpm => self.set_bpm(random, row, &["0", "0.000"]),
            Feature::ValueWithUnit => self.set_bpm(random, row, &["140bpm", "93.75x"]),
            Feature::NegativeStop => {
                self.stops = changes(random, 3, |random| format!("-{}", seconds(random, 400)));
            }
            Feature::NegativeDelay => {
                self.delays = changes(random, 3, |random| format!("-{}", seconds(random, 400)));
            }
            Feature::NestedWarps => {
                let start = random.below(600);
                let inside = start + 24 + random.below(96);
                self.warps = vec![
                    Change::on_row(random, start, "8.000".to_owned()),
                    Change::on_row(random, inside, "1.000".to_owned()),
                ];
            }
            Feature::LateWarpEnds => self.warps = vec![late_ending(random)],
            Feature::WarpsInSm => self.warps = intervals(random, Warps::Lengths),
            Feature::TwoOnOneRow => {
                let values = [seconds(random, 2_000), seconds(random, 2_000)];
                self.stops = values.map(|value| Change::on_row(random, row, value)).to_vec();
            }
            Feature::UnsortedStops => self.stops.reverse(),
            Feature::BeforeBeatZero => {
                let stop = Change { beat: "-1.000".to_owned(), value: seconds(random, 2_000) };
                self.stops.insert(0, stop);
            }
            Feature::LateFirstBpm => self.bpms = vec![Change::on_row(random, row, "140".to_owned())],
            Feature::NoBpms => self.bpms.clear(),
            _ => {}
        }
    }

    /// Adds a BPM after those before this row, and a usual one two beats later.
    fn set_bpm(&mut self, random: &mut Random, row: u32, values: &[&str]) {
        self.bpms.retain(|bpm| bpm.row() < i64::from(row));
        let value = (*random.pick(values)).to_owned();
        self.bpms.push(Change::on_row(random, row, value));
        self.bpms.push(Change::on_row(random, row + 96, "120".to_owned()));
    }

    /// Writes the tags that have values.
    pub(crate) fn write(&self, text: &mut String, as_freezes: bool) {
        let stops = if as_freezes { "FREEZES" } else { "STOPS" };
        for (tag, changes) in [
            ("BPMS", &self.bpms),
            (stops, &self.stops),
            ("DELAYS", &self.delays),
            ("WARPS", &self.warps),
            ("FAKES", &self.fakes),
        ] {
            if !changes.is_empty() {
                let changes: Vec<String> =
                    changes.iter().map(|change| format!("{}={}", change.beat, change.value)).collect();
                _ = writeln!(text, "#{tag}:{};", changes.join(",\n"));
            }
        }
        if self.has_label {
            text.push_str("#LABELS:0.000=Start;\n");
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

/// One to three intervals that do not overlap. Most of them end on a row.
fn intervals(random: &mut Random, kind: Warps) -> Vec<Change> {
    let count = 1 + random.below(3);
    let (mut row, mut intervals) = (0, Vec::new());
    for _ in 0..count {
        row += 1 + random.below(300);
        // Sixteenths of a beat are exact in four decimals.
        let length = match random.below(4) {
            0 => f64::from(1 + random.below(1_500)) / 1_000.0,
            _ => f64::from(3 * (1 + random.below(64))) / f64::from(ROWS),
        };
        let start = f64::from(row) / f64::from(ROWS);
        let value = if kind == Warps::Ends { start + length } else { length };
        intervals.push(Change::on_row(random, row, format!("{value:.6}")));
        row += 200;
    }
    intervals
}

/// A warp whose end is after its row in the precision of the game.
fn late_ending(random: &mut Random) -> Change {
    loop {
        let length = f64::from(1 + random.below(96)) / f64::from(ROWS);
        let start = random.below(600);
        let warp = Change::on_row(random, start, format!("{length:.6}"));
        if row_beat(warp.end_row()) < warp.end() {
            return warp;
        }
    }
}
