//! Simfiles from a seed.

use std::fmt::Write as _;

use chart_index_tests::Random;

use crate::simfile_notes::notes;
use crate::simfile_timing::Timing;

/// What a file has beside plain notes and timing: a construct that the reader and the game might treat
/// differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    Plain,
    OldVersion,
    TwoOnOneRow,
    BeforeBeatZero,
    FreezesTag,
    /// `1[12]`.
    KeysoundIndexes,
    /// `//` after rows.
    Comments,
}

/// Features that the generator draws from; two thirds of the files are plain.
const FEATURES: [Feature; 6] = [
    Feature::OldVersion,
    Feature::TwoOnOneRow,
    Feature::BeforeBeatZero,
    Feature::FreezesTag,
    Feature::KeysoundIndexes,
    Feature::Comments,
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

/// Before version 0.7 charts have no timing of their own.
const OLD_VERSION: &str = "0.69";

/// The difficulty of each chart of a file, which names it.
const DIFFICULTIES: [&str; 3] = ["Easy", "Medium", "Hard"];

/// A generated simfile.
#[derive(Debug)]
pub(crate) struct Simfile {
    pub(crate) feature: Feature,
    /// Whether it is an `.ssc`, else an `.sm`.
    is_ssc: bool,
    /// The value of `#VERSION` of an `.ssc`.
    version: &'static str,
    song: Timing,
    pub(crate) charts: Vec<Chart>,
}

/// A chart of a simfile.
#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) difficulty: &'static str,
    steps_type: &'static str,
    notes: String,
    /// What a chart of an `.ssc` has of its own.
    own: Option<Timing>,
}

impl Simfile {
    pub(crate) fn generate(random: &mut Random) -> Self {
        let feature = if random.below(3) > 0 { Feature::Plain } else { *random.pick(&FEATURES) };
        let is_ssc = match feature {
            Feature::OldVersion => true,
            Feature::FreezesTag => false,
            _ => random.one_in(2),
        };
        let version =
            if feature == Feature::OldVersion { OLD_VERSION } else { random.pick(&["0.83", "0.7"]) };
        // simfile reads warps of an .sm, and lengths of warps in old versions, where the game reads their ends.
        let has_warps = is_ssc && version != OLD_VERSION;
        let song = Timing::generate(random, feature, has_warps);
        let count = 1 + random.below(3) as usize;
        let charts = DIFFICULTIES.iter().take(count).map(|difficulty| {
            let (steps_type, keys) = *random.pick(&STEP_TYPES);
            let notes = notes(random, keys, feature);
            let own = (is_ssc && random.one_in(2)).then(|| Timing::generate(random, feature, has_warps));
            Chart { difficulty, steps_type, notes, own }
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
        let Chart { difficulty, steps_type, notes, own } = chart;
        if self.is_ssc {
            _ = writeln!(text, "#NOTEDATA:;\n#STEPSTYPE:{steps_type};\n#DIFFICULTY:{difficulty};\n#METER:5;");
            if let Some(own) = own {
                own.write(text, false);
            }
            _ = writeln!(text, "#NOTES:{notes};");
        } else {
            _ = writeln!(text, "#NOTES:\n{steps_type}:\n:\n{difficulty}:\n5:\n0,0,0,0,0:{notes};");
        }
    }
}
