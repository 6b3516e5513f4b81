//! `.qua`: one chart, as YAML.

use std::borrow::Cow;

use rox::RoxChart;
use rox::formats::qua::decoder::from_qua;
use rox::formats::qua::parser;
use rox::formats::qua::types::QuaChart;

use super::budget;
use crate::Refusal;
use crate::text::split_tags;

/// The latest time, either way, that is read: more than a century, in milliseconds. Beyond it the decoder's
/// arithmetic overflows.
const MAX_TIME_MS: f64 = 4e12;

/// The chart of the file, before mending and checking.
pub(super) fn read(text: &str) -> Result<RoxChart, Refusal> {
    budget::check_yaml(text)?;
    let mended = mend_lines(text);
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
/// number, and modes other than 4 and 7 keys.
fn mend_lines(text: &str) -> MendedLines<'_> {
    if !text.contains("Signature:") && !text.contains("Mode:") {
        return MendedLines { text: Cow::Borrowed(text), keys: None };
    }
    let mut keys = None;
    let mut mended = String::with_capacity(text.len() + 1024);
    for line in text.split_inclusive('\n') {
        let body = line.trim_end();
        let ending = &line[body.len()..];
        if let Some((before, beats)) = split_number(body, "Signature:", "") {
            // Only 3 and 4 have a name in the format; the signature decides nothing but the bar lines shown.
            mended.push_str(before);
            mended.push_str(if beats == 3 { " Triple" } else { " Quadruple" });
            mended.push_str(ending);
        } else if let Some((before, count)) = split_number(body, "Mode:", "Keys")
            && !matches!(count, 4 | 7)
            && before == "Mode:"
        {
            keys = u8::try_from(count).ok();
            mended.push_str("Mode: Keys7");
            mended.push_str(ending);
        } else {
            mended.push_str(line);
        }
    }
    MendedLines { text: Cow::Owned(mended), keys }
}

/// Splits `- Signature: 4` into the part up to the colon and the number.
fn split_number<'a>(line: &'a str, key: &str, prefix: &str) -> Option<(&'a str, u32)> {
    let start = line.len() - line.trim_start_matches([' ', '-']).len();
    let value = line[start..].strip_prefix(key)?;
    let number = value.trim().strip_prefix(prefix)?.parse().ok()?;
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
