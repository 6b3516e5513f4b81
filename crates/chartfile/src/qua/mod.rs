//! Reads `.qua` files as Quaver plays them.
//!
//! Comments name the places in Quaver.API e73fb5db.

mod block_yaml;
mod yaml;

use chart_index_rox::{InvalidNotes, Metadata, Note, RoxChart, TimingPoint};

use self::block_yaml::read_block_document;
use self::yaml::{Node, read_document};
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

const SIGNATURES: &[(&str, i32)] = &[("Quadruple", 4), ("Triple", 3)];

/// `HitObjectType`.
const TYPES: &[(&str, i32)] = &[("Normal", 0), ("Mine", MINE)];
const MINE: i32 = 1;

const HIT_SOUNDS: &[(&str, i32)] = &[("Normal", 1), ("Whistle", 2), ("Finish", 4), ("Clap", 8)];

/// The key counts of the modes, from mode 1 on (`ModeHelper.ToKeyCount`).
const KEYS: [u8; 10] = [4, 7, 1, 2, 3, 5, 6, 8, 9, 10];

/// The chart of a file without its byte order mark.
pub(crate) fn read(bytes: &[u8]) -> Result<GameChart, Refusal> {
    let text = String::from_utf8_lossy(bytes);
    let root = read_block_document(&text).map_or_else(|| read_document(&text), Ok)?;
    if root.int("QuaVersion")? > LAST_VERSION {
        return Err(Refusal::NotPlayed { reason: "a version of the format above 1" });
    }
    let mut chart = RoxChart::new(keys(&root)?);
    chart.timing_points = timing_points(&root)?;
    let objects = root.list("HitObjects")?;
    if objects.is_empty() {
        return Err(InvalidNotes::NoNotes.into());
    }
    let samples = root.optional_list("CustomAudioSamples")?.len();
    for object in objects {
        chart.notes.extend(note(object, chart.key_count, samples)?);
    }
    for effect in root.list("SoundEffects")? {
        check_sound(effect, samples, 100)?;
    }
    // The game sorts them.
    root.list("Bookmarks")?;
    chart.metadata = metadata(&root)?;
    Ok(GameChart { chart, title_romanised: None, artist_romanised: None })
}

/// The number of columns (`GetKeyCount`).
fn keys(root: &Node<'_>) -> Result<u8, Refusal> {
    let mode = root.text("Mode")?;
    let number = enumeration(mode.as_bytes(), MODES, true);
    let index = number.and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
    let keys = index
        .and_then(|index| KEYS.get(index))
        .ok_or_else(|| Refusal::UnknownGameMode { mode: excerpt(mode) })?;
    Ok(keys + u8::from(root.boolean("HasScratchKey")?))
}

/// BPM points, of which the game needs one, and scroll speeds.
fn timing_points(root: &Node<'_>) -> Result<Vec<TimingPoint>, Refusal> {
    let mut points = Vec::new();
    for point in root.list("TimingPoints")? {
        let (time_us, bpm) = (microseconds(point.float("StartTime")?), point.float("Bpm")?);
        // 0 is the default.
        let signature = match point.enumeration("Signature", SIGNATURES)? {
            0 => 4,
            beats => u8::try_from(beats).unwrap_or(u8::MAX),
        };
        points.push(TimingPoint::Bpm { time_us, bpm, signature });
    }
    if points.is_empty() {
        return Err(Refusal::NoBpm);
    }
    let mut scrolls = Vec::new();
    for velocity in root.list("SliderVelocities")? {
        scrolls.push((microseconds(velocity.float("StartTime")?), velocity.float("Multiplier")?));
    }
    let initial = root.float("InitialScrollVelocity")?;
    // It counts where the BPM does not affect the scroll speed.
    if root.boolean("BPMDoesNotAffectScrollVelocity")? {
        let first_us = scrolls.iter().map(|(time_us, _)| *time_us).min().unwrap_or(0);
        points.push(TimingPoint::sv(first_us.min(0), initial));
    }
    points.extend(scrolls.into_iter().map(|(time_us, factor)| TimingPoint::sv(time_us, factor)));
    Ok(points)
}

/// The note of a hit object, none for a mine (`Validate`, `IsLongNote`). The game does not check lanes, and has
/// no others.
fn note(object: &Node<'_>, keys: u8, samples: usize) -> Result<Option<Note>, Refusal> {
    let from_ms = object.int("StartTime")?;
    let (until_ms, lane) = (object.int("EndTime")?, object.int("Lane")?);
    let is_long = until_ms > 0;
    if is_long && until_ms <= from_ms {
        return Err(Refusal::NotPlayed { reason: "a long note whose end is not after its start" });
    }
    for sound in object.list("KeySounds")? {
        check_sound(sound, samples, i32::MAX)?;
    }
    let column = match u8::try_from(i64::from(lane) - 1) {
        Ok(column) if column < keys => column,
        _ if lane < 1 => return Err(Refusal::NotPlayed { reason: "a note in a lane below 1" }),
        column => return Err(InvalidNotes::Column { column: column.unwrap_or(u8::MAX), keys }.into()),
    };
    // Values that the game cannot read are errors here as well.
    object.enumeration("HitSound", HIT_SOUNDS)?;
    object.int("EditorLayer")?;
    let start_us = i64::from(from_ms) * 1000;
    let duration_us = i64::from(until_ms) * 1000 - start_us;
    Ok(match object.enumeration("Type", TYPES)? {
        MINE => None,
        _ if is_long => Some(Note::hold(start_us, duration_us, column)),
        _ => Some(Note::tap(start_us, column)),
    })
}

/// Refuses a sound that is not there, or has a volume that is none (`Validate`). A volume of 0 is the default.
fn check_sound(sound: &Node<'_>, samples: usize, max_volume: i32) -> Result<(), Refusal> {
    let sample = usize::try_from(sound.int("Sample")?).unwrap_or(0);
    if (1..=samples).contains(&sample) && (0..=max_volume).contains(&sound.int("Volume")?) {
        Ok(())
    } else {
        Err(Refusal::NotPlayed { reason: "a sound without a sample, or with a wrong volume" })
    }
}

fn metadata(root: &Node<'_>) -> Result<Metadata, Refusal> {
    let text = |name| root.text(name);
    let optional = |text: &str| (!text.is_empty()).then(|| text.into());
    let id = |name| root.int(name).map(|id| u64::try_from(id).ok().filter(|&id| id > 0));
    Ok(Metadata {
        chart_id: id("MapId")?,
        chartset_id: id("MapSetId")?,
        title: text("Title")?.into(),
        artist: text("Artist")?.into(),
        creator: text("Creator")?.into(),
        difficulty_name: text("DifficultyName")?.into(),
        audio_file: text("AudioFile")?.into(),
        background_file: optional(text("BackgroundFile")?),
        preview_time_us: i64::from(root.int("SongPreviewTime")?) * 1000,
        source: optional(text("Source")?),
        tags: split_tags(text("Tags")?).map(Into::into).collect(),
        ..Metadata::default()
    })
}

/// A time in whole microseconds, rounded half up.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
fn microseconds(time_ms: f32) -> i64 {
    (f64::from(time_ms) * 1000.0 + 0.5).floor() as i64
}
