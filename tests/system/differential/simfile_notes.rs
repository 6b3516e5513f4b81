//! The notes of generated simfiles.

use chart_index_tests::Random;

/// Constructs in the notes that a reader may treat differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extras {
    /// `K` in a hold, which is no note.
    KeysoundsInHolds,
    /// Letters that are no note.
    UnknownCells,
    /// Rows with more cells than columns.
    WideRows,
    /// Blank lines inside a measure.
    BlankLines,
    /// Nothing between two commas.
    EmptyMeasures,
    /// Measures of more than 192 lines, of which several are on one row.
    ManyLines,
    /// `1[12]`.
    KeysoundIndexes,
    /// `//` after rows and on lines of their own.
    Comments,
}

const USUAL_SIZES: [usize; 9] = [4, 8, 12, 16, 24, 32, 48, 64, 192];
const ODD_SIZES: [usize; 12] = [1, 2, 3, 5, 6, 7, 9, 10, 20, 28, 100, 128];
const LARGE_SIZES: [usize; 4] = [200, 256, 300, 384];

/// The measures of a chart, as lines.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(crate) keys: u8,
    pub(crate) measures: Vec<Vec<String>>,
}

/// A cell that is not `0`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) row: i64,
    pub(crate) column: usize,
    pub(crate) kind: char,
}

impl Cells {
    pub(crate) fn generate(random: &mut Random, keys: u8, extras: Option<Extras>) -> Self {
        let mut held = vec![false; usize::from(keys)];
        let count = 1 + random.below(8);
        let mut measures = Vec::new();
        for _ in 0..count {
            if extras == Some(Extras::EmptyMeasures) && random.one_in(3) {
                measures.push(Vec::new());
            }
            // A measure of blanks counts.
            if random.one_in(if measures.is_empty() { 60 } else { 12 }) {
                measures.push(vec![" ".to_owned()]);
            }
            let size = match random.below(4) {
                0 if extras == Some(Extras::ManyLines) => *random.pick(&LARGE_SIZES),
                0 | 1 => *random.pick(&ODD_SIZES),
                _ => *random.pick(&USUAL_SIZES),
            };
            measures.push(measure(random, size, &mut held, extras));
        }
        // Most holds that are still open end here.
        if held.contains(&true) && !random.one_in(8) {
            let last = held.iter().map(|held| if *held { '3' } else { '0' }).collect();
            measures.push(vec![last]);
        }
        Self { keys, measures }
    }

    /// Writes them as the value of `#NOTES`.
    pub(crate) fn write(&self, text: &mut String) {
        for (index, measure) in self.measures.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            if !measure.is_empty() {
                text.push('\n');
                text.push_str(&measure.join("\n"));
                text.push('\n');
            }
        }
    }

    /// The cells that are not `0`, on the rows of the game, in the order of the file.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "few lines")]
    pub(crate) fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for (index, measure) in self.measures.iter().filter(|measure| !measure.is_empty()).enumerate() {
            let lines: Vec<String> = measure.iter().map(plain).filter(|line| !line.is_empty()).collect();
            for (line_index, line) in lines.iter().enumerate() {
                let part = line_index as f32 / lines.len() as f32;
                let row = ((index as f32 + part) * 4.0 * 48.0).round_ties_even() as i64;
                let kinds = line.chars().enumerate().filter(|(_, kind)| *kind != '0');
                cells.extend(kinds.map(|(column, kind)| Cell { row, column, kind }));
            }
        }
        cells
    }
}

/// A line without its comment and without indexes of keysounds.
#[expect(clippy::ptr_arg, reason = "the items of an iterator")]
fn plain(line: &String) -> String {
    let cells = line.split("//").next().unwrap_or_default().trim();
    cells.split('[').map(|part| part.split_once(']').map_or(part, |(_, rest)| rest)).collect()
}

fn measure(random: &mut Random, size: usize, held: &mut [bool], extras: Option<Extras>) -> Vec<String> {
    // At most one row in `gap` has notes.
    let gap = if size > 64 { 6 } else { 2 };
    let mut lines = Vec::new();
    for _ in 0..size {
        let is_empty = !random.one_in(gap);
        let line = |held: &mut bool| if is_empty { "0".to_owned() } else { cell(random, held, extras) };
        let mut line: String = held.iter_mut().map(line).collect();
        if extras == Some(Extras::WideRows) && random.one_in(2) {
            line.push_str("10");
        }
        if extras == Some(Extras::Comments) && random.one_in(8) {
            line.push_str(" // 0110");
        }
        lines.push(line);
        if extras == Some(Extras::BlankLines) && random.one_in(16) {
            lines.push(String::new());
        }
        if extras == Some(Extras::Comments) && random.one_in(32) {
            lines.push("// 1111".to_owned());
        }
    }
    lines
}

/// A cell. Tails of holds are missing in one of 30 cases, and heads.
fn cell(random: &mut Random, held: &mut bool, extras: Option<Extras>) -> String {
    let kind = if *held { held_cell(random, extras) } else { free_cell(random, extras) };
    *held = match kind {
        '2' | '4' => true,
        '0' | 'K' => *held,
        _ => false,
    };
    if extras == Some(Extras::KeysoundIndexes) && kind != '0' && random.one_in(4) {
        return format!("{kind}[{}]", random.below(20));
    }
    kind.to_string()
}

fn held_cell(random: &mut Random, extras: Option<Extras>) -> char {
    match random.below(60) {
        0 => '2',
        1 => *random.pick(&['1', 'M', 'L', 'F', '4']),
        2 | 3 if extras == Some(Extras::KeysoundsInHolds) => 'K',
        2..20 => '3',
        _ => '0',
    }
}

fn free_cell(random: &mut Random, extras: Option<Extras>) -> char {
    match random.below(60) {
        0 => '3',
        1 if extras == Some(Extras::UnknownCells) => *random.pick(&['m', '5', 'Z', 'A', 'k']),
        1..16 => '1',
        16..20 => '2',
        20 => '4',
        21 | 22 => 'M',
        23 => *random.pick(&['L', 'F', 'K']),
        _ => '0',
    }
}
