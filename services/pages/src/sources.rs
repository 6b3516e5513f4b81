//! Where charts come from, as lines of a page.

use chart_index_domain::{Confidence, PublicSource, Source, SourceKind};
use chart_index_http::SourcePages;

use crate::filter_form::source_name;
use crate::{format, pack_page};

#[derive(Debug)]
pub(crate) struct SourceLine {
    /// Such as `Alpha set 577617`.
    pub(crate) name: String,
    /// The URL of its page at the source.
    pub(crate) url: String,
    /// The page with all chartsets of a pack.
    pub(crate) pack: Option<String>,
    /// How certain it is that the source has the chart.
    pub(crate) confidence: &'static str,
    /// The date of the last check.
    pub(crate) checked: String,
    /// The same for programs.
    pub(crate) checked_at: String,
}

impl SourceLine {
    /// The lines of these sources, in their order.
    pub(crate) fn all(sources: &[Source], pages: &SourcePages) -> Vec<Self> {
        sources.iter().map(|source| Self::new(source, pages)).collect()
    }

    fn new(source: &Source, pages: &SourcePages) -> Self {
        let public = PublicSource { kind: source.kind, reference: source.reference.clone() };
        Self {
            name: format!("{} {}", source_name(source.kind), source.reference),
            url: pages.page_of(&public),
            pack: (source.kind == SourceKind::BetaPack).then(|| pack_page::path(&source.reference)),
            confidence: match source.confidence {
                Confidence::Exact => "read from this very source",
                Confidence::Declared => "named by the chart file only",
            },
            checked: format::date(source.checked_at_ms),
            checked_at: format::rfc3339(source.checked_at_ms),
        }
    }
}
