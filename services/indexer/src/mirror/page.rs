//! Reads a page of the change feed (docs/formats/change-feed.md).

use anyhow::{Context, Result, anyhow, ensure};
use chart_index_domain::{ChangeType, ChartsetId, ChartsetRecord, Entity, FileDigest, Lineage, NoteHash};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::clock::now_ms;
use crate::import::CheckedChartset;

/// The greatest sequence (docs/formats/change-feed.md, "Change").
const MAX_SEQUENCE: u64 = (1 << 53) - 1;

/// A page, by what is to be done with its changes.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) chartsets: Vec<ChangedChartset>,
    pub(super) charts: Vec<ChangedChart>,
    pub(super) removed: Vec<Removed>,
    /// Changes that are not valid, each with the reason.
    pub(super) refused: Vec<(String, String)>,
    /// The sequences of all valid changes.
    pub(super) sequences: Vec<u64>,
    /// The sequence after which the next page begins.
    pub(super) next: u64,
    pub(super) has_more: bool,
    /// The database that numbered the changes, if the index names it.
    pub(super) lineage: Option<Lineage>,
    /// When the first of the changes was made.
    pub(super) oldest_ms: Option<i64>,
}

/// A chartset that was added or updated.
#[derive(Debug)]
pub(super) struct ChangedChartset {
    pub(super) sequence: u64,
    pub(super) checked: CheckedChartset,
}

/// A chart that was added or updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChangedChart {
    pub(super) sequence: u64,
    pub(super) hash: NoteHash,
    pub(super) changed_at_ms: i64,
    /// The digest of its ROX file, if it has replaced another one.
    pub(super) replacement: Option<FileDigest>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Removed {
    pub(super) sequence: u64,
    pub(super) entity: Entity,
    pub(super) by_operator: bool,
}

/// A change as the feed has it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    sequence: u64,
    chart_hash: Option<NoteHash>,
    id: Option<ChartsetId>,
    change: ChangeType,
    changed_at_ms: i64,
    chartset: Option<ChartsetRecord>,
    rox_blake3: Option<FileDigest>,
    #[serde(default)]
    by_operator: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageBody<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
    next: u64,
    has_more: bool,
    lineage: Option<Lineage>,
}

impl Page {
    /// Reads a page. A change that is not valid is part of it as such: the others are applied.
    ///
    /// # Errors
    /// The body is no page after this sequence.
    pub(super) fn parse(body: &[u8], after: u64, limit: u32) -> Result<Self> {
        let PageBody { items, next, has_more, lineage } = serde_json::from_slice(body)?;
        let count = items.len();
        ensure!(count <= limit as usize, "it has {count} changes, but {limit} were requested");
        ensure!(next <= MAX_SEQUENCE, "next is {next}, above 2^53");
        let is_after = if items.is_empty() { next == after && !has_more } else { next > after };
        ensure!(is_after, "next is {next} after {after}, with {count} changes");
        let mut page = Self {
            chartsets: Vec::new(),
            charts: Vec::new(),
            removed: Vec::new(),
            refused: Vec::new(),
            sequences: Vec::new(),
            next,
            has_more,
            lineage,
            oldest_ms: None,
        };
        for (index, item) in items.into_iter().enumerate() {
            match serde_json::from_str(item.get()) {
                Ok(item) => page.add(item, after),
                Err(error) => {
                    let name = format!("change {} after sequence {after}", index + 1);
                    page.refused.push((name, error.to_string()));
                }
            }
        }
        Ok(page)
    }

    fn add(&mut self, item: Item, after: u64) {
        let sequence = item.sequence;
        if sequence <= after || sequence > self.next {
            let range = format!("it is not between {after} and {}", self.next);
            return self.refused.push((format!("change {sequence}"), range));
        }
        self.sequences.push(sequence);
        self.oldest_ms = self.oldest_ms.or(Some(item.changed_at_ms));
        if let Err((name, error)) = self.try_add(item) {
            self.refused.push((name.unwrap_or_else(|| format!("change {sequence}")), format!("{error:#}")));
        }
    }

