//! The kinds of refusals, for reports and metrics.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::archive::EntryError;
use crate::{InvalidNotes, Refusal};

/// Why a file, chart or chartset is not indexed, without details: a [`Refusal`], or one of the ingest itself.
/// In JSON it is the name in snake case, such as `no_notes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RefusalKind {
    /// The file exists and cannot be read.
    Unreadable,
    /// The chartset exceeds a limit.
    ChartsetTooLarge,
    /// [`Refusal::TooLarge`].
    FileTooLarge,
    /// [`Refusal::LimitExceeded`].
    DecodingLimit,
    /// [`Refusal::OtherGameMode`].
    OtherGameMode,
    /// [`Refusal::UnknownMode`].
    UnknownGameMode,
    /// [`InvalidNotes::NoNotes`].
    NoNotes,
    /// [`InvalidNotes::KeyCount`].
    KeyCount,
    /// [`InvalidNotes::Column`].
    Column,
    /// [`Refusal::NoteInsideLongNote`].
    NoteInsideLongNote,
    /// [`InvalidNotes::TimeOutOfRange`].
    TimeOutOfRange,
    /// [`Refusal::NoBpm`].
    NoBpm,
    /// [`Refusal::NotPlayed`].
    NotPlayed,
    /// [`Refusal::Indeterminate`].
    Indeterminate,
    /// [`Refusal::Undecodable`].
    Undecodable,
    /// [`Refusal::DecoderPanicked`].
    DecoderPanicked,
    /// [`Refusal::RoxMismatch`].
    RoxMismatch,
    /// [`Refusal::NoChart`].
    NoChart,
    /// [`Refusal::UnreadableArchive`].
    UnreadableArchive,
    /// [`Refusal::TooManyEntries`].
    ArchiveEntries,
    /// [`Refusal::TooManyChartFiles`].
    ArchiveChartFiles,
    /// [`Refusal::ArchiveTooLarge`].
    ArchiveTooLarge,
    /// [`Refusal::UnsafePath`].
    UnsafePath,
    /// [`Refusal::NotAFile`].
    NotAFile,
    /// [`Refusal::DuplicateName`].
    DuplicateName,
    /// [`Refusal::NestedArchive`].
    NestedArchive,
}

impl From<&Refusal> for RefusalKind {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::TooLarge { .. } => Self::FileTooLarge,
            Refusal::LimitExceeded { .. } => Self::DecodingLimit,
            Refusal::OtherGameMode { .. } => Self::OtherGameMode,
            Refusal::UnknownMode { .. } => Self::UnknownGameMode,
            Refusal::Notes(InvalidNotes::NoNotes) => Self::NoNotes,
            Refusal::Notes(InvalidNotes::KeyCount(_)) => Self::KeyCount,
            Refusal::Notes(InvalidNotes::Column { .. }) => Self::Column,
            Refusal::Notes(InvalidNotes::TimeOutOfRange) => Self::TimeOutOfRange,
            Refusal::NoteInsideLongNote { .. } => Self::NoteInsideLongNote,
            Refusal::NoBpm => Self::NoBpm,
            Refusal::NotPlayed { .. } => Self::NotPlayed,
            Refusal::Indeterminate { .. } => Self::Indeterminate,
            Refusal::Undecodable { .. } => Self::Undecodable,
            Refusal::DecoderPanicked => Self::DecoderPanicked,
            Refusal::RoxMismatch => Self::RoxMismatch,
            Refusal::NoChart { .. } => Self::NoChart,
            Refusal::UnreadableArchive { .. } => Self::UnreadableArchive,
            Refusal::TooManyEntries { .. } => Self::ArchiveEntries,
            Refusal::TooManyChartFiles { .. } => Self::ArchiveChartFiles,
            Refusal::ArchiveTooLarge { .. } => Self::ArchiveTooLarge,
            Refusal::UnsafePath => Self::UnsafePath,
            Refusal::NotAFile => Self::NotAFile,
            Refusal::DuplicateName => Self::DuplicateName,
            Refusal::NestedArchive => Self::NestedArchive,
        }
    }
}

impl From<&EntryError> for RefusalKind {
    fn from(error: &EntryError) -> Self {
        match error {
            EntryError::Refused(refusal) => Self::from(refusal),
            EntryError::Unreadable { .. } => Self::Unreadable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
