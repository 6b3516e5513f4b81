//! `.sm` and `.ssc`: the charts of one song of the second game.
//!
//! Two forms that the games play and the decoder refuses are repaired before decoding: notes with attributes
//! (`stepf2`), and timing below zero (`negative_timing`). A file without them is decoded as it stands, so
//! that no repair can change the hash of a chart that is read without it.

mod negative_timing;
mod stepf2;
mod tag_text;

use std::borrow::Cow;

use rox::RoxChart;
use rox::formats::RomanisedNames;
use rox::formats::sm::decoder::from_chart;
use rox::formats::sm::msd::Tag;
use rox::formats::sm::types::{SmChart, SmFile};
use rox::formats::sm::{parser, ssc_parser};

use super::{DecodedFile, IsStored, SkippedChart, collect, draft, guarded, work_limits};
use crate::metadata::{clean, excerpt};
use crate::rox_file::MAX_NOTES;
use crate::{ChartFormat, Refusal};

/// The latest time, either way, that is read: more than a century, in microseconds. Beyond it the decoder's
/// arithmetic overflows.
const MAX_TIME_US: u64 = 4_000_000_000_000_000;

/// The charts of the file.
pub(super) fn read(
    format: ChartFormat,
    text: &str,
    names: &RomanisedNames,
    is_stored: IsStored<'_>,
) -> Result<DecodedFile, Refusal> {
    let mut tags = work_limits::simfile_tags(text)?;
    let text =
        if repair(format, &mut tags) { Cow::Owned(tag_text::text_of(&tags)) } else { Cow::Borrowed(text) };
    work_limits::check_simfile(&tags)?;
    drop(tags);
    let parsed = match format {
        ChartFormat::Sm => parser::parse(text.as_bytes()),
        _ => ssc_parser::parse(text.as_bytes()),
    };
    let file = parsed.map_err(|error| Refusal::from_decoder(&error))?;
    let skipped = file.skipped.iter().map(|message| Err(skipped(message)));
    let charts = file.charts.iter().map(|chart| {
        guarded(|| draft(checked(&file, chart)?, names, is_stored))
            .map_err(|reason| SkippedChart { chart: name(chart), reason })
    });
    collect(charts.chain(skipped))
}

/// Repairs what the games play and the decoder refuses. Reports whether there was any.
fn repair(format: ChartFormat, tags: &mut Vec<Tag>) -> bool {
    // In an `.sm`, a tag of notes begins with five other parameters.
    let first_measure = if format == ChartFormat::Sm { 5 } else { 0 };
    let mut repaired = false;
    for notes in tags.iter_mut().filter(|tag| matches!(tag.name.as_str(), "NOTES" | "NOTES2")) {
        repaired |= stepf2::replace_attributes(notes, first_measure);
    }
    repaired
        | match format {
            ChartFormat::Sm => negative_timing::repair_sm(tags),
            _ => negative_timing::repair_ssc(tags),
        }
}

/// What the parser says of a chart that it skipped: `chart 6: the reason`.
fn skipped(message: &str) -> SkippedChart {
    let (chart, reason) = message.split_once(": ").unwrap_or(("a chart", message));
    SkippedChart { chart: clean(chart), reason: Refusal::unreadable(reason) }
}

fn name(chart: &SmChart) -> String {
    excerpt(format!("{} {}", chart.stepstype, chart.label()).trim())
}

/// The chart as the decoder gives it, where it can do so in bounded time and without an overflow.
fn checked(file: &SmFile, chart: &SmChart) -> Result<RoxChart, Refusal> {
    if chart.notes.len() > 2 * MAX_NOTES {
        return Err(Refusal::TooMuchWork { what: "notes" });
    }
    let times = chart.notes.iter().map(|note| note.time_us);
    let points = chart.bpms.iter().flatten().map(|&(time_us, _)| time_us);
    let offset = chart.offset_us.unwrap_or(file.offset_us);
    if times.chain(points).chain([offset]).any(|time_us| time_us.unsigned_abs() > MAX_TIME_US) {
        return Err(Refusal::TimeOutOfRange);
    }
    work_limits::check_open_holds(&chart.notes)?;
    Ok(from_chart(file, chart))
}
