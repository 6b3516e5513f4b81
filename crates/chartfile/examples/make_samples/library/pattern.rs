//! Generates playable notes from pseudo-random numbers, reproducibly.

pub(crate) const ROWS_PER_BEAT: usize = 4;
pub(crate) const ROWS_PER_MEASURE: usize = 4 * ROWS_PER_BEAT;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tap,
    /// Over this number of rows.
    Long(usize),
    /// Over this number of rows. Only in simfiles.
    Roll(usize),
    /// Only in simfiles.
    Mine,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Note {
    /// From the start of the chart.
    pub(crate) row: usize,
    /// From 0.
    pub(crate) column: usize,
    pub(crate) kind: Kind,
}

/// Parameters of the notes of a chart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pattern {
    pub(crate) seed: u64,
    pub(crate) keys: usize,
    pub(crate) measures: usize,
    /// From one note to the next.
    pub(crate) step: usize,
    /// Number of long notes among ten notes.
    pub(crate) long_of_ten: u64,
    /// Number of chords among ten notes.
    pub(crate) chords_of_ten: u64,
    pub(crate) mines_and_rolls: bool,
}

impl Pattern {
    /// The notes, sorted by row and column.
    pub(crate) fn notes(self) -> Vec<Note> {
        let mut random = Random(self.seed);
        // For each column, the first row that is free again, after one row to release the key.
        let mut free_from = vec![0; self.keys];
        let mut notes = Vec::new();
        let last_row = self.measures * ROWS_PER_MEASURE;
        for row in (0..last_row).step_by(self.step) {
            let chord = 1 + usize::from(random.below(10) < self.chords_of_ten);
            for _ in 0..chord {
                let column = random.column(self.keys);
                if free_from[column] > row {
                    continue;
                }
                let kind = self.kind(&mut random, last_row - row);
                free_from[column] = row
                    + match kind {
                        Kind::Tap | Kind::Mine => 1,
                        Kind::Long(rows) | Kind::Roll(rows) => rows + 2,
                    };
                notes.push(Note { row, column, kind });
            }
        }
        notes.sort_by_key(|note| (note.row, note.column));
        notes
    }

    fn kind(self, random: &mut Random, rows_left: usize) -> Kind {
        let rows = 2 + random.column(6);
        let roll = self.mines_and_rolls && random.below(12) == 0;
        let mine = self.mines_and_rolls && random.below(8) == 0;
        if rows >= rows_left {
            Kind::Tap
        } else if roll {
            Kind::Roll(rows)
        } else if mine {
            Kind::Mine
        } else if random.below(10) < self.long_of_ten {
            Kind::Long(rows)
        } else {
            Kind::Tap
        }
    }
}

/// The linear congruential generator of Knuth's MMIX. Only its upper bits are used.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn column(&mut self, keys: usize) -> usize {
        (0..keys).nth(usize::try_from(self.below(keys as u64)).unwrap_or(0)).unwrap_or(0)
    }
}
