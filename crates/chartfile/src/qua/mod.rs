//! Reads `.qua` files as Quaver plays them.
//!
//! Comments name the places in Quaver.API e73fb5db.

mod block_yaml;
mod objects;
mod yaml;

use chart_index_rox::{Metadata, Note, RoxChart, TimingPoint};

use self::objects::{HitObject, Qua};
use self::yaml::read_document;
use crate::Refusal;
use crate::dotnet::enumeration;
use crate::game_chart::GameChart;
use crate::metadata::{excerpt, split_tags};

/// The last version of the format that the game reads, `Qua.CurrentQuaVersion`.
const LAST_VERSION: i32 = 1;

/// `GameMode`.
const MODES: &[(&str, i32)] = &[
    ("Keys4", 1),
    ("Keys7", 2),
    ("Keys1", 3),
    ("Keys2", 4),
    ("Keys3", 5),
    ("Keys5", 6),
    ("Keys6", 7),
    ("Keys8", 8),
    ("Keys9", 9),
    ("Keys10", 10),
];

/// The key counts of the modes, from mode 1 on (`ModeHelper.ToKeyCount`).
const KEYS: [u8; 10] = [4, 7, 1, 2, 3, 5, 6, 8, 9, 10];

/// The chart of a file without its byte order mark.
pub(crate) fn read(bytes: &[u8]) -> Result<GameChart, Refusal> {
    let qua: Qua = read_document(&String::from_utf8_lossy(bytes))?;
    let keys = qua.keys()?;
    qua.validate()?;
    let mut chart = RoxChart::new(keys);
    chart.timing_points = qua.timing_points();
    for object in &qua.hit_objects {
        chart.notes.extend(object.note(keys)?);
    }
    chart.metadata = qua.metadata();
    Ok(GameChart { chart, title_romanised: None, artist_romanised: None })
}

impl Qua {
    /// The number of columns (`GetKeyCount`).
    fn keys(&self) -> Result<u8, Refusal> {
        let mode = enumeration(self.mode.as_bytes(), MODES, true);
        let index = mode.and_then(|mode| usize::try_from(mode).ok()?.checked_sub(1));
        let keys = index.and_then(|index| KEYS.get(index));
        let unknown = || Refusal::UnknownMode { mode: excerpt(&self.mode) };
        keys.map(|keys| keys + u8::from(self.has_scratch_key)).ok_or_else(unknown)
    }

    /// Refuses what the game refuses (`Validate`, `AfterLoad`).
    fn validate(&self) -> Result<(), Refusal> {
        let has_sample =
            |sample: i32| usize::try_from(sample).is_ok_and(|sample| (1..=self.samples).contains(&sample));
        // A volume of 0 is the default.
        let mut key_sounds = self.hit_objects.iter().flat_map(|object| &object.key_sounds);
        let has_valid_sounds = key_sounds.all(|sound| has_sample(sound.sample) && sound.volume >= 0)
            && self
                .sound_effects
                .iter()
                .all(|sound| has_sample(sound.sample) && (0..=100).contains(&sound.volume));
        if self.version > LAST_VERSION {
            return Err(Refusal::NotPlayed { reason: "a version of the format above 1" });
        }
        if self.hit_objects.is_empty() {
            return Err(Refusal::NoNotes);
        }
        if self.timing_points.is_empty() {
            return Err(Refusal::NoBpm);
        }
        if self.hit_objects.iter().any(|object| object.is_long() && object.end_ms <= object.start_ms) {
            return Err(Refusal::NotPlayed { reason: "a long note whose end is not after its start" });
        }
        if !has_valid_sounds {
            return Err(Refusal::NotPlayed { reason: "a sound without a sample, or with a wrong volume" });
        }
        Ok(())
    }

    /// BPM points and scroll speeds.
    fn timing_points(&self) -> Vec<TimingPoint> {
        let bpm_points = self.timing_points.iter().map(|point| TimingPoint::Bpm {
            time_us: microseconds(point.start_ms),
            bpm: point.bpm,
            // 0 is the default.
            signature: if point.signature == 0 {
                4
            } else {
                u8::try_from(point.signature).unwrap_or(u8::MAX)
            },
        });
        let velocities =
            self.velocities.iter().map(|velocity| (microseconds(velocity.start_ms), velocity.multiplier));
        // It counts in the normalised format only.
        let first_us = velocities.clone().map(|(time_us, _)| time_us).min().unwrap_or(0).min(0);
        let initial = self.is_normalised.then_some((first_us, self.initial_scroll_velocity));
        let scrolls = initial.into_iter().chain(velocities);
        bpm_points.chain(scrolls.map(|(time_us, factor)| TimingPoint::sv(time_us, factor))).collect()
    }

    fn metadata(&self) -> Metadata {
        let id = |id: i32| u64::try_from(id).ok().filter(|&id| id > 0);
        let optional = |text: &str| (!text.is_empty()).then(|| text.into());
        Metadata {
            chart_id: id(self.map_id),
            chartset_id: id(self.map_set_id),
            title: self.title.as_str().into(),
            artist: self.artist.as_str().into(),
            creator: self.creator.as_str().into(),
            difficulty_name: self.difficulty_name.as_str().into(),
            audio_file: self.audio_file.as_str().into(),
            background_file: optional(&self.background_file),
            preview_time_us: i64::from(self.song_preview_ms) * 1000,
            source: optional(&self.source),
            tags: split_tags(&self.tags).map(Into::into).collect(),
            ..Metadata::default()
        }
    }
}

impl HitObject {
    /// `IsLongNote`.
    const fn is_long(&self) -> bool {
        self.end_ms > 0
    }

    /// The note of the object, none for a mine. The game does not check lanes, and has no other ones.
    fn note(&self, keys: u8) -> Result<Option<Note>, Refusal> {
        let lane = u8::try_from(self.lane).ok().filter(|lane| (1..=keys).contains(lane));
        let lane = lane.ok_or_else(|| match self.lane {
            1.. => Refusal::Column { column: u8::try_from(self.lane - 1).unwrap_or(u8::MAX), keys },
            _ => Refusal::NotPlayed { reason: "a note in a lane below 1" },
        })?;
        let start_us = i64::from(self.start_ms) * 1000;
        let note = if self.is_long() {
            Note::hold(start_us, i64::from(self.end_ms) * 1000 - start_us, lane - 1)
        } else {
            Note::tap(start_us, lane - 1)
        };
        Ok((!self.is_mine()).then_some(note))
    }
}

/// A time in whole microseconds, rounded half up.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
fn microseconds(time_ms: f32) -> i64 {
    (f64::from(time_ms) * 1000.0 + 0.5).floor() as i64
}
