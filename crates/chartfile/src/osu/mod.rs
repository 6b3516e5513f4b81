//! Reads `.osu` files as osu! (lazer) plays them in mode 3. What the game skips is skipped, and a chart is
//! refused where the file does not determine its notes.
//!
//! Comments name the places in ppy/osu e9451fe7.

mod header;
mod hit_objects;
mod lines;
mod numbers;
mod slider_path;
mod timing_points;

use std::collections::HashMap;

use chart_index_rox::{Hitsound, Note, RoxChart};

use self::header::Header;
use self::hit_objects::{HitObject, Kind, ObjectFormat, Sample};
use self::lines::{Section, format_version, section_lines};
use self::slider_path::Distance;
use self::timing_points::TimingPoints;
use crate::Refusal;
use crate::dotnet::trim;
use crate::game_chart::GameChart;
use crate::rox_file::MAX_NOTES;
use crate::text_encoding::TextDecoder;

/// The only mode that is indexed.
const MODE: u8 = 3;

/// What the game adds to the times of formats before version 5
/// (`LegacyBeatmapDecoder.EARLY_VERSION_TIMING_OFFSET`).
const EARLY_VERSION_OFFSET_MS: f64 = 24.0;

/// The chart of a file without its byte order mark.
pub(crate) fn read(bytes: &[u8]) -> Result<GameChart, Refusal> {
    let beatmap = Beatmap::read(bytes)?;
    let decoder = TextDecoder::detect(bytes);
    let mut chart = RoxChart::new(beatmap.header.keys());
    chart.timing_points = beatmap.timing_points.points();
    let mut hitsounds = Hitsounds::default();
    for object in &beatmap.objects {
        let mut note = beatmap.note(object)?;
        note.hitsound_index = hitsounds.index(object.sample, decoder);
        chart.notes.push(note);
    }
    // Files are in this order as a rule.
    chart.notes.sort_by_key(|note| note.time_us);
    chart.hitsounds = hitsounds.list;
    let (metadata, [title, artist]) = beatmap.header.metadata(decoder);
    let differing = |romanised: String, name: &str| Some(romanised).filter(|text| text != name);
    let title_romanised = differing(title, &metadata.title);
    let artist_romanised = differing(artist, &metadata.artist);
    chart.metadata = metadata;
    Ok(GameChart { chart, title_romanised, artist_romanised })
}

/// What the game reads from a file.
struct Beatmap<'a> {
    header: Header<'a>,
    timing_points: TimingPoints,
    objects: Vec<HitObject<'a>>,
    /// Whether timing points and hit objects were skipped, since they came before the mode.
    is_partial: bool,
}

impl<'a> Beatmap<'a> {
    /// Reads a file and refuses other modes, of whose notes nothing is read.
    fn read(text: &'a [u8]) -> Result<Self, Refusal> {
        let version = format_version(text)?;
        let beatmap = Self::read_sections(text, version, false);
        match beatmap.header.mode {
            MODE if beatmap.is_partial => Ok(Self::read_sections(text, version, true)),
            MODE => Ok(beatmap),
            mode => Err(Refusal::OtherGameMode { mode }),
        }
    }

    fn read_sections(text: &'a [u8], version: i32, reads_other_modes: bool) -> Self {
        let offset_ms = if version < 5 { EARLY_VERSION_OFFSET_MS } else { 0.0 };
        let format = ObjectFormat::new(version, offset_ms);
        let (mut header, mut timing_points) = (Header::new(), TimingPoints::default());
        let (mut objects, mut is_partial) = (Vec::new(), false);
        for (section, line) in section_lines(text) {
            match section {
                Section::TimingPoints | Section::HitObjects if !reads_other_modes && header.mode != MODE => {
                    is_partial = true;
                }
                Section::TimingPoints => timing_points.read(line, offset_ms),
                // Such a chart is refused.
                Section::HitObjects if objects.len() > MAX_NOTES => {}
                Section::HitObjects => objects.extend(format.read(line)),
                Section::Other => {}
                _ => header.read(section, line),
            }
        }
        timing_points.flush();
        Self { header, timing_points, objects, is_partial }
    }

    /// The note of a hit object (`ManiaBeatmapConverter.ConvertHitObject`, `PassThroughPatternGenerator`).
    fn note(&self, object: &HitObject<'_>) -> Result<Note, Refusal> {
        let length_ms = match object.kind {
            Kind::Circle => 0.0,
            Kind::Hold { length_ms } => length_ms,
            Kind::Slider { distance: Distance::Known(distance), spans } => {
                f64::from(spans) * distance / self.slider_velocity(object.start_ms)
            }
            Kind::Slider { distance: Distance::OfCurve, .. } => {
                return Err(Refusal::Indeterminate { what: "a slider is as long as its curve" });
            }
            Kind::Spinner => {
                return Err(Refusal::Indeterminate { what: "the column of a spinner is random" });
            }
            Kind::Ambiguous => return Err(Refusal::NotPlayed { reason: "an object of several types" }),
        };
        let column = column(object.x, self.header.keys());
        let start_us = microseconds(object.start_ms);
        let duration_us = microseconds(object.start_ms + length_ms) - start_us;
        Ok(if duration_us > 0 {
            Note::hold(start_us, duration_us, column)
        } else {
            Note::tap(start_us, column)
        })
    }

