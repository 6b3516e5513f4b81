//! Decodes `.qua` files: one chart, as YAML.

use rox::RoxChart;
use rox::formats::qua::decoder::from_qua;
use rox::formats::qua::parser;
use rox::formats::qua::types::QuaChart;

use super::work_limits;
use crate::Refusal;
use crate::metadata::split_tags;
use crate::repairs::{self, RepairedText};

/// The limit for times, negative ones included: more than a century, in milliseconds. Beyond it the decoder's
/// arithmetic overflows.
const MAX_TIME_MS: f64 = 4e12;

/// The chart of the file, before validation.
pub(super) fn decode(text: &str) -> Result<RoxChart, Refusal> {
    work_limits::check_yaml(text)?;
    let RepairedText { text, keys } = repairs::repair_qua_text(text)?;
    let mut qua = parser::parse(text.as_bytes()).map_err(|error| Refusal::from_decoder(&error))?;
    repairs::remove_empty_end_times(&mut qua);
    check_times(&qua)?;
    let mut chart = from_qua(&qua);
    if let Some(keys) = keys {
        chart.key_count = keys;
    }
    // The decoder splits tags at spaces only.
    chart.metadata.tags = split_tags(qua.tags.as_deref().unwrap_or("")).map(Into::into).collect();
    Ok(chart)
}

fn check_times(qua: &QuaChart) -> Result<(), Refusal> {
    let in_range = |time: f64| time.is_finite() && time.abs() <= MAX_TIME_MS;
    let mut notes = qua.hit_objects.iter();
    if notes.all(|note| in_range(note.start_time) && note.end_time.is_none_or(in_range)) {
        Ok(())
    } else {
        Err(Refusal::TimeOutOfRange)
    }
}
