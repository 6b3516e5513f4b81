//! The kinds of refusals, for reports and metrics.

use chart_index_chartfile::Refusal;
use chart_index_chartfile::archive::EntryError;
use serde::{Deserialize, Serialize};

/// Why a file, chart or chartset is not indexed, without details: a [`Refusal`], or one of the ingest itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

impl RefusalKind {
    /// All kinds, in the order of their numbers.
    pub(crate) const ALL: [Self; 24] = [
        Self::Unreadable,
        Self::ChartsetTooLarge,
        Self::FileTooLarge,
        Self::DecodingLimit,
        Self::OtherGameMode,
        Self::UnknownGameMode,
        Self::NoNotes,
        Self::KeyCount,
        Self::Column,
        Self::NoteInsideLongNote,
        Self::TimeOutOfRange,
        Self::NoBpm,
        Self::Undecodable,
        Self::DecoderPanicked,
        Self::RoxMismatch,
        Self::NoChart,
        Self::UnreadableArchive,
        Self::ArchiveEntries,
        Self::ArchiveChartFiles,
        Self::ArchiveTooLarge,
        Self::UnsafePath,
        Self::NotAFile,
        Self::DuplicateName,
        Self::NestedArchive,
    ];

    /// The name in reports and metrics.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::ChartsetTooLarge => "chartset_too_large",
            Self::FileTooLarge => "file_too_large",
            Self::DecodingLimit => "decoding_limit",
            Self::OtherGameMode => "other_game_mode",
            Self::UnknownGameMode => "unknown_game_mode",
            Self::NoNotes => "no_notes",
            Self::KeyCount => "key_count",
            Self::Column => "column",
            Self::NoteInsideLongNote => "note_inside_long_note",
            Self::TimeOutOfRange => "time_out_of_range",
            Self::NoBpm => "no_bpm",
            Self::Undecodable => "undecodable",
            Self::DecoderPanicked => "decoder_panicked",
            Self::RoxMismatch => "rox_mismatch",
            Self::NoChart => "no_chart",
            Self::UnreadableArchive => "unreadable_archive",
            Self::ArchiveEntries => "archive_entries",
            Self::ArchiveChartFiles => "archive_chart_files",
            Self::ArchiveTooLarge => "archive_too_large",
            Self::UnsafePath => "unsafe_path",
            Self::NotAFile => "not_a_file",
            Self::DuplicateName => "duplicate_name",
            Self::NestedArchive => "nested_archive",
        }
    }
}

impl From<&Refusal> for RefusalKind {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::TooLarge { .. } => Self::FileTooLarge,
            Refusal::LimitExceeded { .. } => Self::DecodingLimit,
            Refusal::OtherGameMode { .. } => Self::OtherGameMode,
            Refusal::UnknownMode { .. } => Self::UnknownGameMode,
            Refusal::NoNotes => Self::NoNotes,
            Refusal::KeyCount(_) => Self::KeyCount,
            Refusal::Column { .. } => Self::Column,
            Refusal::NoteInsideLongNote { .. } => Self::NoteInsideLongNote,
            Refusal::TimeOutOfRange => Self::TimeOutOfRange,
            Refusal::NoBpm => Self::NoBpm,
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

    #[test]
    fn names_are_the_same_in_reports_and_metrics() {
        for (number, kind) in RefusalKind::ALL.into_iter().enumerate() {
            assert_eq!((kind as usize, serde_json::json!(kind)), (number, kind.as_str().into()));
        }
    }
}
