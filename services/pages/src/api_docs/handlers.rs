//! The pages, rendered at the start, and their handlers.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use chart_index_http::{
    ApiError, CachePolicy, ErrorType, MediaType, PathParam, RequestHeaders, Resource, TextBody,
};

use super::docs_page::Docs;
use super::openapi_3_0::to_3_0;
use super::reference::VECTORS;
use super::search::Index;
use super::{changelog, live_links, openapi, problem_pages};
use crate::PagesState;
use crate::list_query::raw_parameters;

/// The rendered pages.
pub(crate) struct ApiDocs {
    pages: Arc<PagesState>,
    docs: Docs,
    search: Index,
    /// The pages of [`Docs`] by their paths. Those of the API have links to the samples.
    html: BTreeMap<String, TextBody>,
    all: TextBody,
    openapi: TextBody,
    openapi_3_0: TextBody,
    changelog: TextBody,
    /// By the format.
    vectors: BTreeMap<&'static str, TextBody>,
    /// By the last segment of the problem type.
    problems: BTreeMap<&'static str, TextBody>,
}

impl ApiDocs {
    /// Renders all pages.
    pub(crate) fn new(pages: Arc<PagesState>) -> Self {
        let settings = &pages.settings;
        let document = openapi::document(settings, &pages.limits);
        let url = settings.public_url.as_ref();
        // What is serialised is text, numbers and lists of them.
        let openapi_3_0 = to_3_0(serde_json::to_value(&document).unwrap_or_default()).to_string();
        let problem = |kind: ErrorType| (kind.as_str(), TextBody::new(problem_pages::page(kind, url)));
        let docs = Docs::new(&document, url);
        Self {
            search: Index::new(&docs),
            html: docs
                .pages
                .iter()
                .map(|page| (page.path.clone(), TextBody::new(docs.html(page, url))))
                .collect(),
            all: TextBody::new(docs.all(url)),
            docs,
            changelog: changelog::feed(url),
            openapi: TextBody::new(serde_json::to_vec(&document).unwrap_or_default()),
            openapi_3_0: TextBody::new(openapi_3_0),
            vectors: VECTORS.into_iter().map(|one| (one.format, TextBody::new(one.json))).collect(),
            problems: ErrorType::ALL.iter().copied().map(problem).collect(),
            pages,
        }
    }
}

/// `GET /docs`.
pub(crate) async fn docs(
    State(docs): State<Arc<ApiDocs>>,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    live(&docs, "/docs", &headers).await
}

/// `GET /docs/api/{section}`: a section of the reference.
pub(crate) async fn section(
    State(docs): State<Arc<ApiDocs>>,
    PathParam(section): PathParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    live(&docs, &format!("/docs/api/{section}"), &headers).await
}

/// A page whose requests are for the newest chart of the instance, or for the samples while that cannot be
/// read.
async fn live(docs: &ApiDocs, path: &str, headers: &RequestHeaders) -> Result<Response, ApiError> {
    let page = docs.html.get(path).ok_or(ApiError::NotFound(Resource::Endpoint))?;
    let name = format!("docs {path}");
    let page = page.clone();
    let fill = async move |pages: Arc<PagesState>| {
        let html = String::from_utf8_lossy(page.bytes()).into_owned();
        let newest = pages.store.newest_chart().await.unwrap_or_default();
        Ok(Some(match newest {
            None => html,
            Some(newest) => live_links::with_newest(&html, newest),
        }))
    };
    let pages = Arc::clone(&docs.pages);
    let body = pages.read(name.as_bytes(), Resource::Endpoint, headers, fill).await?;
    Ok(body.into_response(headers, CachePolicy::Page, MediaType::Html))
}

/// `GET /docs/all`: all pages as one.
pub(crate) async fn all(State(docs): State<Arc<ApiDocs>>, headers: RequestHeaders) -> Response {
    docs.all.clone().into_response(&headers, CachePolicy::Page, MediaType::Html)
}

/// `GET /docs/search?q=`.
pub(crate) async fn search(
    State(docs): State<Arc<ApiDocs>>,
    RawQuery(query): RawQuery,
    headers: RequestHeaders,
) -> Response {
    let parameters = raw_parameters(query.as_deref().unwrap_or_default());
    let text = parameters.into_iter().find(|(name, _)| name == "q").map(|(_, value)| value);
    let html = docs.search.search(&docs.docs, &text.unwrap_or_default());
    TextBody::new(html).into_response(&headers, CachePolicy::Page, MediaType::Html)
}

/// `GET /docs/openapi.json`.
pub(crate) async fn openapi(State(docs): State<Arc<ApiDocs>>, headers: RequestHeaders) -> Response {
    docs.openapi.clone().into_response(&headers, CachePolicy::Page, MediaType::Json)
}

/// `GET /docs/openapi-3.0.json`.
pub(crate) async fn openapi_3_0(State(docs): State<Arc<ApiDocs>>, headers: RequestHeaders) -> Response {
    docs.openapi_3_0.clone().into_response(&headers, CachePolicy::Page, MediaType::Json)
}

/// `GET /docs/changelog.atom`.
pub(crate) async fn changelog(State(docs): State<Arc<ApiDocs>>, headers: RequestHeaders) -> Response {
    docs.changelog.clone().into_response(&headers, CachePolicy::Page, MediaType::Atom)
}

/// `GET /docs/{format}`: a document of docs/formats.
pub(crate) async fn format(
    State(docs): State<Arc<ApiDocs>>,
    PathParam(name): PathParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let page = docs.html.get(&format!("/docs/{name}")).ok_or(ApiError::NotFound(Resource::Endpoint))?;
    Ok(page.clone().into_response(&headers, CachePolicy::Page, MediaType::Html))
}

/// `GET /docs/{format}/vectors.json`: test vectors.
pub(crate) async fn vectors(
    State(docs): State<Arc<ApiDocs>>,
    PathParam(format): PathParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let vectors = docs.vectors.get(format.as_str()).ok_or(ApiError::NotFound(Resource::Endpoint))?;
    Ok(vectors.clone().into_response(&headers, CachePolicy::Page, MediaType::Json))
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
