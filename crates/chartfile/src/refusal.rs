//! The reasons why a file, or one chart of it, is not indexed.

use std::error::Error as _;

use chart_index_domain::{ChartsetTooLarge, InvalidKeyCount};
use chart_index_rox::{InvalidChart, InvalidNotes, RoxError};
use serde::{Deserialize, Serialize};
use strum::{EnumDiscriminants, IntoStaticStr, VariantArray};

use crate::metadata::excerpt;

/// Why a chart file, one of its charts, an entry of an archive, or a chartset is not indexed. Ingest reports
/// show these texts, and the kinds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, EnumDiscriminants)]
#[strum_discriminants(
    name(RefusalKind),
    doc = "The kind of a [`Refusal`]. In JSON it is the name in snake case, such as `no_notes`.",
    derive(Serialize, Deserialize, IntoStaticStr, VariantArray),
    serde(rename_all = "snake_case"),
    strum(serialize_all = "snake_case")
)]
pub enum Refusal {
    /// The file exists and cannot be read: it is damaged, or the entry of an archive is encrypted or compressed
    /// with an unsupported method. Its content is unknown.
    #[error("cannot be read: {reason}")]
    Unreadable {
        /// The error of the operating system or of the ZIP reader.
        reason: String,
    },
    /// The chartset exceeds a limit.
    #[error(transparent)]
    ChartsetTooLarge(#[from] ChartsetTooLarge),
    /// The file is larger than [`MAX_FILE_BYTES`](crate::MAX_FILE_BYTES), or an archive in an archive than
    /// [`MAX_NESTED_ARCHIVE_BYTES`](crate::archive::MAX_NESTED_ARCHIVE_BYTES).
    #[error("larger than {limit} bytes")]
    FileTooLarge {
        /// The maximum number of bytes.
        limit: u64,
    },
    /// Decoding the file would take far more time or memory than any real chart file.
    #[error("decoding limit exceeded: {what}")]
    DecodingLimit {
        /// What there is too much of, in the plural.
        what: &'static str,
    },
    /// The file is a chart of another mode of the first game.
    #[error("unsupported game mode {mode} (only mode 3 is indexed)")]
    OtherGameMode {
        /// The `Mode` of the file; only 3 is indexed.
        mode: u8,
    },
    /// The file names a mode that its game does not have.
    #[error("unknown game mode {mode:?}")]
    UnknownGameMode {
        /// The mode as the file spells it, truncated.
        mode: String,
    },
    /// [`InvalidNotes::NoNotes`].
    #[error("no notes")]
    NoNotes,
    /// [`InvalidNotes::KeyCount`].
    #[error(transparent)]
    KeyCount(#[from] InvalidKeyCount),
    /// [`InvalidNotes::Column`].
    #[error("note in column {column} (from 0) of a chart with {keys} keys")]
    Column {
        /// The column, from 0.
        column: u8,
        /// The key count of the chart.
        keys: u8,
    },
    /// A note starts while a long note in the same column is held: no player can hit it.
    #[error("note inside a long note in column {column} (from 0) at {time_ms} ms")]
    NoteInsideLongNote {
        /// The column, from 0.
        column: u8,
        /// When the inner note starts, on the timeline of the file.
        time_ms: i64,
    },
    /// [`InvalidNotes::TimeOutOfRange`].
    #[error("time out of range")]
    TimeOutOfRange,
    /// The chart has no BPM.
    #[error("no BPM")]
    NoBpm,
    /// The game refuses to play the chart.
    #[error("not played by its game: {reason}")]
    NotPlayed {
        /// What its game refuses.
        reason: &'static str,
    },
    /// The game plays the chart, but the file does not say with which notes.
    #[error("notes not determined by the file: {what}")]
    Indeterminate {
        /// What the file leaves open.
        what: &'static str,
    },
    /// The file or the chart cannot be read.
    #[error("cannot be decoded: {reason}")]
    Undecodable {
        /// What is wrong, truncated.
        reason: String,
    },
    /// A reader panicked on this file, which is a bug.
    #[error("decoder panicked")]
    DecoderPanicked,
    /// Decoding the chart's ROX file gives another note hash or other numbers.
    #[error("ROX file does not reproduce the chart")]
    RoxMismatch,
    /// No chart of the file can be indexed.
    #[error("no indexable chart: {}", reasons(.refused))]
    NoChart {
        /// The charts of the file, each with its reason.
        refused: Vec<RefusedChart>,
    },
    /// The archive is damaged or not a ZIP archive.
    #[error("unreadable archive: {reason}")]
    UnreadableArchive {
        /// The error message of the ZIP reader, truncated.
        reason: String,
    },
    /// The archive, with the archives in it, has more entries than
    /// [`MAX_ENTRIES`](crate::archive::MAX_ENTRIES).
    #[error("archive has more than {limit} entries")]
    ArchiveEntries {
        /// The maximum number of entries.
        limit: usize,
    },
    /// The archive, with the archives in it, has more chart files than
    /// [`MAX_CHART_FILES`](crate::archive::MAX_CHART_FILES).
    #[error("archive has more than {limit} chart files")]
    ArchiveChartFiles {
        /// The maximum number of chart files.
        limit: usize,
    },
    /// The chart files of the archive are larger than
    /// [`MAX_ARCHIVE_CHART_BYTES`](crate::archive::MAX_ARCHIVE_CHART_BYTES) in total, or the archives in it
    /// than [`MAX_NESTED_BYTES`](crate::archive::MAX_NESTED_BYTES).
    #[error("archive has more than {limit} bytes of {what}")]
    ArchiveTooLarge {
        /// What it has too much of.
        what: &'static str,
        /// The maximum number of bytes.
        limit: u64,
    },
    /// The name of the entry leads out of the archive, has a drive letter, or is too long.
    #[error("unsafe path")]
    UnsafePath,
    /// The entry is a symbolic link, a device or the like.
    #[error("not a regular file")]
    NotAFile,
    /// An earlier entry of the archive has the same name.
    #[error("duplicate entry name")]
    DuplicateName,
    /// The entry is an archive in an archive that is in an archive itself.
    #[error("archive in an archive in an archive")]
    NestedArchive,
}

/// A chart that is not indexed although its file has others that are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedChart {
    /// Identifies the chart: its position in the file (`chart 6`), or its step type and difficulty
    /// (`dance-double Challenge`).
    pub chart: String,
    /// Why this chart is not indexed.
    pub reason: Refusal,
}

impl Refusal {
    pub(crate) fn from_invalid(error: &InvalidChart) -> Self {
        match error {
            InvalidChart::OverlappingNotes { column, time_us } => {
                Self::NoteInsideLongNote { column: *column, time_ms: time_us.div_euclid(1000) }
            }
            InvalidChart::InvalidColumn { column, key_count } => {
                InvalidNotes::Column { column: *column, keys: *key_count }.into()
            }
            InvalidChart::NoBpmTimingPoint => Self::NoBpm,
            other => Self::undecodable(&other.to_string()),
        }
    }

