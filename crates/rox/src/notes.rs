//! Computes the note hash, version 1: selects, orders and encodes the notes (docs/formats/note-hash.md).
//!
//! With times in microseconds, as the readers give them:
//!
//! 1. Mines and bursts (rolls) are ignored; every other note counts.
//! 2. `first` is the smallest start time. Start and end times are converted to milliseconds by
//!    `floor((time - first + 500) / 1000)`. They are made relative before they are rounded, so that shifting
//!    the whole chart does not change the hash. A long note whose end is then not after its start is a tap: no
//!    file with times in milliseconds can express it.
//! 3. Notes are sorted by start, column, kind, end.
//! 4. The hash is BLAKE3 over the key count as 1 byte; then, for each note, its start as little-endian `u32`,
//!    its column from 0 as 1 byte, its kind as 1 byte (0 for a tap, 1 for a long note), and for a long note its
//!    end as little-endian `u32`.
//!
//! An example, with 4 keys: a tap in column 0 at 1.000 s, and a long note in column 2 from 1.500 s to 2.000 s.
//!
//! ```text
//! 04                              4 keys
//! 00000000 00 00                  start    0 ms, column 0, tap
//! f4010000 02 01 e8030000         start  500 ms, column 2, long note, end 1000 ms
//! ```
//!
//! `crates/chartfile/golden/note_hash_v1.json` has test vectors for other implementations.

use chart_index_domain::{InvalidKeyCount, KeyCount, NoteHash, Rows};
use rox::{Note, NoteType, RoxChart};

/// Notes that have no note hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNotes {
    /// The chart has no playable note.
    #[error("no notes")]
    NoNotes,
    /// Charts with this number of keys are not indexed.
    #[error(transparent)]
    KeyCount(#[from] InvalidKeyCount),
    /// A note is in a column that the chart does not have.
    #[error("note in column {column} (from 0) of a chart with {keys} keys")]
    Column {
        /// The column, from 0.
        column: u8,
        /// The key count of the chart.
        keys: u8,
    },
    /// A time is not a number, or does not fit into `u32` milliseconds after the first note.
    #[error("time out of range")]
    TimeOutOfRange,
}

/// A note on the timeline of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedNote {
    /// Start in microseconds on the timeline of the file; may be negative.
    pub start_us: i64,
    /// Column, from 0.
    pub column: u8,
    /// End in microseconds, for a long note.
    pub end_us: Option<i64>,
}

/// A note with its times in milliseconds after the first note's start. Ordered as in the note hash: a tap,
/// which has no end, sorts before a long note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CanonicalNote {
    /// Start in milliseconds.
    pub start_ms: u32,
    /// Column, from 0.
    pub column: u8,
    /// End in milliseconds, for a long note.
    pub end_ms: Option<u32>,
}

/// The notes of a chart in the form that is hashed: at least one, sorted, with all columns below the key count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanonicalNotes {
    keys: KeyCount,
    notes: Vec<CanonicalNote>,
}

impl CanonicalNotes {
    /// The canonical form of notes in any order.
    ///
    /// # Errors
    /// The key count is not 4 to 7, there are no notes, a column is not below the key count, or a time does not
    /// fit into `u32` milliseconds.
    pub fn new(keys: u8, notes: &[TimedNote]) -> Result<Self, InvalidNotes> {
        let keys = KeyCount::try_from(keys)?;
        let first_us = notes.iter().map(|note| note.start_us).min().ok_or(InvalidNotes::NoNotes)?;
        let mut canonical = Vec::with_capacity(notes.len());
        for note in notes {
            if note.column >= keys.get() {
                return Err(InvalidNotes::Column { column: note.column, keys: keys.get() });
            }
            let start_ms = relative_ms(note.start_us, first_us)?;
            let end = note.end_us.filter(|end_us| *end_us > note.start_us);
            let end = end.map(|end_us| relative_ms(end_us, first_us)).transpose()?;
            let end_ms = end.filter(|end| *end > start_ms);
            canonical.push(CanonicalNote { start_ms, column: note.column, end_ms });
        }
        canonical.sort_unstable();
        Ok(Self { keys, notes: canonical })
    }

    /// The canonical form of a chart.
    ///
    /// # Errors
    /// See [`new`](Self::new).
    pub fn from_chart(chart: &RoxChart) -> Result<Self, InvalidNotes> {
        let mut notes = Vec::with_capacity(chart.notes.len());
        for note in &chart.notes {
            let end_us = match note.note_type {
                NoteType::Tap => None,
                NoteType::Hold { duration_us } => {
                    Some(note.time_us.checked_add(duration_us).ok_or(InvalidNotes::TimeOutOfRange)?)
                }
                NoteType::Burst { .. } | NoteType::Mine => continue,
            };
            notes.push(TimedNote { start_us: note.time_us, column: note.column, end_us });
        }
        Self::new(chart.key_count, &notes)
    }

    /// The starts of all notes of a chart, those of its rolls included, as taps; `None` without rolls.
    ///
    /// # Errors
    /// See [`new`](Self::new).
    #[must_use]
    pub fn starts_with_rolls(chart: &RoxChart) -> Option<Result<Self, InvalidNotes>> {
        let is_roll = |note: &Note| matches!(note.note_type, NoteType::Burst { .. });
        chart.notes.iter().any(is_roll).then(|| {
            let starts = chart.notes.iter().filter(|note| note.note_type != NoteType::Mine);
            let taps =
                starts.map(|note| TimedNote { start_us: note.time_us, column: note.column, end_us: None });
            Self::new(chart.key_count, &taps.collect::<Vec<_>>())
        })
    }

    /// The number of columns.
    #[must_use]
    pub fn keys(&self) -> KeyCount {
        self.keys
    }

    /// In the order in which they are hashed: by start, column, kind and end.
    #[must_use]
    pub fn notes(&self) -> &[CanonicalNote] {
        &self.notes
    }

    /// The rows of the chart, whose digest is its variant (docs/formats/variant.md).
    #[must_use]
    pub fn rows(&self) -> Rows {
        Rows::new(self.keys, self.notes.iter().map(|note| (note.start_ms, note.column)))
    }

    /// The time from the start of the first note to the end of the last, in milliseconds.
    #[must_use]
    pub fn length_ms(&self) -> u32 {
        self.notes.iter().map(|note| note.end_ms.unwrap_or(note.start_ms)).max().unwrap_or(0)
    }

    /// The input of the hash (docs/formats/note-hash.md).
    #[must_use]
    pub fn canonical_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1 + 10 * self.notes.len());
        bytes.push(self.keys.get());
        for note in &self.notes {
            bytes.extend_from_slice(&note.start_ms.to_le_bytes());
            bytes.push(note.column);
            bytes.push(u8::from(note.end_ms.is_some()));
            if let Some(end_ms) = note.end_ms {
                bytes.extend_from_slice(&end_ms.to_le_bytes());
            }
        }
        bytes
    }

    /// The BLAKE3 digest of [`canonical_bytes`](Self::canonical_bytes).
    #[must_use]
    pub fn hash(&self) -> NoteHash {
        NoteHash::from_bytes(*blake3::hash(&self.canonical_bytes()).as_bytes())
    }
}

/// A time in whole milliseconds after `first_us`, rounded half up.
fn relative_ms(time_us: i64, first_us: i64) -> Result<u32, InvalidNotes> {
    time_us
        .checked_sub(first_us)
        .and_then(|relative_us| relative_us.checked_add(500))
        .and_then(|rounded_us| u32::try_from(rounded_us.div_euclid(1000)).ok())
        .ok_or(InvalidNotes::TimeOutOfRange)
}
