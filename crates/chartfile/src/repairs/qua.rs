//! Repairs of `.qua` files: values that the game accepts and the decoder does not.

use std::borrow::Cow;

use rox::formats::qua::types::QuaChart;

use crate::Refusal;
use crate::metadata::excerpt;

/// The text of a `.qua` file after [`repair_text`].
pub(crate) struct RepairedText<'a> {
    pub(crate) text: Cow<'a, str>,
    /// The key count, if the decoder has no mode for it.
    pub(crate) keys: Option<u8>,
}

/// Rewrites time signatures given as numbers, and modes other than 4 and 7 keys. Refuses a mode that the game
/// does not have.
pub(crate) fn repair_text(text: &str) -> Result<RepairedText<'_>, Refusal> {
    if !text.contains("Signature:") && !text.contains("Mode:") {
        return Ok(RepairedText { text: Cow::Borrowed(text), keys: None });
    }
    let mut keys = None;
    let mut repaired = String::with_capacity(text.len() + 1024);
    for line in text.split_inclusive('\n') {
        let body = line.trim_end();
        let line_ending = &line[body.len()..];
        if let Some((before, beats)) = split_number(body, "Signature:") {
            // The format names only 3 and 4. The signature affects nothing but the displayed bar lines.
            repaired.push_str(before);
            repaired.push_str(if beats == 3 { " Triple" } else { " Quadruple" });
            repaired.push_str(line_ending);
        } else if let Some(mode) = body.strip_prefix("Mode:").map(str::trim)
            && mode.strip_prefix("Keys").is_some_and(|number| number.parse::<u32>().is_ok())
            && !matches!(mode, "Keys4" | "Keys7")
        {
            keys = Some(keys_of_mode(mode)?);
            repaired.push_str("Mode: Keys7");
            repaired.push_str(line_ending);
        } else {
            repaired.push_str(line);
        }
    }
    Ok(RepairedText { text: Cow::Owned(repaired), keys })
}

/// The key count of a mode of the game, which has `Keys1` to `Keys10`.
fn keys_of_mode(mode: &str) -> Result<u8, Refusal> {
    (1..=10)
        .find(|keys| mode.strip_prefix("Keys").is_some_and(|number| number == keys.to_string()))
        .ok_or_else(|| Refusal::UnknownMode { mode: excerpt(mode) })
}

/// Splits `- Signature: 4` after the colon: the text up to it, and the number.
fn split_number<'a>(line: &'a str, key: &str) -> Option<(&'a str, u32)> {
    let start = line.len() - line.trim_start_matches([' ', '-']).len();
    let value = line[start..].strip_prefix(key)?;
    let number = value.trim().parse().ok()?;
    Some((&line[..line.len() - value.len()], number))
}

/// Removes end times of 0 or less, which is how the game writes a tap.
pub(crate) fn remove_empty_end_times(qua: &mut QuaChart) {
    for note in &mut qua.hit_objects {
        note.end_time = note.end_time.filter(|&end| end > 0.0);
    }
}
