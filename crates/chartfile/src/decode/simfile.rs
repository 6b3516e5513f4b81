//! Decodes `.sm` and `.ssc` files: the charts of one song of the second game.

use std::borrow::Cow;

use chart_index_domain::clean;
use rox::RoxChart;
use rox::formats::RomanisedNames;
use rox::formats::sm::decoder::from_chart;
use rox::formats::sm::types::{SmChart, SmFile};
use rox::formats::sm::{parser, ssc_parser};

use super::drafts::{DecodedFile, collect_charts, draft};
use super::work_limits;
use crate::metadata::excerpt;
use crate::panic_guard::catch_panic;
use crate::rox_file::MAX_NOTES;
use crate::{ChartFormat, IsStored, Refusal, RefusedChart, repairs};

/// The limit for times, negative ones included: more than a century, in microseconds. Beyond it the decoder's
/// arithmetic overflows.
const MAX_TIME_US: u64 = 4_000_000_000_000_000;

/// The charts of the file.
pub(super) fn decode(
    format: ChartFormat,
    text: &str,
    names: &RomanisedNames,
    is_stored: IsStored<'_>,
) -> Result<DecodedFile, Refusal> {
    let mut tags = work_limits::tokenize_simfile(text)?;
    let text = repairs::repair_simfile_tags(format, &mut tags).map_or(Cow::Borrowed(text), Cow::Owned);
    work_limits::check_simfile(&tags)?;
    drop(tags);
    let parsed = match format {
        ChartFormat::Sm => parser::parse(text.as_bytes()),
        _ => ssc_parser::parse(text.as_bytes()),
    };
    let file = parsed.map_err(|error| Refusal::from_decoder(&error))?;
    let refused = file.skipped.iter().map(|message| Err(refused_by_parser(message)));
    let charts = file.charts.iter().map(|chart| {
        catch_panic(|| draft(decode_chart(&file, chart)?, names, is_stored))
            .map_err(|reason| RefusedChart { chart: name(chart), reason })
    });
    collect_charts(charts.chain(refused))
}

/// Parses the parser's message about a chart that it skipped, `chart 6: the reason`.
fn refused_by_parser(message: &str) -> RefusedChart {
    let (chart, reason) = message.split_once(": ").unwrap_or(("a chart", message));
    RefusedChart { chart: clean(chart), reason: Refusal::undecodable(reason) }
}

/// Step type and difficulty; for an edit, its description in place of the difficulty.
fn name(chart: &SmChart) -> String {
    excerpt(format!("{} {}", chart.stepstype, chart.label()).trim())
}

/// The decoded chart, if the decoder can produce it in bounded time and without an overflow.
fn decode_chart(file: &SmFile, chart: &SmChart) -> Result<RoxChart, Refusal> {
    if chart.notes.len() > 2 * MAX_NOTES {
        return Err(Refusal::LimitExceeded { what: "notes" });
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
