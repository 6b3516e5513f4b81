//! `GET /packs/{ref}`: the chartsets of a pack of the second game.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chart_index_cache::{CacheKey, CachedResponse};
use chart_index_domain::{Chartset, PublicSource, ReadError, SourceKind, SourceRef};
use chart_index_http::{ApiError, CachePolicy, MediaType, PathParam, RequestHeaders, Resource, TextBody};

use crate::PagesState;
use crate::creators::{self, CreatorLink};
use crate::filter_form::source_name;
use crate::format;
use crate::format::named;
use crate::layout::Layout;
use crate::render::render;

/// The maximum number of chartsets on a page: real packs have fewer.
const MAX_SETS: u32 = 1_000;

/// `GET /packs/{ref}`.
pub(crate) async fn pack(
    State(state): State<Arc<PagesState>>,
    PathParam(text): PathParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let number = text.parse().ok().and_then(SourceRef::from_number);
    let pack = number.filter(|pack| pack.as_str() == text).ok_or(ApiError::NotFound(Resource::Pack))?;
    let key = CacheKey::page(&[b"pack ", text.as_bytes()].concat());
    let fill = {
        let state = Arc::clone(&state);
        move || async move { read(&state, pack).await }
    };
    let body = state.cache.read_text(key, &headers, fill).await?;
    let body = body.ok_or(ApiError::NotFound(Resource::Pack))?;
    Ok(body.into_response(&headers, CachePolicy::Page, MediaType::Html))
}

async fn read(state: &PagesState, pack: SourceRef) -> Result<CachedResponse, ReadError> {
    let sets = state.store.chartsets_of_pack(&pack, MAX_SETS).await?;
    if sets.is_empty() {
        return Ok(CachedResponse::NotFound);
    }
    Ok(TextBody::new(render(&PackTemplate::new(pack, &sets, state))?).into_cached())
}

pub(crate) fn path(pack: &SourceRef) -> String {
    format!("/packs/{pack}")
}

#[derive(Template)]
#[template(path = "pack.html", whitespace = "minimize")]
struct PackTemplate {
    layout: Layout,
    /// Such as `Beta pack 101`.
    name: String,
    facts: String,
    /// The URL of its page at the source.
    url: String,
    sets: Vec<PackSet>,
}

struct PackSet {
    href: String,
    title: String,
    artist: String,
    creators: Vec<CreatorLink>,
    facts: String,
}

impl PackTemplate {
    fn new(pack: SourceRef, sets: &[Chartset], state: &PagesState) -> Self {
        let name = format!("{} {pack}", source_name(SourceKind::BetaPack));
        let charts: u64 = sets.iter().map(|set| u64::from(set.chart_count)).sum();
        let facts =
            format!("{}, {}", format::counted(sets.len() as u64, "set"), format::counted(charts, "chart"));
        let layout = Layout {
            description: format!("{name}: {facts}"),
            ..Layout::new(name.as_str(), path(&pack), state.settings.public_url.as_ref())
        };
        let source = PublicSource { kind: SourceKind::BetaPack, reference: pack };
        let url = state.source_pages.page_of(&source);
        Self { layout, name, facts, url, sets: sets.iter().map(PackSet::new).collect() }
    }
}

impl PackSet {
    fn new(set: &Chartset) -> Self {
        let keys: Vec<String> = set.keys.iter().map(|keys| format!("{}K", keys.get())).collect();
        Self {
            href: format!("/chartsets/{}", set.id),
            title: named(set.title.clone(), "Untitled"),
            artist: named(set.artist.clone(), "Unknown artist"),
            creators: creators::links(&set.creator, std::iter::empty()),
            facts: format!(
                "{} · {} BPM · {} · {} · up to {}/s",
                keys.join(" "),
                format::bpm_range(set.bpm_min, set.bpm_max),
                format::length_range(set.length_min_ms, set.length_max_ms),
                format::counted(set.chart_count.into(), "chart"),
                format::density(set.density_max)
            ),
        }
    }
}
