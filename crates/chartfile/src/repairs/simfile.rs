//! Repairs of `.sm` and `.ssc` files before they are decoded.

use rox::formats::sm::msd::Tag;
use rox::formats::sm::ssc_parser::columns_of;

use super::{negative_timing, rows, stepf2_notes, tag_text};
use crate::ChartFormat;

/// Repairs the tags of a simfile. Returns the text to decode, or `None` if there was nothing to repair.
pub(crate) fn repair_tags(format: ChartFormat, tags: &mut Vec<Tag>) -> Option<String> {
    let mut repaired = false;
    if format == ChartFormat::Sm {
        for notes in tags.iter_mut().filter(|tag| tag.name == "NOTES") {
            let columns = notes.params.first().and_then(|step_type| columns_of(step_type));
            // Five other parameters precede the measures.
            repaired |= repair_notes(notes, 5, columns);
        }
        repaired |= negative_timing::repair_sm(tags);
    } else {
        for chart in tags.split_mut(|tag| tag.name == "NOTEDATA") {
            let step_type = chart.iter().rfind(|tag| tag.name == "STEPSTYPE");
            let columns = step_type.and_then(|tag| columns_of(&tag.text()));
            for notes in chart.iter_mut().filter(|tag| matches!(tag.name.as_str(), "NOTES" | "NOTES2")) {
                repaired |= repair_notes(notes, 0, columns);
            }
        }
        repaired |= negative_timing::repair_ssc(tags);
    }
    repaired.then(|| tag_text::to_text(tags))
}

/// Repairs the measures of one chart, which start at parameter `first_measure`. Reports whether anything
/// changed.
fn repair_notes(notes: &mut Tag, first_measure: usize, columns: Option<u8>) -> bool {
    let attributes = stepf2_notes::replace_attributes(notes, first_measure);
    columns.is_some_and(|columns| rows::repair_widths(notes, first_measure, columns)) || attributes
}
