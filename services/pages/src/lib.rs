//! The web site: a page has the address of its API resource without `/api`, and `/` is the list.
//!
//! Pages are rendered by templates (`templates`, escaped by askama) and complete without script. Assets are
//! embedded with names that contain a hash of their content (`build.rs`): `layout.asset("page.js")` in a
//! template is the path of `assets/page.js`. A new file in `assets` needs nothing else; a module imports it by
//! the name of the file.

mod about;
mod api_docs;
mod assets;
mod bpm;
mod chart_page;
mod chart_rows;
mod chartset_page;
mod closest;
mod compare;
mod creator_page;
mod creators;
mod curve;
mod embed;
mod errors;
mod feed;
mod filter_form;
mod format;
mod histogram;
mod identify;
mod layout;
mod level;
mod list_page;
mod list_query;
mod list_title;
mod matching;
mod meters;
mod moments;
mod pack_page;
mod page_hash;
mod pagination;
mod random;
mod ratings;
mod render;
mod robots;
mod set_view;
mod settings;
mod shelf;
mod shortcuts;
mod sitemap;
mod sources;
mod spectrum;
mod structured_data;

use std::sync::Arc;

use axum::routing::get;
use chart_index_browse::SearchEngines;
use chart_index_cache::{CacheKey, CachedResponse};
use chart_index_domain::ReadError;
use chart_index_http::{ApiError, RequestHeaders, Resource, ResponseCache, Routes, SourcePages, TextBody};
use chart_index_ratelimit::{Group, Limits};
use chart_index_store::Store;

pub use settings::{InvalidPublicUrl, PagesSettings, PublicUrl};

/// What the handlers share.
pub struct PagesState {
    /// The engines that list chartsets.
    pub engines: SearchEngines,
    /// For details, charts and packs.
    pub store: Store,
    /// Caches responses.
    pub cache: ResponseCache,
    /// Where charts can be downloaded.
    pub source_pages: SourcePages,
    /// The rate limits, for the OpenAPI document.
    pub limits: Limits,
    /// The public URL of the site, and how to reach its operator.
    pub settings: PagesSettings,
}

impl PagesState {
    /// The public URL of the site, without a slash at its end; empty if it is not configured.
    fn site(&self) -> &str {
        self.settings.public_url.as_ref().map_or("", PublicUrl::as_str)
    }

    /// The key of a page with this name. Replicas of another release, or with other settings, do not share it.
    fn key(&self, name: &[u8]) -> CacheKey {
        let settings = format!("{} {} {}", env!("CARGO_PKG_VERSION"), self.site(), self.source_pages);
        CacheKey::page(name).with_settings(&settings)
    }

    /// Reads a page with this name through the cache.
    ///
    /// # Errors
    ///
    /// There is no such page, or as for [`ResponseCache::read`].
    async fn read<Fut>(
        self: Arc<Self>,
        name: &[u8],
        missing: Resource,
        headers: &RequestHeaders,
        fill: impl FnOnce(Arc<Self>) -> Fut + Send + 'static,
    ) -> Result<TextBody, ApiError>
    where
        Fut: Future<Output = Result<Option<String>, ReadError>> + Send + 'static,
    {
        let state = Arc::clone(&self);
        let fill = move || async move {
            let text = fill(state).await?;
            Ok(text.map_or(CachedResponse::NotFound, |text| TextBody::new(text).into_cached()))
        };
        let body = self.cache.read_text(self.key(name), headers, fill).await?;
        body.ok_or(ApiError::NotFound(missing))
    }
}

/// The routes of all pages, of assets and of the OpenAPI document.
pub fn routes(state: PagesState) -> Routes {
    let state = Arc::new(state);
    let api_docs = api_docs::routes(&state);
    Routes::new()
        .route(Group::Page, "/", get(list_page::list))
        .route(Group::Page, "/chartsets", get(list_page::moved))
        .route(Group::Page, "/chartsets/{id}", get(chartset_page::chartset))
        .route(Group::Page, "/charts/{hash}", get(chart_page::chart))
        .framed_route(Group::Page, "/embed/charts/{hash}", get(embed::embed))
        .route(Group::Page, "/packs/{ref}", get(pack_page::pack))
        .route(Group::Page, "/shelf", get(shelf::page))
        .route(Group::Page, "/shelf.txt", get(shelf::text))
        .route(Group::Page, "/shelf.atom", get(shelf::feed))
        .route(Group::Page, "/creators/{name}", get(creator_page::page))
        .route(Group::Page, "/creators/{name}/feed.atom", get(creator_page::feed))
        .route(Group::Page, "/compare", get(compare::page))
        .route(Group::Page, "/random", get(random::random))
        .route(Group::Page, "/ratings", get(ratings::ratings))
        .route(Group::Page, "/feed.atom", get(feed::feed))
        .route(Group::Page, "/identify", get(identify::identify))
        .route(Group::Page, "/about", get(about::about))
        .route(Group::Page, "/sitemap.xml", get(sitemap::index))
        .route(Group::Page, "/sitemaps/{part}", get(sitemap::part))
        .route(Group::Page, "/robots.txt", get(robots::robots))
        .route(Group::Page, "/opensearch.xml", get(robots::open_search))
        .route(Group::Page, "/favicon.ico", get(robots::favicon))
        .unlimited_route(Group::Page, "/assets/{name}", get(assets::asset))
        .with_error_pages(errors::error_pages())
        .with_state(state)
        .merge(api_docs)
}
