//! Why a file, or one chart of it, is not indexed.

use chart_index_domain::InvalidKeyCount;
use rox::RoxError;

use crate::SkippedChart;
use crate::metadata::excerpt;

/// Why a file, a chart of a file, or an entry of an archive is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The file is larger than any chart.
    #[error("larger than {limit} bytes")]
    TooLarge {
        /// The most that is read.
        limit: u64,
    },
    /// The file would keep the decoder busy, or fill its memory, far beyond what a chart does.
    #[error("too much work for one file: {what}")]
    TooMuchWork {
        /// What there is too much of.
        what: &'static str,
    },
    /// The file is a chart of another mode of the first game.
    #[error("another game mode ({mode}, where the index holds mode 3)")]
    OtherGameMode {
        /// The number of the mode.
        mode: u8,
    },
    /// The file is a chart of a mode that is not known.
    #[error("unknown game mode {mode:?}")]
    UnknownMode {
        /// The mode as the file has it, shortened.
        mode: String,
    },
    /// The chart has no note that is played.
    #[error("no notes")]
    NoNotes,
    /// The index does not hold charts of this key count.
    #[error(transparent)]
    KeyCount(#[from] InvalidKeyCount),
    /// A note lies outside the chart's columns.
    #[error("note in column {column} of a chart with {keys} keys")]
    Column {
        /// The column, from 0.
        column: u8,
        /// The chart's key count.
        keys: u8,
    },
    /// A note lies on a long note of the same column, which no player could press.
    #[error("note inside a long note in column {column} at {time_ms} ms")]
    NoteInsideLongNote {
        /// The column, from 0.
        column: u8,
        /// Start of the note inside, in the time of the file.
        time_ms: i64,
    },
    /// A time is not a number, or too far from the first note to be written in milliseconds.
    #[error("a time is out of range")]
    TimeOutOfRange,
    /// The chart has no tempo.
    #[error("no BPM")]
    NoBpm,
    /// The decoder could not make a chart of it.
    #[error("not readable: {reason}")]
    Unreadable {
        /// The decoder's words, shortened.
        reason: String,
    },
    /// The decoder panicked. The file is at fault until a person has looked at it.
    #[error("the decoder panicked")]
    DecoderPanicked,
    /// The ROX file made from the chart does not give the chart's own hash and numbers back.
    #[error("the ROX file differs from the chart")]
    RoxDiffers,
    /// The file has no chart that can be indexed.
    #[error("no chart: {}", reasons(.skipped))]
    NoChart {
        /// Its charts, and why each is left out.
        skipped: Vec<SkippedChart>,
    },
    /// The archive is damaged, or of a kind that is not read.
    #[error("not a readable archive: {reason}")]
    UnreadableArchive {
        /// The reader's words, shortened.
        reason: String,
    },
    /// The archive holds more entries than a pack does.
    #[error("archive of more than {limit} entries")]
    TooManyEntries {
        /// The most that is read.
        limit: usize,
    },
    /// The archive holds more chart files than a pack does.
    #[error("archive of more than {limit} chart files")]
    TooManyChartFiles {
        /// The most that is read.
        limit: usize,
    },
    /// The chart files of the archive are larger than those of any pack.
    #[error("archive of more than {limit} bytes of chart files")]
    ArchiveTooLarge {
        /// The most that is read.
        limit: u64,
    },
    /// The name of the entry leads out of the archive, or is no path at all.
    #[error("not a path inside the archive")]
    UnsafePath,
    /// The entry is a symbolic link or another thing that is no file.
    #[error("not a regular file")]
    NotAFile,
    /// An earlier entry of the archive has the same name.
    #[error("a second entry of the same name")]
    DuplicateName,
    /// The entry is an archive itself.
    #[error("archive inside an archive")]
    NestedArchive,
}

impl Refusal {
    /// What the decoder says, in the words of the index.
    pub(crate) fn from_decoder(error: &RoxError) -> Self {
        match error {
            RoxError::OverlappingNotes { column, time_us } => {
                Self::NoteInsideLongNote { column: *column, time_ms: time_us.div_euclid(1000) }
            }
            RoxError::InvalidColumn { column, key_count } => {
                Self::Column { column: *column, keys: *key_count }
            }
            RoxError::NoBpmTimingPoint => Self::NoBpm,
            other => Self::unreadable(&other.to_string()),
        }
    }

    pub(crate) fn unreadable(reason: &str) -> Self {
        Self::Unreadable { reason: excerpt(reason) }
    }
}

/// The first reasons of a list that a hostile file can make long.
fn reasons(skipped: &[SkippedChart]) -> String {
    const SHOWN: usize = 8;
    if skipped.is_empty() {
        return "none in the file".to_owned();
    }
    let mut parts: Vec<String> =
        skipped.iter().take(SHOWN).map(|skipped| format!("{}: {}", skipped.chart, skipped.reason)).collect();
    if skipped.len() > SHOWN {
        parts.push(format!("and {} more", skipped.len() - SHOWN));
    }
    parts.join("; ")
}
