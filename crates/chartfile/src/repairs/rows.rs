//! Rows of notes with more or fewer cells than the chart has columns, and keysounds within rows.
//!
//! The rules are those of StepMania 5 (commit d55acb1), `LoadFromSMNoteDataStringWithPlayer` in
//! `src/NoteDataUtil.cpp`: a cell may be followed by the number of a keysound, `1[23]`, which is only played;
//! cells beyond the last column are ignored, and columns beyond the last cell are empty.
//!
//! A chart of which at least half of the rows have another width is not repaired. It is a chart of another step
//! type, of which the game would play a part. Neither is one with cells in braces that [`super::stepf2_notes`]
//! does not know.

use rox::formats::sm::msd::Tag;

/// Gives every row of a `#NOTES` tag, in the parameters from `first_measure` on, as many cells as the chart has
/// columns. Reports whether anything changed. A chart with rows of the right width only is left unchanged.
pub(super) fn repair_widths(notes: &mut Tag, first_measure: usize, columns: u8) -> bool {
    let columns = usize::from(columns);
    // Measures with a colon are in several parameters, and no row has a colon.
    let Some([measures]) = notes.params.get_mut(first_measure..) else { return false };
    if measures.contains('{') || rows(measures).all(|row| row.chars().count() == columns) {
        return false;
    }
    let plain: String = measures.split_inclusive(SEPARATORS).map(without_keysounds).collect();
    let (mut all, mut wrong) = (0_usize, 0_usize);
    for row in rows(&plain) {
        all += 1;
        wrong += usize::from(row.chars().count() != columns);
    }
    if 2 * wrong >= all {
        return false;
    }
    *measures = plain.split_inclusive(SEPARATORS).map(|line| resized(line, columns)).collect();
    true
}

/// What ends a row. A comma also ends a measure.
const SEPARATORS: [char; 2] = [',', '\n'];

fn rows(measures: &str) -> impl Iterator<Item = &str> {
    measures.split(SEPARATORS).map(str::trim).filter(|row| !row.is_empty())
}

/// A line without the keysounds of its cells. One that is not closed extends to the end of the line.
fn without_keysounds(line: &str) -> String {
    let mut in_keysound = false;
    let mut plain = String::with_capacity(line.len());
    for character in line.chars() {
        match character {
            '[' => in_keysound = true,
            ']' if in_keysound => in_keysound = false,
            _ if !in_keysound || SEPARATORS.contains(&character) => plain.push(character),
            _ => {}
        }
    }
    plain
}

/// A line whose row, if it has one, has `columns` cells.
fn resized(line: &str, columns: usize) -> String {
    let row = line.trim_end_matches(SEPARATORS);
    let (cells, separator) = (row.trim(), &line[row.len()..]);
    if cells.is_empty() {
        return line.to_owned();
    }
    let cells: String = cells.chars().chain(std::iter::repeat('0')).take(columns).collect();
    cells + separator
}