    /// In pixels per millisecond (`ConvertSlider.ApplyDefaultsToSelf`).
    fn slider_velocity(&self, time_ms: f64) -> f64 {
        let scoring_distance = 100.0 * self.header.slider_multiplier() * self.timing_points.velocity(time_ms);
        scoring_distance / self.timing_points.beat_length_ms(time_ms)
    }
}

/// The column of a position (`LegacyPatternGenerator.GetColumn`), in single precision.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn column(x: f32, keys: u8) -> u8 {
    let width = 512.0 / f32::from(keys);
    // The cast rounds towards 0, below which there is no column.
    ((x / width) as u8).min(keys - 1)
}

/// A time in whole microseconds, rounded half up. Times are at most a few hundred years.
#[expect(clippy::cast_possible_truncation, reason = "it fits, and the cast saturates")]
fn microseconds(time_ms: f64) -> i64 {
    (time_ms * 1000.0 + 0.5).floor() as i64
}

/// The sounds of a chart, each file once, with the volume of its first use.
#[derive(Default)]
struct Hitsounds<'a> {
    list: Vec<Hitsound>,
    indexes: HashMap<&'a [u8], u16>,
}

impl<'a> Hitsounds<'a> {
    fn index(&mut self, sample: Sample<'a>, decoder: TextDecoder) -> Option<u16> {
        let file = trim(sample.file);
        if file.is_empty() {
            return None;
        }
        if let Some(&index) = self.indexes.get(file) {
            return Some(index);
        }
        let index = u16::try_from(self.list.len()).ok()?;
        let name = decoder.text(file);
        self.list.push(match u8::try_from(sample.volume.min(100)) {
            Ok(volume @ 1..) => Hitsound::with_volume(name, volume),
            _ => Hitsound::new(name),
        });
        self.indexes.insert(file, index);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use chart_index_rox::NoteType;

    use super::*;

    fn notes(text: &str) -> Vec<(i64, u8, i64)> {
        let chart = read(text.as_bytes()).unwrap_or_else(|refusal| panic!("{refusal}: {text}")).chart;
        let length = |note: &Note| if note.note_type == NoteType::Tap { 0 } else { note.duration_us() };
        chart.notes.iter().map(|note| (note.time_us, note.column, length(note))).collect()
    }

    /// `ConvertSlider`: spans x distance / (100 x multiplier x velocity / beat length).
    #[test]
    fn sliders_are_long_notes() {
        let file = |multiplier: &str, timing: &str, start: &str| {
            format!(
                "Mode: 3\n[HitObjects]\n64,192,{start},2,0,L|204:192,2,140\n[TimingPoints]\n{timing}\n[Difficulty]\n\
                 SliderMultiplier:{multiplier}"
            )
        };
        for (multiplier, timing, start, length_us) in [
            ("1.4", "0,500", "1000", 1_000_000),
            ("9", "0,500", "1000", 388_889),
            ("0", "0,500", "1000", 3_500_000),
            ("1.4", "0,500\n1000,-50,4,1,0,100,0,0", "1000", 500_000),
            ("1.4", "0,500\n1000,-50,4,1,0,100,0,0", "999.9", 1_000_000),
            ("1.4", "0,500\n1001,250", "1000", 1_000_000),
            ("1.4", "2000,250", "1000", 500_000),
            ("1.4", "", "1000", 2_000_000),
            ("1.4", "0,0", "1000", 12_000),
        ] {
            let text = file(multiplier, timing, start);
            assert_eq!(notes(&text).iter().map(|note| note.2).collect::<Vec<_>>(), [length_us], "{text}");
        }
    }

    /// `LegacyPatternGenerator.GetColumn`.
    #[test]
    fn columns_are_clamped() {
        for (x, keys, expected) in [
            (0.0, 4, 0),
            (127.9, 4, 0),
            (128.0, 4, 1),
            (512.0, 4, 3),
            (131_072.0, 7, 6),
            (-131_072.0, 7, 0),
            (73.0, 7, 0),
            (73.15, 7, 1),
            (0.0, 1, 0),
        ] {
            assert_eq!(column(x, keys), expected, "{x} of {keys}");
        }
    }

    #[test]
    fn notes_before_the_mode_are_read() {
        let text = "[TimingPoints]\n0,500\n[HitObjects]\n64,192,5.0005,1,0\n192,192,9,128,0,9.0004\n[General]\nMode: 3";
        let expected = [(5001, 0, 0), (9000, 1, 0)];
        assert_eq!(notes(&format!("{text}\n[Difficulty]\nCircleSize: 4")), expected);
        let taiko = text.replace("Mode: 3", "Mode: 1");
        assert_eq!(read(taiko.as_bytes()).err(), Some(Refusal::OtherGameMode { mode: 1 }));
    }

    #[test]
    fn sounds_are_listed_once() {
        let objects = "64,192,0,1,0,0:0:0:50:a.wav\n64,192,1,1,0,0:0:0:70:a.wav\n64,192,2,1,0,0:0:0:0: b.wav \n64,192,3,1,0";
        let chart = read(format!("Mode: 3\n[HitObjects]\n{objects}").as_bytes()).expect("a chart").chart;
        let indexes: Vec<_> = chart.notes.iter().map(|note| note.hitsound_index).collect();
        assert_eq!(indexes, [Some(0), Some(0), Some(1), None]);
        assert_eq!(chart.hitsounds, [Hitsound::with_volume("a.wav", 50), Hitsound::new("b.wav")]);
    }
}
