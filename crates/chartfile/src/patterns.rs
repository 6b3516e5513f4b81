//! Computes the patterns of a chart, version 1 (docs/formats/patterns.md).

use chart_index_domain::{Pattern, Patterns};

use crate::note_hash::{CanonicalNote, CanonicalNotes};

/// A note joins the current row if it starts at most this much after the first note of the row.
const ROW_MS: u32 = 2;
/// A column repeats if the next row with it starts at most this much later.
const REPEAT_MS: u32 = 340;
/// Rows are fast if each starts at most this much after the one before.
const FAST_MS: u32 = 250;
/// The least number of rows of each.
const LONGJACK_ROWS: usize = 5;
const TRILL_ROWS: usize = 6;
const RUN_ROWS: usize = 5;
/// The number of rows whose largest chord gives a row of a run its class.
const CHORD_WINDOW: usize = 4;
const SECOND_MS: u32 = 1000;

/// Notes that start together.
#[derive(Debug, Clone, Copy)]
struct Row {
    start_ms: u32,
    /// Bit c is set if a note starts in column c.
    columns: u8,
    class: Option<Pattern>,
}

impl Row {
    fn is_chord(self) -> bool {
        self.columns.count_ones() > 1
    }

    /// Whether this row has a column of the row before it soon after.
    fn repeats(self, before: Self) -> bool {
        self.columns & before.columns != 0 && self.start_ms - before.start_ms <= REPEAT_MS
    }

    /// Whether this row follows the row before it in a run.
    fn runs_on(self, before: Self) -> bool {
        self.columns & before.columns == 0 && self.start_ms - before.start_ms <= FAST_MS
    }
}

impl CanonicalNotes {
    /// The patterns of the chart (docs/formats/patterns.md).
    #[must_use]
    pub fn patterns(&self) -> Patterns {
        let mut rows = rows(self.notes());
        classify(&mut rows, self.keys().get());
        let mut counts = Patterns::default().row_shares.map(u64::from);
        for class in rows.iter().filter_map(|row| row.class) {
            counts[class as usize] += 1;
        }
        let (row_count, length_ms) = (rows.len() as u64, self.length_ms());
        let lns = self.notes().iter().filter(|note| note.end_ms.is_some()).count();
        let (rows_per_second_median, rows_per_second_p90) = rows_per_second(&rows, length_ms);
        Patterns {
            row_shares: counts.map(|count| percent(count, row_count)),
            ln_note_share: percent(lns as u64, self.notes().len() as u64),
            ln_time_share: percent(held_ms(self.notes()), length_ms.into()),
            rows_per_second_median,
            rows_per_second_p90,
        }
    }
}

/// Groups notes, which are in the order of their starts.
fn rows(notes: &[CanonicalNote]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::with_capacity(notes.len());
    for note in notes {
        let column = 1 << note.column;
        match rows.last_mut() {
            Some(row) if note.start_ms - row.start_ms <= ROW_MS => row.columns |= column,
            _ => rows.push(Row { start_ms: note.start_ms, columns: column, class: None }),
        }
    }
    rows
}

/// Sets the class of each row. Each step overwrites those before it: the last one has precedence.
fn classify(rows: &mut [Row], keys: u8) {
    for run in rows.chunk_by_mut(|before, row| row.runs_on(*before)) {
        if run.len() >= RUN_ROWS {
            classify_run(run, keys);
        }
        for pattern in [Pattern::Trill, Pattern::Jumptrill] {
            classify_trills(run, pattern);
        }
    }
    for index in 1..rows.len() {
        let (before, row) = (rows[index - 1], &mut rows[index]);
        if row.repeats(before) {
            let is_chordjack = row.is_chord() && before.is_chord();
            row.class = Some(if is_chordjack { Pattern::Chordjack } else { Pattern::Jack });
        }
    }
    for start in 0..(rows.len() + 1).saturating_sub(LONGJACK_ROWS) {
        let window = &mut rows[start..start + LONGJACK_ROWS];
        let repeated = window.iter().fold(u8::MAX, |columns, row| columns & row.columns);
        if repeated != 0 && window.windows(2).all(|rows| rows[1].repeats(rows[0])) {
            window.iter_mut().for_each(|row| row.class = Some(Pattern::Longjack));
        }
    }
}

/// Each row by the largest chord of four: itself and the three before it, or the first four of the run.
fn classify_run(run: &mut [Row], keys: u8) {
    for index in 0..run.len() {
        let start = (index + 1).saturating_sub(CHORD_WINDOW);
        let window = &run[start..start + CHORD_WINDOW];
        let largest = window.iter().map(|row| row.columns.count_ones()).max();
        run[index].class = Some(match largest {
            Some(0 | 1) | None => Pattern::Stream,
            Some(_) if keys > 4 => Pattern::Chordstream,
            Some(2) => Pattern::Jumpstream,
            Some(_) => Pattern::Handstream,
        });
    }
}

/// The rows of a run that alternate between two shapes, of which one is a chord in a jumptrill and none in a
/// trill.
fn classify_trills(run: &mut [Row], pattern: Pattern) {
    for start in 0..(run.len() + 1).saturating_sub(TRILL_ROWS) {
        let window = &mut run[start..start + TRILL_ROWS];
        let is_jumptrill = window[0].is_chord() || window[1].is_chord();
        let alternates = (2..TRILL_ROWS).all(|index| window[index].columns == window[index - 2].columns);
        if alternates && is_jumptrill == (pattern == Pattern::Jumptrill) {
            window.iter_mut().for_each(|row| row.class = Some(pattern));
        }
    }
}

/// How long at least one long note is held, in milliseconds.
fn held_ms(notes: &[CanonicalNote]) -> u64 {
    let (mut held_ms, mut until_ms) = (0, 0);
    for note in notes {
        if let Some(end_ms) = note.end_ms.filter(|end_ms| *end_ms > until_ms) {
            held_ms += u64::from(end_ms - note.start_ms.max(until_ms));
            until_ms = end_ms;
        }
    }
    held_ms
}

/// The median and the 90th percentile, by nearest rank, of the rows that start in each whole second of the
/// chart, in hundredths. A chart that is shorter than a second has one second.
fn rows_per_second(rows: &[Row], length_ms: u32) -> (u16, u16) {
    let seconds = (length_ms / SECOND_MS).max(1) as usize;
    let second = |row: &Row| row.start_ms / SECOND_MS;
    let mut counts: Vec<usize> = rows
        .chunk_by(|before, row| second(before) == second(row))
        .filter(|chunk| (second(&chunk[0]) as usize) < seconds)
        .map(<[Row]>::len)
        .collect();
    counts.sort_unstable();
    // Seconds without rows come first and are not in `counts`: there may be millions.
    let empty = seconds - counts.len();
    let percentile = |percent: usize| {
        let rank = (seconds * percent).div_ceil(100);
        let count = rank.checked_sub(empty + 1).and_then(|index| counts.get(index)).unwrap_or(&0);
        u16::try_from(count * 100).unwrap_or(u16::MAX)
    };
    (percentile(50), percentile(90))
}

/// A share in whole percent, rounded half up; 0 of nothing.
fn percent(part: u64, whole: u64) -> u8 {
    let rounded = (200 * part + whole).checked_div(2 * whole).unwrap_or(0);
    u8::try_from(rounded).unwrap_or(u8::MAX)
}
