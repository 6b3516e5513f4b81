//! Limits for the size of a chartset.
//!
//! A chartset is read, stored, indexed and sent as a whole, so its size determines the memory and time of all
//! of these. The limits are several times above the largest published sets. A chartset beyond a limit is
//! refused entirely: indexed in part, it would appear as a different set.

use std::collections::HashSet;

use crate::{ChartMetadata, ChartsetDraft};

/// The maximum number of charts. The largest published sets, of practice charts, have about 100.
pub const MAX_CHARTS: usize = 512;

/// The maximum number of chart files. The second game may have each chart in two files, one for its older
/// versions.
pub const MAX_CHART_FILES: usize = 2 * MAX_CHARTS;

/// The maximum total size of the chart files in bytes: 64 MiB. The file of a long chart has 200 KB, one with a
/// storyboard a few MB.
pub const MAX_CHART_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The maximum number of distinct creators, whose names lists join to one string. Collaborations have about 20.
pub const MAX_CREATORS: usize = 64;

/// The maximum number of distinct tags. A chart has up to about 150; charts of the same set share most of them.
pub const MAX_TAGS: usize = 1_024;

/// The maximum total size of the metadata of all charts in bytes: 1 MiB. A chart has 1 to 2 KB, most of it
/// tags.
pub const MAX_METADATA_BYTES: usize = 1024 * 1024;

/// A chartset exceeds one of the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("chartset too large: {count} {what} (limit {limit})")]
pub struct ChartsetTooLarge {
    /// What was counted, in the plural.
    pub what: &'static str,
    /// The count. Counting may stop early.
    pub count: u64,
    /// The maximum count.
    pub limit: u64,
}

impl ChartsetTooLarge {
    /// Checks a count against a limit.
    ///
    /// # Errors
    /// The count exceeds the limit.
    pub const fn check(what: &'static str, count: u64, limit: u64) -> Result<(), Self> {
        if count > limit { Err(Self { what, count, limit }) } else { Ok(()) }
    }
}

impl ChartsetDraft {
    /// Checks the charts and their metadata against the limits.
    ///
    /// # Errors
    /// The first limit that the draft exceeds.
    pub fn check_limits(&self) -> Result<(), ChartsetTooLarge> {
        let all_metadata = || self.charts.iter().map(|chart| &chart.metadata);
        let creators: HashSet<&String> = all_metadata().map(|metadata| &metadata.creator).collect();
        let tags: HashSet<&String> = all_metadata().flat_map(|metadata| &metadata.tags).collect();
        for (what, count, limit) in [
            ("charts", self.charts.len(), MAX_CHARTS),
            ("creators", creators.len(), MAX_CREATORS),
            ("tags", tags.len(), MAX_TAGS),
            ("bytes of metadata", all_metadata().map(metadata_bytes).sum(), MAX_METADATA_BYTES),
        ] {
            ChartsetTooLarge::check(what, count as u64, limit as u64)?;
        }
        Ok(())
    }
}

fn metadata_bytes(metadata: &ChartMetadata) -> usize {
    let names = [&metadata.title, &metadata.artist, &metadata.creator, &metadata.difficulty];
    let romanised = [&metadata.title_romanised, &metadata.artist_romanised].into_iter().flatten();
    names.into_iter().chain(romanised).chain(&metadata.tags).map(String::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChartDraft, ChartNumbers, ChartsetId, FileAliases, NoteHash};

    fn draft(charts: usize, metadata: impl Fn(usize) -> ChartMetadata) -> ChartsetDraft {
        let chart = |number: usize| ChartDraft {
            hash: NoteHash::from_bytes([u8::try_from(number % 256).unwrap(); 32]),
            numbers: ChartNumbers::default(),
            variant: None,
            analysis: None,
            rox: None,
            curve: None,
            metadata: metadata(number),
            declared_source: None,
            alpha_beatmap_id: None,
            aliases: FileAliases::default(),
        };
        let charts = (0..charts).map(chart).collect();
        ChartsetDraft { id: ChartsetId::from_bytes([1; 8]), path: String::new(), exact_source: None, charts }
    }

    fn with_creator(number: usize) -> ChartMetadata {
        ChartMetadata { creator: number.to_string(), ..ChartMetadata::default() }
    }

    fn with_tags(count: usize) -> impl Fn(usize) -> ChartMetadata {
        move |_| ChartMetadata {
            tags: (0..count).map(|tag| tag.to_string()).collect(),
            ..ChartMetadata::default()
        }
    }

    fn with_title(bytes: usize) -> impl Fn(usize) -> ChartMetadata {
        move |_| ChartMetadata { title: "x".repeat(bytes), ..ChartMetadata::default() }
    }

    #[test]
    fn drafts_above_a_limit_are_refused() {
        let same = |_| ChartMetadata::default();
        for (allowed, refused, what) in [
            (draft(MAX_CHARTS, same), draft(MAX_CHARTS + 1, same), "charts"),
            (draft(MAX_CREATORS, with_creator), draft(MAX_CREATORS + 1, with_creator), "creators"),
            (draft(2, with_tags(MAX_TAGS)), draft(2, with_tags(MAX_TAGS + 1)), "tags"),
            (
                draft(2, with_title(MAX_METADATA_BYTES / 2)),
                draft(2, with_title(MAX_METADATA_BYTES / 2 + 1)),
                "bytes of metadata",
            ),
        ] {
            assert_eq!(allowed.check_limits(), Ok(()), "{what}");
            assert_eq!(refused.check_limits().unwrap_err().what, what);
        }
    }

    #[test]
    fn error_names_count_and_limit() {
        let reason = draft(513, |_| ChartMetadata::default()).check_limits().unwrap_err().to_string();
        assert_eq!(reason, "chartset too large: 513 charts (limit 512)");
    }
}
