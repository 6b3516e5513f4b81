//! `.sm` and `.ssc`: the charts of one song of the second game.

use rox::RoxChart;
use rox::formats::RomanisedNames;
use rox::formats::sm::decoder::from_chart;
use rox::formats::sm::types::{SmChart, SmFile};
use rox::formats::sm::{parser, ssc_parser};

use super::{DecodedFile, IsStored, LeftOut, budget, collect, draft, guarded};
use crate::rox_file::MAX_NOTES;
use crate::text::{clean, excerpt};
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
    budget::check_simfile(text)?;
    let parsed = match format {
        ChartFormat::Sm => parser::parse(text.as_bytes()),
        _ => ssc_parser::parse(text.as_bytes()),
    };
    let file = parsed.map_err(|error| Refusal::from_decoder(&error))?;
    let skipped = file.skipped.iter().map(|message| Err(skipped(message)));
    let charts = file.charts.iter().map(|chart| {
        guarded(|| draft(checked(&file, chart)?, names, is_stored))
            .map_err(|reason| LeftOut { chart: name(chart), reason })
    });
    collect(charts.chain(skipped))
}

/// What the parser says of a chart that it skipped: `chart 6: the reason`.
fn skipped(message: &str) -> LeftOut {
    let (chart, reason) = message.split_once(": ").unwrap_or(("a chart", message));
    LeftOut { chart: clean(chart), reason: Refusal::unreadable(reason) }
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
    budget::check_open_holds(&chart.notes)?;
    Ok(from_chart(file, chart))
}
