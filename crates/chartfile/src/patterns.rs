//! Computes the patterns of a chart, version 1 (docs/formats/patterns.md).

use chart_index_domain::{Pattern, Patterns};
use chart_index_rox::{CanonicalNote, CanonicalNotes};

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

/// The patterns of a chart (docs/formats/patterns.md).
#[must_use]
pub fn patterns(chart: &CanonicalNotes) -> Patterns {
    let (notes, length_ms) = (chart.notes(), chart.length_ms());
    let mut rows = rows(notes);
    classify(&mut rows, chart.keys().get());
    let mut counts = Patterns::default().row_shares.map(u64::from);
    for class in rows.iter().filter_map(|row| row.class) {
        counts[class as usize] += 1;
    }
    let row_count = rows.len() as u64;
    let lns = notes.iter().filter(|note| note.end_ms.is_some()).count();
    let (rows_per_second_median, rows_per_second_p90) = rows_per_second(&rows, length_ms);
    Patterns {
        row_shares: counts.map(|count| percent(count, row_count)),
        ln_note_share: percent(lns as u64, notes.len() as u64),
        ln_time_share: percent(held_ms(notes), length_ms.into()),
        rows_per_second_median,
        rows_per_second_p90,
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
            set_class(window, Pattern::Longjack);
        }
    }
}

