//! Searches for a hash, the beginning of one, a chartset id or an address, which lead to their page.

use chart_index_domain::search::SearchQuery;
use chart_index_domain::{ChartsetId, NoteHash, PublicSource, SourceKind, SourceRef};
use chart_index_http::SourcePages;
use chart_index_store::Store;
use url::Url;

use crate::PagesSettings;
use crate::pack_page;

/// The least number of digits of a hash that are searched for: fewer are also words and numbers.
const MIN_PREFIX_DIGITS: usize = 8;
const HASH_DIGITS: usize = 64;

/// What the text of a search names, apart from words to search for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shortcut {
    Chart(NoteHash),
    Chartset(ChartsetId),
    /// The chart with a hash from the first to the last, if there is only one, else the chartset with the same
    /// digits as its id.
    OnlyChart {
        first: NoteHash,
        last: NoteHash,
        chartset: Option<ChartsetId>,
    },
    /// A set or a pack by the URL of its page.
    Source(PublicSource),
}

impl Shortcut {
    /// What the text of a query names, if it has no other filter.
    pub(crate) fn of_query(query: &SearchQuery, sources: &SourcePages, site: &PagesSettings) -> Option<Self> {
        let text = query.text.as_deref()?;
        let without_text = SearchQuery { text: None, ..query.clone() };
        let SearchQuery { sort, direction, page, ref after, .. } = *query;
        let only_text = SearchQuery { sort, direction, page, after: after.clone(), ..SearchQuery::default() };
        (without_text == only_text).then(|| Self::of_text(text, sources, site)).flatten()
    }

    fn of_text(text: &str, sources: &SourcePages, site: &PagesSettings) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        if let Ok(hash) = lower.parse() {
            return Some(Self::Chart(hash));
        }
        let is_prefix = (MIN_PREFIX_DIGITS..HASH_DIGITS).contains(&lower.len());
        if is_prefix && lower.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let padding = HASH_DIGITS - lower.len();
            let padded = |digit: &str| format!("{lower}{}", digit.repeat(padding)).parse().ok();
            let (first, last) = (padded("0")?, padded("f")?);
            return Some(Self::OnlyChart { first, last, chartset: lower.parse().ok() });
        }
        sources.source_of(text).map(Self::Source).or_else(|| Self::of_address(text, site))
    }

    /// What an address of this site or of another index shows: hashes and ids of chartsets are the same in all
    /// of them, numbers of packs are not.
    fn of_address(text: &str, site: &PagesSettings) -> Option<Self> {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let path = url.path().strip_prefix("/api").unwrap_or(url.path());
        let mut segments = path.split('/').skip(1);
        match (segments.next()?, segments.next()?) {
            ("charts", hash) => hash.parse().ok().map(Self::Chart),
            ("chartsets", id) => id.parse().ok().map(Self::Chartset),
            ("go", "chartset") => segments.next()?.parse().ok().map(Self::Chartset),
            ("packs", number) if site.is_origin_of(&url) => {
                let reference = SourceRef::from_number(number.parse().ok()?)?;
                Some(Self::Source(PublicSource { kind: SourceKind::BetaPack, reference }))
            }
            _ => None,
        }
    }

    /// The page of what is named: a set of the first game is one chartset, a pack of the second game has many.
    /// `None` if nothing has this beginning of a hash, or it cannot be looked up: it is searched for as text.
    pub(crate) async fn path(&self, store: &Store) -> Option<String> {
        let chart = |hash: &NoteHash| format!("/charts/{hash}");
        let chartset = |id: &ChartsetId| format!("/chartsets/{id}");
        match self {
            Self::Chart(hash) => Some(chart(hash)),
            Self::Chartset(id) => Some(chartset(id)),
            Self::OnlyChart { first, last, chartset: id } => {
                let hash = store.only_chart_between(*first, *last).await.ok().flatten();
                hash.as_ref().map(chart).or_else(|| id.as_ref().map(chartset))
            }
            Self::Source(source) if source.kind == SourceKind::AlphaSet => {
                Some(chartset(&ChartsetId::from_alpha_set(&source.reference)))
            }
            Self::Source(source) => Some(pack_page::path(&source.reference)),
        }
    }
}
