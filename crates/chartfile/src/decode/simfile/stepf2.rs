//! Notes with attributes, as `StepF2` and the games derived from it write them.
//!
//! The format is described in the StepMania wiki, page "Note Types", section "`StepF2` Notes"
//! (<https://github.com/stepmania/stepmania/wiki/Note-Types#stepf2-notes>): a cell of a row is one character, or
//! `{note|attribute|fake|reserved}`. The attribute says how the note is shown (`n` normal, `v` vanish, `s` sudden,
//! `h` hidden) and does not change how it is played. With `1` as its fake flag the note is not judged. The notes
//! `S`, `V` and `H` are taps that are shown so. `X`, `Y` and `Z` belong to charts for several players.

use rox::formats::sm::msd::Tag;

/// Replaces the cells with attributes in the parameters of a `#NOTES` tag by plain ones, which the decoder reads.
/// Reports whether there were any.
///
/// A cell of which the meaning is not known is left as it is: the decoder then refuses the chart for the width of
/// that row.
pub(super) fn replace_attributes(notes: &mut Tag, first_measure: usize) -> bool {
    let mut replaced = false;
    for measures in notes.params.iter_mut().skip(first_measure).filter(|measures| measures.contains('{')) {
        if let Some(plain) = plain(measures) {
            *measures = plain;
            replaced = true;
        }
    }
    replaced
}

/// The measures without attributes; `None` where no cell has any.
fn plain(measures: &str) -> Option<String> {
    let mut replaced = false;
    let mut text = String::with_capacity(measures.len());
    let mut rest = measures;
    while let Some(character) = rest.chars().next() {
        let cell = if character == '{' { cell_with_attributes(rest) } else { None };
        replaced |= cell.is_some();
        let (note, length) =
            cell.unwrap_or_else(|| (tap_of(character).unwrap_or(character), character.len_utf8()));
        text.push(note);
        rest = &rest[length..];
    }
    replaced.then_some(text)
}

/// The plain note of the cell that `text` begins with, and the length of that cell. With its four parts it is wider
/// than any row that the decoder reads, so a chart that has such a cell is not read without this.
fn cell_with_attributes(text: &str) -> Option<(char, usize)> {
    const LONGEST: usize = 32;
    let end = text.bytes().take(LONGEST).position(|byte| byte == b'}')?;
    let mut parts = text.get(1..end)?.split('|');
    let (note, _attribute, fake, _reserved) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let mut characters = note.chars();
    let (note, None) = (characters.next()?, characters.next()) else { return None };
    let plain = match (tap_of(note).unwrap_or(note), fake) {
        // The end of a long note has no meaning of its own: whether it is played is decided by the head.
        (end_or_empty @ ('0' | '3'), "0" | "1") => end_or_empty,
        ('1' | '2' | '4' | 'M' | 'L' | 'F', "1") => 'F',
        (note @ ('1' | '2' | '4' | 'M' | 'L' | 'F'), "0") => note,
        _ => return None,
    };
    Some((plain, end + 1))
}

/// A tap, where the character is one that only differs in how it is shown.
fn tap_of(character: char) -> Option<char> {
    matches!(character, 'S' | 'V' | 'H').then_some('1')
}