fn set_class(rows: &mut [Row], class: Pattern) {
    for row in rows {
        row.class = Some(class);
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
            set_class(window, pattern);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chart_index_domain::ANALYSIS_VERSION;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;
    use chart_index_rox::TimedNote;

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Golden {
        analysis_version: u8,
        vectors: Vec<Vector>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Vector {
        name: String,
        keys: u8,
        /// Start and column, and the end of a long note.
        notes: Vec<Vec<u32>>,
        /// Start and class.
        rows: Vec<(u32, Option<String>)>,
        /// Those that are not 0.
        shares: BTreeMap<String, u8>,
        ln_note_share: u8,
        ln_time_share: u8,
        rows_per_second_median: u16,
        rows_per_second_p90: u16,
    }

    fn canonical(keys: u8, notes: &[(u32, u8, Option<u32>)]) -> CanonicalNotes {
        let us = |time_ms| i64::from(time_ms) * 1000;
        let timed = notes.iter().map(|&(start_ms, column, end_ms)| TimedNote {
            start_us: us(start_ms),
            column,
            end_us: end_ms.map(us),
        });
        CanonicalNotes::new(keys, &timed.collect::<Vec<_>>()).unwrap()
    }

    fn classified(notes: &CanonicalNotes) -> Vec<Row> {
        let mut rows = rows(notes.notes());
        classify(&mut rows, notes.keys().get());
        rows
    }

    #[test]
    fn every_golden_vector_is_reproduced() {
        let golden: Golden = serde_json::from_str(include_str!("../golden/patterns_v1.json")).unwrap();
        assert_eq!(golden.analysis_version, ANALYSIS_VERSION);
        assert!(golden.vectors.len() > 50);
        for vector in golden.vectors {
            let name = &vector.name;
            let column = |note: &Vec<u32>| u8::try_from(note[1]).unwrap();
            let notes: Vec<_> =
                vector.notes.iter().map(|note| (note[0], column(note), note.get(2).copied())).collect();
            let notes = canonical(vector.keys, &notes);
            let class = |row: &Row| (row.start_ms, row.class.map(|class| class.as_str().to_owned()));
            assert_eq!(classified(&notes).iter().map(class).collect::<Vec<_>>(), vector.rows, "{name}");
            let mut expected = Patterns {
                ln_note_share: vector.ln_note_share,
                ln_time_share: vector.ln_time_share,
                rows_per_second_median: vector.rows_per_second_median * 100,
                rows_per_second_p90: vector.rows_per_second_p90 * 100,
                ..Patterns::default()
            };
            for (class, share) in vector.shares {
                expected.row_shares[class.parse::<Pattern>().unwrap() as usize] = share;
            }
            assert_eq!(patterns(&notes), expected, "{name}");
        }
    }

    /// The class of a row, as docs/formats/patterns.md says it: asks for each row what it is part of.
    fn class_by_definition(rows: &[Row], index: usize, keys: u8) -> Option<Pattern> {
        let size = |row: usize| rows[row].columns.count_ones();
        let gap = |row: usize| rows[row].start_ms - rows[row - 1].start_ms;
        let shared = |row: usize| rows[row].columns & rows[row - 1].columns;
        let is_fast = |row: usize| shared(row) == 0 && gap(row) <= 250;
        // Some `count` rows, this one among them, each of which after the first satisfies `follows`.
        let part_of = |count: usize, follows: &dyn Fn(usize, usize) -> bool| {
            (0..count).filter_map(|back| index.checked_sub(back)).any(|first| {
                first + count <= rows.len() && (first + 1..first + count).all(|row| follows(first, row))
            })
        };
        let is_longjack = (0..keys).any(|column| {
            part_of(5, &|first, row| {
                (rows[first].columns & shared(row)) >> column & 1 == 1 && gap(row) <= 340
            })
        });
        if is_longjack {
            return Some(Pattern::Longjack);
        }
        if index > 0 && shared(index) != 0 && gap(index) <= 340 {
            let is_chordjack = size(index) > 1 && size(index - 1) > 1;
            return Some(if is_chordjack { Pattern::Chordjack } else { Pattern::Jack });
        }
        let is_trill = |has_chord: bool| {
            part_of(6, &|first, row| {
                let same = row == first + 1 || rows[row].columns == rows[row - 2].columns;
                is_fast(row) && same && (size(first).max(size(first + 1)) > 1) == has_chord
            })
        };
        if is_trill(true) || is_trill(false) {
            return Some(if is_trill(true) { Pattern::Jumptrill } else { Pattern::Trill });
        }
        let first = (0..=index).rev().find(|&row| row == 0 || !is_fast(row)).unwrap();
        let end = (index + 1..rows.len()).find(|&row| !is_fast(row)).unwrap_or(rows.len());
        let last_of_window = index.max(first + 3);
        (end - first >= 5).then(|| match ((last_of_window - 3..=last_of_window).map(size).max(), keys) {
            (Some(1), _) => Pattern::Stream,
            (Some(2), 4) => Pattern::Jumpstream,
            (_, 4) => Pattern::Handstream,
            _ => Pattern::Chordstream,
        })
    }

    /// Notes that often repeat rows and alternate, at the limits of the gaps; chords may come apart.
    fn notes() -> impl Strategy<Value = (u8, Vec<(u32, u8, Option<u32>)>)> {
        let gap = prop_oneof![4 => 3_u32..120, 1 => 248_u32..253, 1 => 338_u32..343, 1 => 0_u32..4_000];
        // How many rows before has the same columns, if any.
        let shape = prop_oneof![(1_u8..128, Just(0_usize)), (Just(1), 1..4_usize)];
        let row = (gap, shape, 0..3_u32, option::weighted(0.2, 1..1_000_u32));
        (4_u8..=7, vec(row, 1..80)).prop_map(|(keys, rows)| {
            let (mut start_ms, mut notes, mut shapes) = (0, vec![(0, 0, None)], vec![1]);
            for (gap_ms, (columns, back), apart_ms, length_ms) in rows {
                let again = shapes.len().checked_sub(back).and_then(|index| shapes.get(index)).copied();
                let columns = again.unwrap_or(columns) & ((1 << keys) - 1);
                shapes.push(columns);
                start_ms += gap_ms;
                for column in (0..keys).filter(|column| columns >> column & 1 == 1) {
                    let start_ms = start_ms + apart_ms * u32::from(column % 2);
                    notes.push((start_ms, column, length_ms.map(|length_ms| start_ms + length_ms)));
                }
            }
            (keys, notes)
        })
    }

    proptest! {
        #[test]
        fn classes_are_those_of_the_definition((keys, notes) in notes()) {
            let rows = classified(&canonical(keys, &notes));
            for (index, row) in rows.iter().enumerate() {
                prop_assert_eq!(row.class, class_by_definition(&rows, index, keys), "row {}: {:?}", index, rows);
            }
        }

        #[test]
        fn shares_add_up_to_100_and_rounding((keys, notes) in notes()) {
            let patterns = patterns(&canonical(keys, &notes));
            let classes = patterns.row_shares.iter().filter(|share| **share > 0).count();
            let sum: usize = patterns.row_shares.iter().map(|share| usize::from(*share)).sum();
            prop_assert!(sum <= 100 + classes.div_ceil(2), "{:?}", patterns);
            prop_assert!(patterns.ln_note_share <= 100 && patterns.ln_time_share <= 100, "{:?}", patterns);
            prop_assert!(patterns.rows_per_second_median <= patterns.rows_per_second_p90, "{:?}", patterns);
        }

        #[test]
        fn any_times_have_patterns(times in vec((0..=u32::MAX, 0..7_u8, option::of(0..=u32::MAX)), 1..200)) {
            let patterns = patterns(&canonical(7, &times));
            prop_assert!(patterns.row_shares.iter().all(|share| *share <= 100));
        }
    }
}
