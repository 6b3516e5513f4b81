//! `.qua`: one chart, as YAML.

use std::borrow::Cow;

use rox::RoxChart;
use rox::formats::qua::decoder::from_qua;
use rox::formats::qua::parser;
use rox::formats::qua::types::QuaChart;

use super::work_limits;
use crate::Refusal;
use crate::metadata::{excerpt, split_tags};

/// The latest time, either way, that is read: more than a century, in milliseconds. Beyond it the decoder's
/// arithmetic overflows.
const MAX_TIME_MS: f64 = 4e12;

/// The chart of the file, before mending and checking.
pub(super) fn read(text: &str) -> Result<RoxChart, Refusal> {
    work_limits::check_yaml(text)?;
    let mended = mend_lines(text)?;
    let mut qua = parser::parse(mended.text.as_bytes()).map_err(|error| Refusal::from_decoder(&error))?;
    mend_notes(&mut qua)?;
    let mut chart = from_qua(&qua);
    if let Some(keys) = mended.keys {
        chart.key_count = keys;
    }
    // Read as words by the decoder, while the game's own editor writes a list with commas.
    chart.metadata.tags = split_tags(qua.tags.as_deref().unwrap_or("")).map(Into::into).collect();
    Ok(chart)
}

struct MendedLines<'a> {
    text: Cow<'a, str>,
    /// The key count, where the decoder has no name for it.
    keys: Option<u8>,
}

/// Rewrites the values that the game accepts and the decoder has no word for: a time signature written as a
/// number, and modes other than 4 and 7 keys. Refuses a mode that the game does not have.
fn mend_lines(text: &str) -> Result<MendedLines<'_>, Refusal> {
    if !text.contains("Signature:") && !text.contains("Mode:") {
        return Ok(MendedLines { text: Cow::Borrowed(text), keys: None });
    }
    let mut keys = None;
    let mut mended = String::with_capacity(text.len() + 1024);
    for line in text.split_inclusive('\n') {
        let body = line.trim_end();
        let ending = &line[body.len()..];
        if let Some((before, beats)) = split_number(body, "Signature:") {
            // Only 3 and 4 have a name in the format; the signature decides nothing but the bar lines shown.
            mended.push_str(before);
            mended.push_str(if beats == 3 { " Triple" } else { " Quadruple" });
            mended.push_str(ending);
        } else if let Some(mode) = body.strip_prefix("Mode:").map(str::trim)
            && mode.strip_prefix("Keys").is_some_and(|number| number.parse::<u32>().is_ok())
            && !matches!(mode, "Keys4" | "Keys7")
        {
            keys = Some(keys_of(mode)?);
            mended.push_str("Mode: Keys7");
            mended.push_str(ending);
        } else {
            mended.push_str(line);
        }
    }
    Ok(MendedLines { text: Cow::Owned(mended), keys })
}

/// The key count of a mode of the game, which has `Keys1` to `Keys10`.
fn keys_of(mode: &str) -> Result<u8, Refusal> {
    (1..=10)
        .find(|keys| mode.strip_prefix("Keys").is_some_and(|number| number == keys.to_string()))
        .ok_or_else(|| Refusal::UnknownMode { mode: excerpt(mode) })
}

/// Splits `- Signature: 4` into the part up to the colon and the number.
fn split_number<'a>(line: &'a str, key: &str) -> Option<(&'a str, u32)> {
    let start = line.len() - line.trim_start_matches([' ', '-']).len();
    let value = line[start..].strip_prefix(key)?;
    let number = value.trim().parse().ok()?;
    Some((&line[..line.len() - value.len()], number))
}

/// An end that is not above 0 is how the game writes "no end". Refuses times that the decoder cannot compute
/// with.
fn mend_notes(qua: &mut QuaChart) -> Result<(), Refusal> {
    for note in &mut qua.hit_objects {
        note.end_time = note.end_time.filter(|&end| end > 0.0);
        if [Some(note.start_time), note.end_time]
            .into_iter()
            .flatten()
            .any(|time| !time.is_finite() || time.abs() > MAX_TIME_MS)
        {
            return Err(Refusal::TimeOutOfRange);
        }
    }
    Ok(())
}
