//! Whether a folder says anything new.

use chart_index_domain::{ChartDraft, ChartsetDraft, PublicSource};

/// Names the rules by which the derived columns follow from a draft. Change it when those change (`assemble_chartset`,
/// folding, words), so that the next ingest writes every chartset again.
const CONTEXT: &str = "chart-index 2026 chartset content v2";

/// A digest of all that a folder decides about its chartset.
///
/// Left out: the path, which is not public; the numbers and ROX bytes, which belong to the note hash and are
/// those of the first file ingested; the order of the files, which [`chart_index_domain::assemble_chartset`] replaces.
pub(crate) fn fingerprint(draft: &ChartsetDraft, charts_by_hash: &[&ChartDraft]) -> [u8; 32] {
    let mut digest = Digest(blake3::Hasher::new_derive_key(CONTEXT));
    digest.source(draft.exact_source.as_ref());
    digest.number(charts_by_hash.len() as u64);
    for chart in charts_by_hash {
        digest.chart(chart);
    }
    *digest.0.finalize().as_bytes()
}

/// Every value goes in with its length or its presence, so that no two contents give the same input.
struct Digest(blake3::Hasher);

impl Digest {
    fn chart(&mut self, chart: &ChartDraft) {
        let text = &chart.metadata;
        self.0.update(chart.hash.as_bytes());
        for value in [&text.title, &text.artist, &text.creator, &text.difficulty] {
            self.text(value);
        }
        for value in [&text.title_romanised, &text.artist_romanised] {
            self.number(value.is_some().into());
            self.text(value.as_deref().unwrap_or_default());
        }
        self.number(text.tags.len() as u64);
        text.tags.iter().for_each(|tag| self.text(tag));
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
