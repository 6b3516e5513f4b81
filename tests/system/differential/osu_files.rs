//! `.osu` files of mode 3 from a seed.

use std::fmt::Write as _;

use chart_index_tests::Random;

/// What a file has beside taps and long notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    Plain,
    FractionalKeys,
    NoKeys,
    FractionalX,
    FractionalTimes,
    EarlyEnds,
    Spaces,
    Comments,
    UnreadableLines,
    ShortLines,
    OutsideX,
    NegativeTimes,
    Unsorted,
    OtherTypes,
    ExtremeTiming,
    NoTiming,
}

const FEATURES: [Feature; 15] = [
    Feature::FractionalKeys,
    Feature::NoKeys,
    Feature::FractionalX,
    Feature::FractionalTimes,
    Feature::EarlyEnds,
    Feature::Spaces,
    Feature::Comments,
    Feature::UnreadableLines,
    Feature::ShortLines,
    Feature::OutsideX,
    Feature::NegativeTimes,
    Feature::Unsorted,
    Feature::OtherTypes,
    Feature::ExtremeTiming,
    Feature::NoTiming,
];

/// Before version 5 the game adds 24 ms to times, and osu-parsers does not.
const VERSIONS: [u32; 10] = [5, 6, 7, 9, 10, 12, 13, 14, 14, 128];

/// The name of the only difficulty of a file.
pub(crate) const DIFFICULTY: &str = "Hard";

/// A generated file.
#[derive(Debug)]
pub(crate) struct OsuFile {
    pub(crate) feature: Feature,
    version: u32,
    /// The value of `CircleSize`.
    circle_size: Option<String>,
    /// Lines of `[TimingPoints]`.
    timing_points: Vec<String>,
    /// Lines of `[HitObjects]`.
    objects: Vec<String>,
}

impl OsuFile {
    pub(crate) fn generate(random: &mut Random) -> Self {
        let feature = if random.below(3) > 0 { Feature::Plain } else { *random.pick(&FEATURES) };
        // osu-parsers cuts the decimals of x, and the game does so before version 128.
        let version = if feature == Feature::FractionalX { 14 } else { *random.pick(&VERSIONS) };
        let keys = 4 + random.below(4);
        let circle_size = match feature {
            Feature::NoKeys => None,
            Feature::FractionalKeys => Some(format!("{}.{}", keys - 1, random.pick(&["2", "5", "8", "51"]))),
            _ => Some(keys.to_string()),
        };
        let timing_points = timing_points(random, feature);
        let mut objects = objects(random, feature, version, keys);
        if feature == Feature::Unsorted {
            objects.reverse();
        }
        Self { feature, version, circle_size, timing_points, objects }
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("osu file format v{}\n\n[General]\nMode: 3\n\n[Metadata]\n", self.version);
        _ = writeln!(
            text,
            "Title:Generated\nArtist:Tester\nCreator:tester\nVersion:{DIFFICULTY}\n\n[Difficulty]"
        );
        if let Some(circle_size) = &self.circle_size {
            let comment = if self.feature == Feature::Comments { " // keys" } else { "" };
            _ = writeln!(text, "CircleSize:{circle_size}{comment}");
        }
        _ = writeln!(text, "HPDrainRate:8\nSliderMultiplier:1.6\n\n[TimingPoints]");
        _ = writeln!(text, "{}\n\n[HitObjects]\n{}", self.timing_points.join("\n"), self.objects.join("\n"));
        text
    }
}

fn timing_points(random: &mut Random, feature: Feature) -> Vec<String> {
    if feature == Feature::NoTiming {
        return Vec::new();
    }
    let mut points = vec![format!("0,{},4,2,0,60,1,0", 300 + random.below(500))];
    for index in 1..=random.below(5) {
        let time = 2_000 * index;
        let velocity = *random.pick(&["-100", "-50", "-133.333333333333", "-200"]);
        points.push(match random.below(3) {
            0 => format!("{time},{}.{},4,2,0,60,1,0", 250 + random.below(500), random.below(1_000)),
            _ => format!("{time},{velocity},4,2,0,60,0,0"),
        });
    }
    if feature == Feature::ExtremeTiming {
        let value = *random.pick(&["0", "1", "-1", "-5000", "100000", "1e5", "NaN"]);
        points.push(format!("4000,{value},4,2,0,60,{},0", random.below(2)));
    }
    points
}

