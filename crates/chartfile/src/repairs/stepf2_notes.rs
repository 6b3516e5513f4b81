//! Notes with attributes, as `StepF2` and games derived from it write them.
//!
//! The StepMania wiki describes the format, page "Note Types", section "`StepF2` Notes"
//! (<https://github.com/stepmania/stepmania/wiki/Note-Types#stepf2-notes>). A cell of a row is one character,
//! or `{note|attribute|fake|reserved}`:
//!
//! - the attribute affects only how the note is displayed (`n` normal, `v` vanish, `s` sudden, `h` hidden);
//! - a note whose fake flag is `1` is not judged;
//! - the notes `S`, `V` and `H` are taps with a display attribute;
//! - the notes `X`, `Y` and `Z` (long notes: `x`, `y` and `z`) belong to charts for several players and are not
//!   supported, except for fake ones, which no one plays.

use rox::formats::sm::msd::Tag;

/// Replaces cells with attributes by plain ones in the parameters of a `#NOTES` tag from `first_measure` on.
/// Reports whether there were any.
///
/// A cell whose meaning is unknown is left unchanged: the decoder then rejects the chart because the row is too
/// wide.
pub(super) fn replace_attributes(notes: &mut Tag, first_measure: usize) -> bool {
    let mut replaced = false;
    for measures in notes.params.iter_mut().skip(first_measure).filter(|measures| measures.contains('{')) {
        if let Some(plain) = plain_measures(measures) {
            *measures = plain;
            replaced = true;
        }
    }
    replaced
}

/// The measures without attributes; `None` if no cell has any.
fn plain_measures(measures: &str) -> Option<String> {
    let mut replaced = false;
    let mut text = String::with_capacity(measures.len());
    let mut rest = measures;
    while let Some(character) = rest.chars().next() {
        let cell = if character == '{' { parse_cell(rest) } else { None };
        replaced |= cell.is_some();
        let (note, length) =
            cell.unwrap_or_else(|| (plain_tap(character).unwrap_or(character), character.len_utf8()));
        text.push(note);
        rest = &rest[length..];
    }
    replaced.then_some(text)
}

/// The plain note of the cell at the start of `text`, and the length of the cell in bytes. A cell with its four
/// parts is wider than any row that the decoder accepts, so a chart that has one is never decoded without this
/// repair.
fn parse_cell(text: &str) -> Option<(char, usize)> {
    const MAX_BYTES: usize = 32;
    let end = text.bytes().take(MAX_BYTES).position(|byte| byte == b'}')?;
    let mut parts = text.get(1..end)?.split('|');
    let (note, _attribute, fake, _reserved) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let mut characters = note.chars();
    let (note, None) = (characters.next()?, characters.next()) else { return None };
    let plain = match (plain_tap(note).unwrap_or(note), fake) {
        // The flag of a long note's tail has no effect: that of its head decides whether it is judged.
        (tail_or_empty @ ('0' | '3'), "0" | "1") => tail_or_empty,
        ('1' | '2' | '4' | 'M' | 'L' | 'F' | 'X' | 'Y' | 'Z' | 'x' | 'y' | 'z', "1") => 'F',
        (note @ ('1' | '2' | '4' | 'M' | 'L' | 'F'), "0") => note,
        _ => return None,
    };
    Some((plain, end + 1))
}

/// A plain tap for a tap with a display attribute.
fn plain_tap(character: char) -> Option<char> {
    matches!(character, 'S' | 'V' | 'H').then_some('1')
}
