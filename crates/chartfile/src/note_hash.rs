//! The note hash, version 1: which notes count, in which order, and the bytes that are hashed.
//!
//! The rule, complete (times in microseconds, as the decoder gives them):
//!
//! 1. Mines and bursts (rolls) do not count. Every other note does.
//! 2. `first` is the smallest start time. A time in milliseconds is `floor((time - first + 500) / 1000)`, for
//!    starts and for ends: relative first, then rounded, so that moving the whole chart changes nothing.
//! 3. The notes are ordered by start, column, kind, end.
//! 4. Hashed with BLAKE3 are: the key count as 1 byte; then for each note its start as `u32` little-endian, its
//!    column from 0 as 1 byte, its kind as 1 byte (0 a tap, 1 a long note), and for a long note its end as `u32`
//!    little-endian.
//!
//! `golden/note_hash_v1.json` beside this crate's sources holds examples for whoever implements it anew.

use chart_index_domain::{KeyCount, NoteHash};
use rox::{NoteType, RoxChart};

use crate::Refusal;

/// One note that counts, in the time of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedNote {
    /// Start in microseconds.
    pub start_us: i64,
    /// Column, from 0.
    pub column: u8,
    /// End in microseconds, for a long note.
    pub end_us: Option<i64>,
}

/// One note in milliseconds from the first. Ordered as the hash orders notes: a tap, which has no end, comes
/// before a long note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CanonicalNote {
    /// Start.
    pub start_ms: u32,
    /// Column, from 0.
    pub column: u8,
    /// End, for a long note.
    pub end_ms: Option<u32>,
}

/// The notes of a chart as they are hashed: at least one, sorted, all within the key count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanonicalNotes {
    keys: KeyCount,
    notes: Vec<CanonicalNote>,
}

impl CanonicalNotes {
    /// The canonical form of notes in any order.
    ///
    /// Refuses a key count outside 4 to 7, no notes, a column outside the key count, and a time that does not
    /// fit `u32` milliseconds.
    pub fn new(keys: u8, notes: &[TimedNote]) -> Result<Self, Refusal> {
        let keys = KeyCount::try_from(keys)?;
        let first_us = notes.iter().map(|note| note.start_us).min().ok_or(Refusal::NoNotes)?;
        let mut canonical = Vec::with_capacity(notes.len());
        for note in notes {
            if note.column >= keys.get() {
                return Err(Refusal::Column { column: note.column, keys: keys.get() });
            }
            canonical.push(CanonicalNote {
                start_ms: relative_ms(note.start_us, first_us)?,
                column: note.column,
                end_ms: note.end_us.map(|end_us| relative_ms(end_us, first_us)).transpose()?,
            });
        }
        canonical.sort_unstable();
        Ok(Self { keys, notes: canonical })
    }

    /// The canonical form of a decoded chart.
    pub(crate) fn of(chart: &RoxChart) -> Result<Self, Refusal> {
        let mut notes = Vec::with_capacity(chart.notes.len());
        for note in &chart.notes {
            let end_us = match note.note_type {
                NoteType::Tap => None,
                NoteType::Hold { duration_us } => {
                    Some(note.time_us.checked_add(duration_us).ok_or(Refusal::TimeOutOfRange)?)
                }
                NoteType::Burst { .. } | NoteType::Mine => continue,
            };
            notes.push(TimedNote { start_us: note.time_us, column: note.column, end_us });
        }
        Self::new(chart.key_count, &notes)
    }

    /// The key count.
    #[must_use]
    pub fn keys(&self) -> KeyCount {
        self.keys
    }

    /// The notes, sorted.
    #[must_use]
    pub fn notes(&self) -> &[CanonicalNote] {
        &self.notes
    }

    /// The end of the last note in milliseconds from the start of the first.
    #[must_use]
    pub fn length_ms(&self) -> u32 {
        self.notes.iter().map(|note| note.end_ms.unwrap_or(note.start_ms)).max().unwrap_or(0)
    }

    /// The bytes that are hashed.
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

    /// The note hash.
    #[must_use]
    pub fn hash(&self) -> NoteHash {
        NoteHash::from_bytes(*blake3::hash(&self.canonical_bytes()).as_bytes())
    }
}

/// A time in whole milliseconds after `first_us`, rounded half up.
fn relative_ms(time_us: i64, first_us: i64) -> Result<u32, Refusal> {
    time_us
        .checked_sub(first_us)
        .and_then(|relative_us| relative_us.checked_add(500))
        .and_then(|rounded_us| u32::try_from(rounded_us.div_euclid(1000)).ok())
        .ok_or(Refusal::TimeOutOfRange)
}
