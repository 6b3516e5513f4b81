//! The JSON body of a page of the change feed (docs/api.md, "Changes").

use chart_index_domain::{ChangeType, ChartsetId, ChartsetRecord, FileDigest, Lineage, NoteHash};
use chart_index_store::{FeedEntity, FeedEntry, FeedPage, PageEnd};
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Changes)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangesBody<'a> {
    #[schema(max_items = 1_000)]
    items: Vec<ChangeItem<'a>>,
    #[schema(minimum = 0)]
    next: u64,
    has_more: bool,
    lineage: Lineage,
}

/// The latest change of a chart or chartset. A tombstone has no field of what is gone.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Change)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangeItem<'a> {
    #[schema(minimum = 1)]
    sequence: u64,
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    chart_hash: Option<NoteHash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    id: Option<ChartsetId>,
    change: ChangeType,
    #[schema(minimum = 0)]
    changed_at_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    chartset: Option<&'a ChartsetRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    rox_blake3: Option<FileDigest>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    by_operator: bool,
}

/// What has changed.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = ChangeKind)]
#[serde(rename_all = "camelCase")]
enum Kind {
    Chart,
    Chartset,
}

impl<'a> ChangesBody<'a> {
    pub(crate) fn new(page: &'a FeedPage, after: u64) -> Self {
        let next = page.entries.last().map_or(after, |entry| entry.sequence);
        let items = page.entries.iter().map(ChangeItem::new).collect();
        Self { items, next, has_more: page.end != PageEnd::EndOfFeed, lineage: page.lineage }
    }
}

impl<'a> ChangeItem<'a> {
    fn new(entry: &'a FeedEntry) -> Self {
        let (kind, chart_hash, id, chartset) = match &entry.entity {
            FeedEntity::Chart(hash) => (Kind::Chart, Some(*hash), None, None),
            FeedEntity::Chartset(id, record) => (Kind::Chartset, None, Some(*id), record.as_ref()),
        };
        let FeedEntry {
            sequence,
            changed_at_ms,
            change,
            replacement: rox_blake3,
            is_removal: by_operator,
            ..
        } = *entry;
        Self { sequence, kind, chart_hash, id, change, changed_at_ms, chartset, rox_blake3, by_operator }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tombstones_have_no_other_fields() {
        let entry = |entity, change| FeedEntry {
            sequence: 5,
            changed_at_ms: 7,
            change,
            entity,
            replacement: None,
            is_removal: false,
        };
        let (hash, id) = (NoteHash::from_bytes([15; 32]), ChartsetId::from_bytes([10; 8]));
        let lineage = Lineage::from_bytes([1; 8]);
        let page = FeedPage {
            lineage,
            entries: vec![
                entry(FeedEntity::Chart(hash), ChangeType::Removed),
                entry(FeedEntity::Chartset(id, None), ChangeType::Removed),
            ],
            end: PageEnd::EndOfFeed,
        };
        insta::assert_snapshot!(
            serde_json::to_string(&ChangesBody::new(&page, 3)).unwrap(),
            @r#"{"items":[{"sequence":5,"kind":"chart","chartHash":"0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f","change":"removed","changedAtMs":7},{"sequence":5,"kind":"chartset","id":"0a0a0a0a0a0a0a0a","change":"removed","changedAtMs":7}],"next":5,"hasMore":false,"lineage":"0101010101010101"}"#
        );
        let empty = FeedPage { lineage, entries: Vec::new(), end: PageEnd::EndOfFeed };
        let body = serde_json::to_string(&ChangesBody::new(&empty, 3)).unwrap();
        assert_eq!(body, r#"{"items":[],"next":3,"hasMore":false,"lineage":"0101010101010101"}"#);
    }
}