    pub(crate) fn from_rox(error: &RoxError) -> Self {
        match error {
            RoxError::Invalid(error) => Self::from_invalid(error),
            RoxError::LimitExceeded { what, .. } => Self::DecodingLimit { what },
            RoxError::TimeOutOfRange => InvalidNotes::TimeOutOfRange.into(),
            RoxError::Notes(error) => (*error).into(),
            other => Self::undecodable(&match other.source() {
                Some(cause) => format!("{other}: {cause}"),
                None => other.to_string(),
            }),
        }
    }

    pub(crate) fn undecodable(reason: &str) -> Self {
        Self::Undecodable { reason: excerpt(reason) }
    }

    /// Whether there may be charts in what was refused: its content is unknown.
    #[must_use]
    pub const fn is_unreadable(&self) -> bool {
        matches!(self, Self::Unreadable { .. } | Self::UnreadableArchive { .. })
    }
}

impl From<InvalidNotes> for Refusal {
    fn from(error: InvalidNotes) -> Self {
        match error {
            InvalidNotes::NoNotes => Self::NoNotes,
            InvalidNotes::KeyCount(error) => Self::KeyCount(error),
            InvalidNotes::Column { column, keys } => Self::Column { column, keys },
            InvalidNotes::TimeOutOfRange => Self::TimeOutOfRange,
        }
    }
}

/// The first reasons: a hostile file can have any number of charts.
fn reasons(refused: &[RefusedChart]) -> String {
    const SHOWN: usize = 8;
    if refused.is_empty() {
        return "the file has no charts".to_owned();
    }
    let mut parts: Vec<String> = refused
        .iter()
        .take(SHOWN)
        .map(|RefusedChart { chart, reason }| format!("{chart}: {reason}"))
        .collect();
    if refused.len() > SHOWN {
        parts.push(format!("and {} more", refused.len() - SHOWN));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn refusals_of_rox_files_have_their_causes() {
        let inner = InvalidChart::OverlappingNotes { column: 2, time_us: -1 };
        for (error, expected) in [
            (RoxError::Invalid(inner), "note inside a long note in column 2 (from 0) at -1 ms"),
            (RoxError::LimitExceeded { what: "tags", limit: 1 }, "decoding limit exceeded: tags"),
            (RoxError::TimeOutOfRange, "time out of range"),
            (RoxError::NotRox, "cannot be decoded: not a ROX file"),
            (
                RoxError::Decompress(io::Error::other("it is damaged")),
                "cannot be decoded: decompress the ROX file: it is damaged",
            ),
        ] {
            assert_eq!(Refusal::from_rox(&error).to_string(), expected);
        }
    }

    /// `tests/indexer/refusals.rs` goes through the page.
    #[test]
    fn every_kind_is_documented() {
        let page = include_str!("../../../docs/operations/ingest.md");
        let table = page.split_once("| `kind` |").unwrap().1.split_once("\n\n").unwrap().0;
        let rows = table.lines().filter_map(|row| row.strip_prefix("| `")?.split_once("` |"));
        let documented: Vec<&str> = rows.flat_map(|(kinds, _)| kinds.split("`, `")).collect();
        assert_eq!(documented.len(), RefusalKind::VARIANTS.len());
        for kind in RefusalKind::VARIANTS {
            assert!(documented.contains(&<&str>::from(kind)), "{kind:?}");
        }
    }

    #[test]
    fn names_are_the_same_in_reports_and_metrics() {
        for kind in RefusalKind::VARIANTS {
            assert_eq!(serde_json::json!(kind), <&str>::from(kind));
        }
    }
}
