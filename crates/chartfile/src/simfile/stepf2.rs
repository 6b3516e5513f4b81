//! Notes with attributes, as `StepF2` and games derived from it write them: the one exception to the rules of
//! StepMania 5, which plays other notes there.
//!
//! The StepMania wiki describes the format, page "Note Types", section "`StepF2` Notes"
//! (<https://github.com/stepmania/stepmania/wiki/Note-Types#stepf2-notes>). In a chart with such a cell, a cell
//! is one character, or `{note|attribute|fake|reserved}`:
//!
//! - the attribute affects only how the note is displayed (`n` normal, `v` vanish, `s` sudden, `h` hidden);
//! - a note whose fake flag is `1` is not judged;
//! - the notes `S`, `V` and `H` are taps with a display attribute;
//! - the notes `X`, `Y` and `Z` (long notes: `x`, `y` and `z`) belong to charts for several players and are not
//!   supported, except for fake ones, which no one plays.

use crate::Refusal;

/// The maximum length of a cell in braces.
const MAX_BYTES: usize = 32;

/// Whether measures have a cell of this format.
pub(super) fn has_attributes(measures: &[u8]) -> bool {
    let mut starts = measures.iter().enumerate().filter(|(_, byte)| **byte == b'{');
    starts.any(|(start, _)| parts(&measures[start..]).is_some())
}

/// The plain note of the cell at the start of a row, and the length of the cell.
///
/// # Errors
/// The meaning of a cell in braces is unknown.
pub(super) fn read_cell(row: &[u8]) -> Result<(u8, usize), Refusal> {
    let unknown = || Refusal::undecodable("note attributes of an unknown kind");
    match row.first() {
        Some(b'{') => {}
        cell => return Ok((cell.map_or(b'0', |&cell| plain_tap(cell)), 1)),
    }
    let ([note, fake], length) = parts(row).ok_or_else(unknown)?;
    let plain = match (note.first().map(|&note| plain_tap(note)), fake) {
        _ if note.len() != 1 => None,
        // The flag of a long note's tail has no effect: that of its head decides whether it is judged.
        (tail_or_empty @ Some(b'0' | b'3'), b"0" | b"1") => tail_or_empty,
        (Some(b'1' | b'2' | b'4' | b'M' | b'L' | b'F' | b'X' | b'Y' | b'Z' | b'x' | b'y' | b'z'), b"1") => {
            Some(b'F')
        }
        (note @ Some(b'1' | b'2' | b'4' | b'M' | b'L' | b'F'), b"0") => note,
        _ => None,
    };
    plain.map(|note| (note, length)).ok_or_else(unknown)
}

/// Note and fake flag of a cell in braces, and the length of the cell.
fn parts(text: &[u8]) -> Option<([&[u8]; 2], usize)> {
    let inner = text.strip_prefix(b"{")?;
    let end = inner.iter().take(MAX_BYTES).position(|&byte| byte == b'}')?;
    let mut parts = inner[..end].split(|&byte| byte == b'|');
    let (note, _attribute, fake, _reserved) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    Some(([note, fake], end + 2))
}

/// A plain tap for a tap with a display attribute.
const fn plain_tap(note: u8) -> u8 {
    if matches!(note, b'S' | b'V' | b'H') { b'1' } else { note }
}
