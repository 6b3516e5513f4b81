//! Repairs of `.sm` and `.ssc` files before they are decoded.

use rox::formats::sm::msd::Tag;

use super::{negative_timing, stepf2_notes, tag_text};
use crate::ChartFormat;

/// Repairs the tags of a simfile. Returns the text to decode, or `None` if there was nothing to repair.
pub(crate) fn repair_tags(format: ChartFormat, tags: &mut Vec<Tag>) -> Option<String> {
    // In an `.sm` file five other parameters precede the notes in their tag.
    let first_measure = if format == ChartFormat::Sm { 5 } else { 0 };
    let mut repaired = false;
    for notes in tags.iter_mut().filter(|tag| matches!(tag.name.as_str(), "NOTES" | "NOTES2")) {
        repaired |= stepf2_notes::replace_attributes(notes, first_measure);
    }
    repaired |= match format {
        ChartFormat::Sm => negative_timing::repair_sm(tags),
        _ => negative_timing::repair_ssc(tags),
    };
    repaired.then(|| tag_text::to_text(tags))
}
