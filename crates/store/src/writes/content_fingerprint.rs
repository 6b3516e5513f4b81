//! The content fingerprint of a song folder, which decides whether an ingest changes its chartset.

use chart_index_domain::{ChartDraft, ChartsetDraft, PublicSource};

/// Contains the version of the rules that derive columns from a draft (`assemble_chartset`, folding, lexemes).
/// Increment it when they change, so that the next ingest writes every chartset again.
const CONTEXT: &str = "chart-index 2026 chartset content v3";

/// Returns a digest of everything in a folder that determines its chartset.
/// [`Store::put_chartset`](crate::Store::put_chartset) does not change a chartset that is stored with this
/// fingerprint.
#[must_use]
pub fn content_fingerprint(draft: &ChartsetDraft) -> [u8; 32] {
    fingerprint(draft, &charts_by_hash(draft))
}

/// The charts of a folder in the order of their hashes, each once.
pub(crate) fn charts_by_hash(draft: &ChartsetDraft) -> Vec<&ChartDraft> {
    let mut charts: Vec<&ChartDraft> = draft.charts.iter().collect();
    charts.sort_by_key(|chart| chart.hash);
    charts.dedup_by_key(|chart| chart.hash);
    charts
}

/// [`content_fingerprint`] with the charts of [`charts_by_hash`].
///
/// It excludes the path, which is not public; the numbers and ROX bytes, which come from the first file
/// ingested with the note hash; and the order of the files, since [`chart_index_domain::assemble_chartset`]
/// orders the charts.
pub(crate) fn fingerprint(draft: &ChartsetDraft, charts_by_hash: &[&ChartDraft]) -> [u8; 32] {
    let mut digest = Digest(blake3::Hasher::new_derive_key(CONTEXT));
    digest.source(draft.exact_source.as_ref());
    digest.number(charts_by_hash.len() as u64);
    for chart in charts_by_hash {
        digest.chart(chart);
    }
    *digest.0.finalize().as_bytes()
}

/// Prefixes every value with its length or presence, so that different contents are never the same input.
struct Digest(blake3::Hasher);

impl Digest {
    fn chart(&mut self, chart: &ChartDraft) {
        let metadata = &chart.metadata;
        self.0.update(chart.hash.as_bytes());
        for value in [&metadata.title, &metadata.artist, &metadata.creator, &metadata.difficulty] {
            self.text(value);
        }
        for value in [&metadata.title_romanised, &metadata.artist_romanised] {
            self.number(value.is_some().into());
            self.text(value.as_deref().unwrap_or_default());
        }
        self.number(metadata.tags.len() as u64);
        metadata.tags.iter().for_each(|tag| self.text(tag));
        self.source(chart.declared_source.as_ref());
        self.number(chart.alpha_beatmap_id.is_some().into());
        self.number(chart.alpha_beatmap_id.unwrap_or_default());
    }

    fn source(&mut self, source: Option<&PublicSource>) {
        self.text(source.map_or("", |source| source.kind.as_str()));
        self.text(source.map_or("", |source| source.reference.as_str()));
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }
}
