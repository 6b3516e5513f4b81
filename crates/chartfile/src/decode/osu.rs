//! `.osu`: one chart of the first game.

use rox::codec::Decoder;
use rox::formats::{OsuDecoder, RomanisedNames, osu};
use rox::{RoxChart, formats::osu::OsuHitObject};

use crate::Refusal;

/// The only mode of the first game that the index holds.
const MODE: u8 = 3;

/// The latest time and the longest note, either way, that is read: 12 days, in microseconds. The decoder subtracts
/// in 32-bit milliseconds: within this limit that is right, and what wrapped around is beyond it.
const MAX_TIME_US: u64 = (1 << 30) * 1000;

/// The chart of the file, before mending and checking.
pub(super) fn read(text: &str, names: &RomanisedNames) -> Result<RoxChart, Refusal> {
    if let Some(mode) = OsuDecoder::peek_mode(text.as_bytes(), true)
        && mode != MODE
    {
        return Err(Refusal::OtherGameMode { mode });
    }
    let mut chart =
        OsuDecoder::decode_inner(text.as_bytes()).map_err(|error| Refusal::from_decoder(&error))?;
    let in_range = |time_us: i64| time_us.unsigned_abs() <= MAX_TIME_US;
    if !chart.notes.iter().all(|note| in_range(note.time_us) && in_range(note.duration_us())) {
        return Err(Refusal::TimeOutOfRange);
    }
    fill_empty_names(&mut chart, names);
    if chart.notes.iter().any(|note| note.column >= chart.key_count) {
        clamp_columns(&mut chart, text)?;
    }
    Ok(chart)
}

/// A `TitleUnicode` that is present but empty hides the title: the decoder then gives the plain one as the
/// romanised name only.
fn fill_empty_names(chart: &mut RoxChart, names: &RomanisedNames) {
    let metadata = &mut chart.metadata;
    for (name, plain) in [(&mut metadata.title, &names.title), (&mut metadata.artist, &names.artist)] {
        if name.trim().is_empty()
            && let Some(plain) = plain
        {
            *name = plain.as_str().into();
        }
    }
}

/// Puts notes beside the playfield into its outermost columns, as the game does: a position of exactly 512, the
/// right edge, is common in files that were made by hand or by converters.
fn clamp_columns(chart: &mut RoxChart, text: &str) -> Result<(), Refusal> {
    let beatmap = osu::parser::parse(text.as_bytes()).map_err(|error| Refusal::from_decoder(&error))?;
    let mut objects: Vec<&OsuHitObject> = beatmap.hit_objects.iter().collect();
    // The stable order in which the decoder put the notes.
    objects.sort_by_key(|object| object.time);
    for (note, object) in chart.notes.iter_mut().zip(objects) {
        if note.column >= chart.key_count {
            note.column = if object.x < 0 { 0 } else { chart.key_count.saturating_sub(1) };
        }
    }
    Ok(())
}
