//! The pages, rendered at the start, and their handlers.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use chart_index_cache::CacheKey;
use chart_index_http::{
    ApiError, CachePolicy, ErrorType, MediaType, PathParam, RateLimitCheck, RequestHeaders, Resource,
    TextBody,
};

use super::{docs_page, live_links, note_hash_vectors, openapi, problem_pages};
use crate::PagesState;

/// The rendered pages.
pub(crate) struct ApiDocs {
    pages: Arc<PagesState>,
    /// The reference, with links to the samples.
    docs: Arc<str>,
    openapi: TextBody,
    /// The documents of docs/formats, by the last segments of their paths.
    formats: BTreeMap<&'static str, TextBody>,
    vectors: TextBody,
    variant_vectors: TextBody,
    /// By the last segment of the problem type.
    problems: BTreeMap<&'static str, TextBody>,
}

impl ApiDocs {
    /// Renders all pages.
    pub(crate) fn new(pages: Arc<PagesState>) -> Self {
        let settings = &pages.settings;
        let document = openapi::document(settings.contact.as_deref());
        let url = settings.public_url.as_ref();
        let problem = |kind: ErrorType| (kind.as_str(), TextBody::new(problem_pages::page(kind, url)));
        let mut documents = docs_page::pages(&document, url);
        let docs = documents.remove("/docs").unwrap_or_default();
        let format =
            |(path, html): (&'static str, _)| Some((path.strip_prefix("/docs/")?, TextBody::new(html)));
        Self {
            docs: docs.into(),
            // What is serialised is text, numbers and lists of them.
            openapi: TextBody::new(serde_json::to_vec(&document).unwrap_or_default()),
            formats: documents.into_iter().filter_map(format).collect(),
            vectors: TextBody::new(note_hash_vectors::VECTORS),
            variant_vectors: TextBody::new(note_hash_vectors::VARIANT_VECTORS),
            problems: ErrorType::ALL.iter().copied().map(problem).collect(),
            pages,
        }
    }
}

/// `GET /docs`. Its links lead to the newest chart of the instance, or to the samples while that cannot be
/// read.
pub(crate) async fn docs(
    State(docs): State<Arc<ApiDocs>>,
    check: RateLimitCheck,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let key = CacheKey::page(b"docs");
    let fill = {
        let (html, pages) = (Arc::clone(&docs.docs), Arc::clone(&docs.pages));
        move || async move {
            let newest = pages.store.newest_chart().await.unwrap_or_default();
            let html =
                newest.map_or_else(|| html.to_string(), |newest| live_links::with_newest(&html, newest));
            Ok(TextBody::new(html).into_cached())
        }
    };
    let body = docs.pages.cache.read_text(check, key, &headers, fill).await?;
    let body = body.unwrap_or_else(|| TextBody::new(docs.docs.to_string()));
    Ok(body.into_response(&headers, CachePolicy::Page, MediaType::Html))
}

/// `GET /docs/openapi.json`.
pub(crate) async fn openapi(State(docs): State<Arc<ApiDocs>>, headers: RequestHeaders) -> Response {
    docs.openapi.clone().into_response(&headers, CachePolicy::Page, MediaType::Json)
}

/// `GET /docs/{format}`: a document of docs/formats.
pub(crate) async fn format(
    State(docs): State<Arc<ApiDocs>>,
    PathParam(name): PathParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let page = docs.formats.get(name.as_str()).ok_or(ApiError::NotFound(Resource::Endpoint))?;
    Ok(page.clone().into_response(&headers, CachePolicy::Page, MediaType::Html))
}

/// `GET /docs/note-hash/vectors.json`.
pub(crate) async fn vectors(State(docs): State<Arc<ApiDocs>>, headers: RequestHeaders) -> Response {
    docs.vectors.clone().into_response(&headers, CachePolicy::Page, MediaType::Json)
}

/// `GET /docs/variant/vectors.json`.
pub(crate) async fn variant_vectors(State(docs): State<Arc<ApiDocs>>, headers: RequestHeaders) -> Response {
    docs.variant_vectors.clone().into_response(&headers, CachePolicy::Page, MediaType::Json)
}

/// `GET /problems/{slug}`: what the `type` of an error resolves to.
pub(crate) async fn problem(
    State(docs): State<Arc<ApiDocs>>,
    PathParam(slug): PathParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let page = docs.problems.get(slug.as_str()).ok_or(ApiError::NotFound(Resource::Endpoint))?;
    Ok(page.clone().into_response(&headers, CachePolicy::Page, MediaType::Html))
}
