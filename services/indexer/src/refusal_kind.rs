//! The kinds of refusals, for reports and metrics.

use chart_index_chartfile::archive::EntryError;
use chart_index_chartfile::{InvalidNotes, Refusal};
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// Why a file, chart or chartset is not indexed, without details: a [`Refusal`], or one of the ingest itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(const_into_str, serialize_all = "snake_case")]
pub(crate) enum RefusalKind {
    /// The file exists and cannot be read.
    Unreadable,
    /// The chartset exceeds a limit.
    ChartsetTooLarge,
    FileTooLarge,
    DecodingLimit,
    OtherGameMode,
    UnknownGameMode,
    NoNotes,
    KeyCount,
    Column,
    NoteInsideLongNote,
    TimeOutOfRange,
    NoBpm,
    NotPlayed,
    Indeterminate,
    Undecodable,
    DecoderPanicked,
    RoxMismatch,
    NoChart,
    UnreadableArchive,
    ArchiveEntries,
    ArchiveChartFiles,
    ArchiveTooLarge,
    UnsafePath,
    NotAFile,
    DuplicateName,
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
            assert!(documented.contains(&kind.into_str()), "{kind:?}");
        }
    }

    #[test]
    fn names_are_the_same_in_reports_and_metrics() {
        for kind in RefusalKind::VARIANTS {
            assert_eq!(serde_json::json!(kind), kind.into_str());
        }
    }
}
