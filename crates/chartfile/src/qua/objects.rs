//! The objects of a `.qua` file. All fields that the game reads are read, since one that it cannot read makes it
//! refuse the file.
//!
//! Quaver.API e73fb5db, `Qua` and the types of `Quaver.API.Maps.Structures`.

use super::yaml::{Object, Reader};
use crate::Refusal;

const SIGNATURES: &[(&str, i32)] = &[("Quadruple", 4), ("Triple", 3)];

/// `HitObjectType`.
const HIT_OBJECT_TYPES: &[(&str, i32)] = &[("Normal", 0), ("Mine", MINE)];
const MINE: i32 = 1;

const HIT_SOUNDS: &[(&str, i32)] = &[("Normal", 1), ("Whistle", 2), ("Finish", 4), ("Clap", 8)];

/// A file.
#[derive(Default)]
pub(super) struct Qua {
    pub(super) version: i32,
    pub(super) map_id: i32,
    pub(super) map_set_id: i32,
    pub(super) mode: String,
    pub(super) has_scratch_key: bool,
    pub(super) title: String,
    pub(super) artist: String,
    pub(super) source: String,
    pub(super) tags: String,
    pub(super) creator: String,
    pub(super) difficulty_name: String,
    pub(super) audio_file: String,
    pub(super) background_file: String,
    pub(super) song_preview_ms: i32,
    /// Whether the BPM does not affect the scroll speed.
    pub(super) is_normalised: bool,
    pub(super) initial_scroll_velocity: f32,
    pub(super) velocities: Vec<ScrollVelocity>,
    pub(super) timing_points: Vec<TimingPointInfo>,
    pub(super) hit_objects: Vec<HitObject>,
    /// The number of sounds that can be named.
    pub(super) samples: usize,
    pub(super) sound_effects: Vec<Sound>,
}

impl Object for Qua {
    fn read_field(&mut self, name: &str, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        match name {
            "QuaVersion" => self.version = reader.int()?,
            "MapId" => self.map_id = reader.int()?,
            "MapSetId" => self.map_set_id = reader.int()?,
            "Mode" => self.mode = reader.text()?,
            "HasScratchKey" => self.has_scratch_key = reader.boolean()?,
            "Title" => self.title = reader.text()?,
            "Artist" => self.artist = reader.text()?,
            "Source" => self.source = reader.text()?,
            "Tags" => self.tags = reader.text()?,
            "Creator" => self.creator = reader.text()?,
            "DifficultyName" => self.difficulty_name = reader.text()?,
            "AudioFile" => self.audio_file = reader.text()?,
            "BackgroundFile" => self.background_file = reader.text()?,
            "BannerFile" | "Description" | "Genre" => drop(reader.scalar()?),
            "SongPreviewTime" => self.song_preview_ms = reader.int()?,
            "LegacyLNRendering" => drop(reader.boolean()?),
            "BPMDoesNotAffectScrollVelocity" => self.is_normalised = reader.boolean()?,
            "InitialScrollVelocity" => self.initial_scroll_velocity = reader.float()?,
            "SliderVelocities" => self.velocities = reader.list()?,
            "ScrollSpeedFactors" => drop(reader.list::<ScrollVelocity>()?),
            "TimingGroups" => {
                reader.values(|reader| reader.optional_object::<Unused>(Some("!ScrollGroup")))?;
            }
            "TimingPoints" => self.timing_points = reader.list()?,
            "HitObjects" => self.hit_objects = reader.list()?,
            "CustomAudioSamples" => {
                self.samples = reader.optional_list(optional_unused)?.map_or(0, |list| list.len());
            }
            "SoundEffects" => self.sound_effects = reader.list()?,
            "EditorLayers" => drop(reader.optional_list(optional_unused)?),
            "Bookmarks" => drop(reader.list::<Unused>()?),
            _ => reader.skip()?,
        }
        Ok(())
    }
}

/// A hit object: a note, a long note if its end is above 0, or a mine.
#[derive(Default)]
pub(super) struct HitObject {
    pub(super) start_ms: i32,
    pub(super) end_ms: i32,
    pub(super) lane: i32,
    object_type: i32,
    pub(super) key_sounds: Vec<Sound>,
}

impl HitObject {
    pub(super) const fn is_mine(&self) -> bool {
        self.object_type == MINE
    }
}

impl Object for HitObject {
    fn read_field(&mut self, name: &str, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        match name {
            "StartTime" => self.start_ms = reader.int()?,
            "EndTime" => self.end_ms = reader.int()?,
            "Lane" => self.lane = reader.int()?,
            "Type" => self.object_type = reader.enumeration(HIT_OBJECT_TYPES)?,
            "HitSound" => drop(reader.enumeration(HIT_SOUNDS)?),
            "KeySounds" => self.key_sounds = reader.list()?,
            "EditorLayer" => drop(reader.int()?),
            "TimingGroup" => drop(reader.scalar()?),
            _ => reader.skip()?,
        }
        Ok(())
    }
}

/// A use of a sound: a key sound of a note, or a sound effect.
#[derive(Default)]
pub(super) struct Sound {
    /// From 1.
    pub(super) sample: i32,
    pub(super) volume: i32,
}

impl Object for Sound {
    fn read_field(&mut self, name: &str, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        match name {
            "Sample" => self.sample = reader.int()?,
            "Volume" => self.volume = reader.int()?,
            "StartTime" => drop(reader.float()?),
            _ => reader.skip()?,
        }
        Ok(())
    }
}

/// A BPM point.
#[derive(Default)]
pub(super) struct TimingPointInfo {
    pub(super) start_ms: f32,
    pub(super) bpm: f32,
    pub(super) signature: i32,
}

impl Object for TimingPointInfo {
    fn read_field(&mut self, name: &str, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        match name {
            "StartTime" => self.start_ms = reader.float()?,
            "Bpm" => self.bpm = reader.float()?,
            "Signature" => self.signature = reader.enumeration(SIGNATURES)?,
            "Hidden" => drop(reader.boolean()?),
            _ => reader.skip()?,
        }
        Ok(())
    }
}

/// A scroll speed from a time on.
#[derive(Default)]
pub(super) struct ScrollVelocity {
    pub(super) start_ms: f32,
    pub(super) multiplier: f32,
}

impl Object for ScrollVelocity {
    fn read_field(&mut self, name: &str, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        match name {
            "StartTime" => self.start_ms = reader.float()?,
            "Multiplier" => self.multiplier = reader.float()?,
            _ => reader.skip()?,
        }
        Ok(())
    }
}

/// An object of which nothing is used: a layer or bookmark of the editor, a sound file, a scroll group.
#[derive(Default)]
struct Unused;

impl Object for Unused {
    fn read_field(&mut self, name: &str, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        match name {
            "Name" | "ColorRgb" | "Note" | "Path" => drop(reader.scalar()?),
            "Hidden" | "UnaffectedByRate" => drop(reader.boolean()?),
            "StartTime" => drop(reader.int()?),
            "InitialScrollVelocity" => drop(reader.float()?),
            "ScrollVelocities" | "ScrollSpeedFactors" => drop(reader.list::<ScrollVelocity>()?),
            _ => reader.skip()?,
        }
        Ok(())
    }
}

fn optional_unused(reader: &mut Reader<'_>) -> Result<Option<Unused>, Refusal> {
    reader.optional_object(None)
}
