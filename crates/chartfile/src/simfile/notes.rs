//! The notes of a chart: rows of cells in measures.
//!
//! The rules are those of `LoadFromSMNoteDataStringWithPlayer` (itgmania 5d4f9dcb, NoteDataUtil.cpp) and
//! `NoteData::IsHoldNoteAtRow` (NoteData.cpp).

use super::stepf2;
use super::timing::{MAX_ROW, row_of};
use crate::Refusal;
use crate::rox_file::MAX_NOTES;

/// The beats of a measure (`BEATS_PER_MEASURE` in NoteTypes.h).
const BEATS_PER_MEASURE: f32 = 4.0;

/// The maximum number of measures: those up to the last row.
const MAX_MEASURES: u32 = MAX_ROW.unsigned_abs() / 192;

/// What is in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Tap,
    LongNote,
    Roll,
    /// A mine or a fake note.
    Unplayed,
    /// Replaced by something that the notes around it do not see.
    Gone,
}

/// A note on its row.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowNote {
    pub(super) row: i32,
    pub(super) column: u8,
    pub(super) kind: Kind,
    /// The row of the end of a long note or roll, once it was read.
    pub(super) end_row: Option<i32>,
    /// The place of the note before in its column.
    previous: Option<usize>,
}

/// The notes of a chart in the order of their rows. Long notes without end are left out.
///
/// # Errors
/// There are more notes or measures than a chart may have, or notes with unknown attributes.
pub(super) fn read_notes(measures: &[u8], columns: u8, is_trimmed: bool) -> Result<Vec<RowNote>, Refusal> {
    let has_attributes = stepf2::has_attributes(measures);
    let mut notes = Notes { all: Vec::new(), last: vec![None; columns.into()], has_attributes };
    let mut lines: Vec<&[u8]> = Vec::new();
    let (mut measure, mut rest, mut is_start) = (0, measures, is_trimmed);
    while !rest.is_empty() {
        let is_empty;
        (is_empty, rest) = read_measure(rest, is_start, &mut lines);
        is_start = false;
        if is_empty {
            continue;
        }
        if measure == MAX_MEASURES {
            return Err(Refusal::DecodingLimit { what: "measures" });
        }
        notes.add_measure(measure, &lines)?;
        measure += 1;
    }
    let is_left = |note: &RowNote| match note.kind {
        Kind::LongNote | Kind::Roll => note.end_row.is_some(),
        Kind::Tap => true,
        Kind::Unplayed | Kind::Gone => false,
    };
    Ok(notes.all.into_iter().filter(is_left).collect())
}

/// Reads the lines with cells up to the next comma, without comments. Returns whether there is nothing at all
/// before it, in which case it does not end a measure, and the text after it. At the start of a text that the
/// game trims, blanks are nothing.
fn read_measure<'a>(text: &'a [u8], is_start: bool, lines: &mut Vec<&'a [u8]>) -> (bool, &'a [u8]) {
    lines.clear();
    let (mut start, mut at, mut is_empty) = (0, 0, true);
    loop {
        at += text[at..].iter().position(|byte| b",\n/".contains(byte)).unwrap_or(text.len() - at);
        let end = text.get(at).copied();
        let is_comment = end == Some(b'/') && text.get(at + 1) == Some(&b'/');
        if end == Some(b'/') && !is_comment {
            at += 1;
            continue;
        }
        let line = &text[start..at];
        let cells = trim(line);
        is_empty &= if is_start { cells.is_empty() } else { line.is_empty() && end != Some(b'\n') };
        if !cells.is_empty() {
            lines.push(cells);
        }
        if is_comment {
            at += text[at..].iter().position(|&byte| byte == b'\n').unwrap_or(text.len() - at);
            start = at;
            continue;
        }
        if end != Some(b'\n') {
            return (is_empty, text.get(at + 1..).unwrap_or_default());
        }
        at += 1;
        start = at;
    }
}

/// The game also trims NUL, with which its list of blanks ends.
fn trim(mut line: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\r' | b'\n' | 0, rest @ ..] = line {
        line = rest;
    }
    while let [rest @ .., b' ' | b'\t' | b'\r' | b'\n' | 0] = line {
        line = rest;
    }
    line
}

struct Notes {
    all: Vec<RowNote>,
    /// The place of the last note of each column.
    last: Vec<Option<usize>>,
    has_attributes: bool,
}

impl Notes {
    #[expect(clippy::cast_precision_loss, reason = "the game computes in single precision")]
    fn add_measure(&mut self, measure: u32, lines: &[&[u8]]) -> Result<(), Refusal> {
        for (index, line) in lines.iter().enumerate() {
            let part = index as f32 / lines.len() as f32;
            self.add_line(row_of((measure as f32 + part) * BEATS_PER_MEASURE), line)?;
        }
        Ok(())
    }

    /// Adds the cells of a line. Further cells than the chart has columns are ignored, and missing ones empty.
    fn add_line(&mut self, row: i32, mut line: &[u8]) -> Result<(), Refusal> {
        for column in 0..self.last.len() {
            let Some(&cell) = line.first() else { break };
            let (cell, length) = if self.has_attributes { stepf2::read_cell(line)? } else { (cell, 1) };
            line = after_keysound(&line[length..]);
            match cell {
                b'1' | b'L' => self.set(row, column, Kind::Tap)?,
                b'2' => self.set(row, column, Kind::LongNote)?,
                b'4' => self.set(row, column, Kind::Roll)?,
                b'M' | b'F' => self.set(row, column, Kind::Unplayed)?,
                // A keysound that plays by itself.
                b'K' => self.clear(row, column),
                b'3' => self.end_long_note(row, column),
                _ => {}
            }
        }
        Ok(())
    }

    /// Sets the note of a cell. Of two lines on one row the later note counts.
    fn set(&mut self, row: i32, column: usize, kind: Kind) -> Result<(), Refusal> {
        self.clear(row, column);
        if self.all.len() == 2 * MAX_NOTES {
            return Err(Refusal::DecodingLimit { what: "notes" });
        }
        let previous = self.last[column].replace(self.all.len());
        let column = u8::try_from(column).unwrap_or(u8::MAX);
        self.all.push(RowNote { row, column, kind, end_row: None, previous });
        Ok(())
    }

    /// Removes the note of a cell.
    fn clear(&mut self, row: i32, column: usize) {
        if let Some(note) = self.last[column].map(|last| &mut self.all[last])
            && note.row == row
        {
            note.kind = Kind::Gone;
            self.last[column] = note.previous;
        }
    }

    /// Ends the long note that is held: the note before in the column, if it is one without an end.
    fn end_long_note(&mut self, row: i32, column: usize) {
        let mut before = self.last[column].map(|last| &mut self.all[last]);
        if let Some(note) = &before
            && note.row == row
        {
            let previous = note.previous;
            before = previous.map(|previous| &mut self.all[previous]);
        }
        if let Some(note) = before
            && matches!(note.kind, Kind::LongNote | Kind::Roll)
            && note.end_row.is_none_or(|end| end == row)
        {
            note.end_row = Some(row);
        }
    }
}

/// The rest of a line after the number of a keysound, `[23]`, which is only played. One that is not closed
/// extends to the end of the line.
fn after_keysound(line: &[u8]) -> &[u8] {
    if line.first() != Some(&b'[') {
        return line;
    }
    let end = line.iter().position(|&byte| byte == b']');
    end.map_or(&[], |end| &line[end + 1..])
}
