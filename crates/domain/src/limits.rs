//! How large a chartset may be.
//!
//! A chartset is read, stored, indexed and sent as a whole, so its size bounds the memory and the time of each of
//! those. The limits lie several times above the largest published sets; a set beyond one is refused as a whole,
//! since a part of it would be another set.

use std::collections::HashSet;

use crate::{ChartMetadata, ChartsetDraft};

/// The most charts of a chartset. Sets of practice charts, the largest that are published, have about 100.
pub const MAX_CHARTS: usize = 512;

/// The most chart files of a chartset: the second game keeps a chart in two files, one for older versions of it.
pub const MAX_CHART_FILES: usize = 2 * MAX_CHARTS;

/// The most bytes of chart files of a chartset: 64 MiB. A file of a long chart has 200 KB, one with a storyboard
/// a few MB.
pub const MAX_CHART_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The most distinct creators of a chartset. Collaborations name about 20; all creators are one text in lists.
pub const MAX_CREATORS: usize = 64;

/// The most distinct tags of a chartset. A chart has up to about 150, and those of one set share most of them.
pub const MAX_TAGS: usize = 1_024;

/// The most bytes of text of a chartset, that of all its charts together: 1 MiB. A chart has 1 to 2 KB, most of
/// it tags.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// A chartset beyond one of the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("chartset too large: {count} {what}, at most {limit} are allowed")]
pub struct ChartsetTooLarge {
    /// What there is too much of, in the plural.
    pub what: &'static str,
    /// How much there is, as far as it was counted.
    pub count: u64,
    /// The limit.
    pub limit: u64,
}

impl ChartsetTooLarge {
    /// Checks a count against a limit.
    ///
    /// # Errors
    /// The count is above it.
    pub const fn check(what: &'static str, count: u64, limit: u64) -> Result<(), Self> {
        if count > limit { Err(Self { what, count, limit }) } else { Ok(()) }
    }
}

impl ChartsetDraft {
    /// Checks the charts and their text against the limits of a chartset.
    ///
    /// # Errors
    /// The first limit that the draft is beyond.
    pub fn check_limits(&self) -> Result<(), ChartsetTooLarge> {
        let all_metadata = || self.charts.iter().map(|chart| &chart.metadata);
        let creators: HashSet<&String> = all_metadata().map(|metadata| &metadata.creator).collect();
        let tags: HashSet<&String> = all_metadata().flat_map(|metadata| &metadata.tags).collect();
        for (what, count, limit) in [
            ("charts", self.charts.len(), MAX_CHARTS),
            ("creators", creators.len(), MAX_CREATORS),
            ("tags", tags.len(), MAX_TAGS),
            ("bytes of text", all_metadata().map(text_bytes).sum(), MAX_TEXT_BYTES),
        ] {
            ChartsetTooLarge::check(what, count as u64, limit as u64)?;
        }
        Ok(())
    }
}

fn text_bytes(metadata: &ChartMetadata) -> usize {
    let names = [&metadata.title, &metadata.artist, &metadata.creator, &metadata.difficulty];
    let romanised = [&metadata.title_romanised, &metadata.artist_romanised].into_iter().flatten();
    names.into_iter().chain(romanised).chain(&metadata.tags).map(String::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChartDraft, ChartNumbers, ChartsetId, KeyCount, NoteHash};

    fn draft(charts: usize, metadata: impl Fn(usize) -> ChartMetadata) -> ChartsetDraft {
        let numbers = ChartNumbers {
            keys: KeyCount::try_from(4).unwrap(),
            bpm_min: 1.0,
            bpm_max: 1.0,
            bpm_main: 1.0,
            length_ms: 1,
            notes: 1,
            lns: 0,
            density_avg: 1.0,
            density_peak: 1.0,
        };
        let chart = |number: usize| ChartDraft {
            hash: NoteHash::from_bytes([u8::try_from(number % 256).unwrap(); 32]),
            numbers,
            rox: None,
            metadata: metadata(number),
            declared_source: None,
            alpha_beatmap_id: None,
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
    fn a_draft_is_refused_beyond_each_limit_and_not_at_it() {
        let same = |_| ChartMetadata::default();
        for (at, beyond, what) in [
            (draft(MAX_CHARTS, same), draft(MAX_CHARTS + 1, same), "charts"),
            (draft(MAX_CREATORS, with_creator), draft(MAX_CREATORS + 1, with_creator), "creators"),
            (draft(2, with_tags(MAX_TAGS)), draft(2, with_tags(MAX_TAGS + 1)), "tags"),
            (
                draft(2, with_title(MAX_TEXT_BYTES / 2)),
                draft(2, with_title(MAX_TEXT_BYTES / 2 + 1)),
                "bytes of text",
            ),
        ] {
            assert_eq!(at.check_limits(), Ok(()), "{what}");
            assert_eq!(beyond.check_limits().unwrap_err().what, what);
        }
    }

    #[test]
    fn the_reason_names_the_count_and_the_limit() {
        let reason = draft(513, |_| ChartMetadata::default()).check_limits().unwrap_err().to_string();
        assert_eq!(reason, "chartset too large: 513 charts, at most 512 are allowed");
    }
}
