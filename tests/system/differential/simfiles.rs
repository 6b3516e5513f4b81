//! Simfiles from a seed: their text, and a model of it that the known differences look at.

use std::fmt::Write as _;

use chart_index_tests::Random;

use crate::simfile_notes::{Cells, Extras};
use crate::simfile_timing::{Timing, Warps};

/// What a file has beside plain notes and timing: a construct that the reader and the game treat differently,
/// or one that they might.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    Plain,
    Fakes,
    NegativeBpm,
    FastBpm,
    ZeroBpm,
    NegativeStop,
    NegativeDelay,
    NestedWarps,
    LateWarpEnds,
    WarpsInSm,
    OldVersion,
    TwoOnOneRow,
    UnsortedStops,
    BeforeBeatZero,
    LateFirstBpm,
    NoBpms,
    OwnStopsOnly,
    OwnLabelsOnly,
    ValueWithUnit,
    FreezesTag,
    Notes2Tag,
    Cells(Extras),
}

/// Features that the generator draws from; two thirds of the files are plain.
const FEATURES: [Feature; 28] = [
    Feature::Fakes,
    Feature::NegativeBpm,
    Feature::FastBpm,
    Feature::ZeroBpm,
    Feature::NegativeStop,
    Feature::NegativeDelay,
    Feature::NestedWarps,
    Feature::LateWarpEnds,
    Feature::WarpsInSm,
    Feature::OldVersion,
    Feature::TwoOnOneRow,
    Feature::UnsortedStops,
    Feature::BeforeBeatZero,
    Feature::LateFirstBpm,
    Feature::NoBpms,
    Feature::OwnStopsOnly,
    Feature::OwnLabelsOnly,
    Feature::ValueWithUnit,
    Feature::FreezesTag,
    Feature::Notes2Tag,
    Feature::Cells(Extras::KeysoundsInHolds),
    Feature::Cells(Extras::UnknownCells),
    Feature::Cells(Extras::WideRows),
    Feature::Cells(Extras::BlankLines),
    Feature::Cells(Extras::EmptyMeasures),
    Feature::Cells(Extras::ManyLines),
    Feature::Cells(Extras::KeysoundIndexes),
    Feature::Cells(Extras::Comments),
];

/// Step types that are played, with their columns.
const STEP_TYPES: [(&str, u8); 6] = [
    ("dance-single", 4),
    ("pump-single", 5),
    ("dance-solo", 6),
    ("kb7-single", 7),
    ("ez2-real", 7),
    ("techno-single4", 4),
];

/// The version before which charts have no timing of their own.
pub(crate) const OLD_VERSION: &str = "0.69";

/// The difficulty of each chart of a file, which names it.
const DIFFICULTIES: [&str; 3] = ["Easy", "Medium", "Hard"];

/// A generated simfile.
#[derive(Debug)]
pub(crate) struct Simfile {
    pub(crate) feature: Feature,
    /// Whether it is an `.ssc`, else an `.sm`.
    pub(crate) is_ssc: bool,
    /// The value of `#VERSION` of an `.ssc`.
    pub(crate) version: &'static str,
    pub(crate) song: Timing,
    pub(crate) charts: Vec<Chart>,
}

/// A chart of a simfile.
#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) difficulty: &'static str,
    pub(crate) steps_type: &'static str,
    pub(crate) cells: Cells,
    /// What a chart of an `.ssc` has of its own.
    pub(crate) own: Option<Timing>,
}

impl Simfile {
    pub(crate) fn generate(random: &mut Random) -> Self {
        let feature = if random.below(3) > 0 { Feature::Plain } else { *random.pick(&FEATURES) };
        let is_ssc = match feature {
            Feature::Fakes
            | Feature::NestedWarps
            | Feature::LateWarpEnds
            | Feature::OldVersion
            | Feature::OwnStopsOnly
            | Feature::OwnLabelsOnly => true,
            Feature::FastBpm | Feature::WarpsInSm | Feature::FreezesTag | Feature::Notes2Tag => false,
            _ => random.one_in(2),
        };
        let version =
            if feature == Feature::OldVersion { OLD_VERSION } else { random.pick(&["0.83", "0.7"]) };
        let song = Timing::generate(random, feature, Warps::of(is_ssc, version));
        let count = 1 + random.below(3) as usize;
        let charts = DIFFICULTIES.iter().take(count).map(|difficulty| {
            let (steps_type, keys) = *random.pick(&STEP_TYPES);
            let extras = if let Feature::Cells(extras) = feature { Some(extras) } else { None };
            let cells = Cells::generate(random, keys, extras);
            let own = (is_ssc && random.one_in(2)).then(|| own_timing(random, feature, version));
            Chart { difficulty, steps_type, cells, own }
        });
        let charts = charts.collect();
        Self { feature, is_ssc, version, song, charts }
    }

    /// The name of the file.
    pub(crate) const fn file_name(&self) -> &'static str {
        if self.is_ssc { "song.ssc" } else { "song.sm" }
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if self.is_ssc {
            _ = writeln!(text, "#VERSION:{};", self.version);
        }
        text.push_str("#TITLE:Generated;\n#ARTIST:Tester;\n#OFFSET:-0.123;\n");
        self.song.write(&mut text, self.feature == Feature::FreezesTag);
        for chart in &self.charts {
            self.write_chart(&mut text, chart);
        }
        text
    }

    fn write_chart(&self, text: &mut String, chart: &Chart) {
        let notes = if self.feature == Feature::Notes2Tag { "NOTES2" } else { "NOTES" };
        if self.is_ssc {
            _ = writeln!(text, "#NOTEDATA:;\n#STEPSTYPE:{};", chart.steps_type);
            _ = writeln!(text, "#DIFFICULTY:{};\n#METER:5;", chart.difficulty);
            if let Some(own) = &chart.own {
                own.write(text, false);
            }
            _ = write!(text, "#{notes}:");
        } else {
            _ = write!(text, "#{notes}:\n{}:\n:\n{}:\n5:\n0,0,0,0,0:", chart.steps_type, chart.difficulty);
        }
        chart.cells.write(text);
        text.push_str(";\n");
    }

    /// The timing that a chart is played with, by the rules of StepMania 5.
    pub(crate) fn timing<'a>(&'a self, chart: &'a Chart) -> &'a Timing {
        chart.own.as_ref().filter(|_| !self.is_old()).unwrap_or(&self.song)
    }

    /// Whether its version is before 0.7.
    pub(crate) fn is_old(&self) -> bool {
        self.version == OLD_VERSION
    }
}

fn own_timing(random: &mut Random, feature: Feature, version: &str) -> Timing {
    let mut timing = Timing::generate(random, feature, Warps::of(true, version));
    match feature {
        Feature::OwnStopsOnly => {
            let stops = Timing::generate(random, Feature::Plain, Warps::None).stops;
            timing = Timing { stops, ..Timing::default() };
        }
        Feature::OwnLabelsOnly => timing = Timing { has_label: true, ..Timing::default() },
        _ => {}
    }
    timing
}