/// Objects in order of time; no two of a column overlap.
fn objects(random: &mut Random, feature: Feature, version: u32, keys: u32) -> Vec<String> {
    let mut free_ms = [0_u32; 10];
    let mut time = 100 + random.below(1_000);
    let mut objects = Vec::new();
    for _ in 0..10 + random.below(80) {
        time += random.below(160);
        let x = match feature {
            // With its decimals it may be in the next column.
            Feature::FractionalX if random.one_in(2) => 512 * (1 + random.below(keys - 1)) / keys,
            _ => random.below(513),
        };
        let columns = usize::try_from(keys).expect("few keys");
        let column = (x * keys / 512).min(keys - 1) as usize;
        if time < free_ms[column] {
            continue;
        }
        let object = Object { feature, version, x, time_ms: time };
        let (line, end) = object.line(random);
        objects.push(line);
        let busy = if feature == Feature::Plain { column..=column } else { 0..=columns - 1 };
        for column in busy {
            free_ms[column] = end + 1;
        }
    }
    objects
}

struct Object {
    feature: Feature,
    version: u32,
    x: u32,
    time_ms: u32,
}

impl Object {
    /// A line, and the last time at which its column may be in use.
    fn line(&self, random: &mut Random) -> (String, u32) {
        let (feature, time) = (self.feature, self.time_ms);
        let mut x = self.x.to_string();
        if feature == Feature::FractionalX {
            _ = write!(x, ".{:02}", random.below(100));
        }
        if feature == Feature::OutsideX && random.one_in(4) {
            (*random.pick(&["-20", "600", "100000", "140000"])).clone_into(&mut x);
        }
        let length = 1 + random.below(800);
        let number = |random: &mut Random, value: u32| self.number(random, value);
        let start = number(random, time);
        let end = match feature {
            Feature::EarlyEnds if random.one_in(2) => {
                let end = time.saturating_sub(random.below(40));
                number(random, end)
            }
            _ => number(random, time + length),
        };
        let space = if feature == Feature::Spaces { " " } else { "" };
        let head = format!("{x}{space},192,{space}{start}");
        let combo = if random.one_in(6) { 4 } else { 0 };
        let (line, last) = match feature {
            Feature::OtherTypes if random.one_in(6) => {
                let kind = *random.pick(&[0, 4, 16, 64, 256, 113]);
                (format!("{head},{kind},0,0:0:0:0:"), time)
            }
            Feature::UnreadableLines if random.one_in(6) => (self.unreadable(random, &head), time),
            Feature::ShortLines if random.one_in(4) => {
                let kind = *random.pick(&["1", "1,0", "128,0", "128,0,", "1,0,", "5"]);
                (format!("{head},{kind}"), time)
            }
            _ if random.one_in(4) => {
                let extras = *random.pick(&[":0:0:0:0:", ":0:0:0:0", ":1:2:0:50:a.wav"]);
                (format!("{head},{},2,{end}{space}{extras}", 128 + combo), time + length)
            }
            _ => {
                let extras = *random.pick(&[",0:0:0:0:", ",0:0:0:0", "", ",1:2:0:50:a.wav"]);
                (format!("{head},{},8{extras}", 1 + combo), time)
            }
        };
        let comment = if feature == Feature::Comments && random.one_in(5) { " // note" } else { "" };
        (format!("{line}{comment}"), last)
    }

    fn number(&self, random: &mut Random, time_ms: u32) -> String {
        let has_fraction =
            self.feature == Feature::FractionalTimes || self.version == 128 && random.one_in(3);
        match self.feature {
            Feature::NegativeTimes => format!("{}", i64::from(time_ms) - 4_000),
            _ if has_fraction => format!("{time_ms}.{:03}", random.below(1_000)),
            _ => time_ms.to_string(),
        }
    }

    /// A line that the game cannot read.
    fn unreadable(&self, random: &mut Random, head: &str) -> String {
        match random.below(6) {
            0 => "nothing".to_owned(),
            1 => format!("x,192,{},1,0", self.time_ms),
            2 => format!("{},192,abc,1,0", self.x),
            3 => format!("{head},one,0"),
            4 => format!("{},192,99999999999,1,0", self.x),
            _ => format!("{head},128,0,end:0:0:0:0:"),
        }
    }
}
