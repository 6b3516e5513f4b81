//! Repairs of decoded `.osu` charts.

use rox::RoxChart;
use rox::formats::osu::OsuHitObject;
use rox::formats::{RomanisedNames, osu};

use crate::Refusal;

/// Replaces an empty title or artist by the romanised one: an empty `TitleUnicode` hides `Title`, which the
/// decoder then reports as the romanised title only.
pub(crate) fn fill_empty_names(chart: &mut RoxChart, names: &RomanisedNames) {
    let metadata = &mut chart.metadata;
    for (name, romanised) in [(&mut metadata.title, &names.title), (&mut metadata.artist, &names.artist)] {
        if name.trim().is_empty()
            && let Some(romanised) = romanised
        {
            *name = romanised.as_str().into();
        }
    }
}

/// Moves notes that lie outside the playfield into its outermost columns, as the game does. An x of exactly
/// 512, the right edge, is common in files that were written by hand or by converters.
pub(crate) fn clamp_columns(chart: &mut RoxChart, text: &str) -> Result<(), Refusal> {
    if chart.notes.iter().all(|note| note.column < chart.key_count) {
        return Ok(());
    }
    let beatmap = osu::parser::parse(text.as_bytes()).map_err(|error| Refusal::from_decoder(&error))?;
    let mut objects: Vec<&OsuHitObject> = beatmap.hit_objects.iter().collect();
    // The decoder sorts its notes with the same stable sort.
    objects.sort_by_key(|object| object.time);
    for (note, object) in chart.notes.iter_mut().zip(objects) {
        if note.column >= chart.key_count {
            note.column = if object.x < 0 { 0 } else { chart.key_count.saturating_sub(1) };
        }
    }
    Ok(())
}