    /// # Errors
    /// With the name of the chartset, if the change is of one.
    fn try_add(&mut self, item: Item) -> Result<(), (Option<String>, anyhow::Error)> {
        let is_removed = item.change == ChangeType::Removed;
        let Item { sequence, changed_at_ms, by_operator, .. } = item;
        match (item.chart_hash, item.id) {
            (Some(hash), None) if is_removed => {
                self.removed.push(Removed { sequence, entity: hash.into(), by_operator });
            }
            (None, Some(id)) if is_removed => {
                self.removed.push(Removed { sequence, entity: id.into(), by_operator });
            }
            (Some(hash), None) => {
                let replacement = item.rox_blake3;
                self.charts.push(ChangedChart { sequence, hash, changed_at_ms, replacement });
            }
            (None, Some(id)) => {
                let checked = check(id, item.chartset);
                let checked = checked.map_err(|error| (Some(Entity::Chartset(id).to_string()), error))?;
                self.chartsets.push(ChangedChartset { sequence, checked });
            }
            _ => return Err((None, anyhow!("it is neither of a chart nor of a chartset"))),
        }
        Ok(())
    }
}

/// Checks the record of a chartset. It was last checked when it last changed, as far as the feed says.
fn check(id: ChartsetId, record: Option<ChartsetRecord>) -> Result<CheckedChartset> {
    let record = record.context("it has no record")?;
    ensure!(record.id == id, "its record is that of chartset {}", record.id);
    let checked_at_ms = record.updated_at_ms;
    CheckedChartset::new(record, checked_at_ms, now_ms())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(items: &str, next: u64) -> Result<Page> {
        Page::parse(format!(r#"{{"items":[{items}],"next":{next},"hasMore":true}}"#).as_bytes(), 5, 3)
    }

    #[test]
    fn changes_are_sorted_by_what_they_need() {
        let hash = "0".repeat(64);
        let items = format!(
            r#"{{"sequence":6,"kind":"chart","chartHash":"{hash}","change":"updated","changedAtMs":7,"roxBlake3":"{hash}"}},
               {{"sequence":8,"kind":"chartset","id":"{id}","change":"removed","changedAtMs":9,"byOperator":true}},
               {{"sequence":9,"kind":"chartset","id":"{id}","change":"updated","changedAtMs":9}}"#,
            id = &hash[..16]
        );
        let page = parse(&items, 9).unwrap();
        let (hash, id) = (NoteHash::from_bytes([0; 32]), ChartsetId::from_bytes([0; 8]));
        let replacement = Some(FileDigest::from_bytes([0; 32]));
        assert_eq!(page.charts, [ChangedChart { sequence: 6, hash, changed_at_ms: 7, replacement }]);
        assert_eq!(page.removed, [Removed { sequence: 8, entity: id.into(), by_operator: true }]);
        assert_eq!(page.refused, [(format!("chartset {id}"), "it has no record".to_owned())]);
        assert_eq!((page.sequences, page.oldest_ms), (vec![6, 8, 9], Some(7)));
    }

    #[test]
    fn pages_that_no_instance_sends_are_errors() {
        assert!(parse("{}", 6).is_ok_and(|page| page.refused.len() == 1));
        for sequence in [0, 5, 7] {
            let hash = "0".repeat(64);
            let item =
                format!(r#"{{"sequence":{sequence},"chartHash":"{hash}","change":"added","changedAtMs":7}}"#);
            let page = parse(&item, 6).unwrap();
            assert_eq!(
                page.refused,
                [(format!("change {sequence}"), "it is not between 5 and 6".to_owned())]
            );
        }
        for (items, next) in [("", 5), ("", 6), ("{}", 5), ("{}", 1 << 53), ("{},{},{},{}", 9), ("{", 6)] {
            assert!(parse(items, next).is_err(), "{items} {next}");
        }
    }
}
