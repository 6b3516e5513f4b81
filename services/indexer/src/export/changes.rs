//! The changes of an increment.

use anyhow::{Context, Result};
use chart_index_domain::{ChartsetId, ChartsetRecord, ExportedFile, FileDigest, NoteHash};
use chart_index_store::{ExportSnapshot, FeedChange, FeedEntity, FeedEntry, PageEnd};
use serde::{Deserialize, Serialize};

use super::output::Lines;

/// A change in the file `changes.ndjson.zst`, and in a page of the change feed
/// (docs/formats/change-feed.md, "Change").
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangeLine {
    pub(crate) sequence: u64,
    #[serde(skip_deserializing)]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chart_hash: Option<NoteHash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<ChartsetId>,
    pub(crate) change: ChangeName,
    pub(crate) changed_at_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chartset: Option<ChartsetRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rox_blake3: Option<FileDigest>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) by_operator: bool,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ChangeName {
    Added,
    Updated,
    Removed,
}

impl From<FeedEntry> for ChangeLine {
    fn from(entry: FeedEntry) -> Self {
        let (kind, chart_hash, id, chartset) = match entry.entity {
            FeedEntity::Chart(hash) => ("chart", Some(hash), None, None),
            FeedEntity::Chartset(id, record) => ("chartset", None, Some(id), record),
        };
        let change = match entry.change {
            FeedChange::Added => ChangeName::Added,
            FeedChange::Updated => ChangeName::Updated,
            FeedChange::Removed => ChangeName::Removed,
        };
        let FeedEntry { sequence, changed_at_ms, replacement: rox_blake3, is_removal: by_operator, .. } =
            entry;
        Self { sequence, kind, chart_hash, id, change, changed_at_ms, chartset, rox_blake3, by_operator }
    }
}

/// The file of the changes, and what it contains.
pub(super) struct WrittenChanges {
    pub(super) file: ExportedFile,
    pub(super) changes: u64,
    /// The number of changes with a record.
    pub(super) chartsets: u64,
    /// The sequence of the last change, or the one after which there is none.
    pub(super) sequence: u64,
}

/// Writes the changes after a sequence in their order, up to the first chartset that has a change without a
/// sequence.
pub(super) async fn write(
    snapshot: &mut ExportSnapshot,
    mut lines: Lines,
    since: u64,
) -> Result<WrittenChanges> {
    let (mut changes, mut chartsets, mut sequence) = (0, 0, since);
    loop {
        let page = snapshot.changes_after(sequence).await?;
        let page =
            page.with_context(|| format!("changes after {since} were lost: write a complete export"))?;
        for entry in page.entries {
            let line = ChangeLine::from(entry);
            changes += 1;
            chartsets += u64::from(line.chartset.is_some());
            sequence = line.sequence;
            lines.write(&line)?;
        }
        if page.end != PageEnd::Full {
            return Ok(WrittenChanges { file: lines.finish()?, changes, chartsets, sequence });
        }
    }
}
