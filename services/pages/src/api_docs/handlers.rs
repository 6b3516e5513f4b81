//! The pages, rendered at the start, and their handlers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::Uri;
use axum::response::Response;
use chart_index_http::{ApiError, CachePolicy, ErrorType, MediaType, RequestHeaders, Resource, TextBody};
use percent_encoding::percent_decode_str;
use utoipa::openapi::OpenApi;

use super::docs_page::Docs;
use super::openapi_3_0::to_3_0;
use super::reference::VECTORS;
use super::search::Index;
use super::{changelog, live_links, openapi, problem_pages};
use crate::PagesState;
use crate::list_query::raw_parameters;
use crate::settings::PublicUrl;

/// By its path.
type Documents = BTreeMap<String, (TextBody, MediaType)>;

/// The rendered pages and documents.
pub(crate) struct ApiDocs {
    pages: Arc<PagesState>,
    docs: Docs,
    search: Index,
    /// Pages of the API have links to the samples.
    documents: Documents,
}

impl ApiDocs {
    /// Renders all pages.
    pub(crate) fn new(pages: Arc<PagesState>) -> Self {
        let url = pages.settings.public_url.as_ref();
        let openapi = openapi::document(&pages.settings, &pages.limits);
        let docs = Docs::new(&openapi, url);
        Self { search: Index::new(&docs), documents: documents(&docs, &openapi, url), docs, pages }
    }

    fn at(&self, path: &str) -> Result<(TextBody, MediaType), ApiError> {
        self.documents.get(path).cloned().ok_or(ApiError::NotFound(Resource::Endpoint))
    }
}

fn documents(docs: &Docs, openapi: &OpenApi, url: Option<&PublicUrl>) -> Documents {
    let mut documents = Documents::new();
    let mut add = |path: &str, media_type, text: Vec<u8>| {
        documents.insert(path.to_owned(), (TextBody::new(text), media_type));
    };
    for page in &docs.pages {
        add(&page.path, MediaType::Html, docs.html(page, url).into());
    }
    for kind in ErrorType::ALL {
        add(kind.problem_type(), MediaType::Html, problem_pages::page(*kind, url).into());
    }
    for vectors in VECTORS {
        add(&format!("/docs/{}/vectors.json", vectors.format), MediaType::Json, vectors.json.into());
    }
    add("/docs/all", MediaType::Html, docs.all(url).into());
    // What is serialised is text, numbers and lists of them.
    add("/docs/openapi.json", MediaType::Json, serde_json::to_vec(openapi).unwrap_or_default());
    let openapi_3_0 = to_3_0(serde_json::to_value(openapi).unwrap_or_default()).to_string();
    add("/docs/openapi-3.0.json", MediaType::Json, openapi_3_0.into());
    add("/docs/changelog.atom", MediaType::Atom, changelog::feed(url).into());
    documents
}

/// The path of a request, as the documents have it.
fn decoded(uri: &Uri) -> Cow<'_, str> {
    percent_decode_str(uri.path()).decode_utf8_lossy()
}

/// A page whose requests are for the newest chart of the instance, or for the samples while that cannot be
/// read.
pub(crate) async fn live(
    State(docs): State<Arc<ApiDocs>>,
    uri: Uri,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let path = decoded(&uri);
    let (page, media_type) = docs.at(&path)?;
    let name = format!("docs {path}");
    let fill = async move |pages: Arc<PagesState>| {
        let html = String::from_utf8_lossy(page.bytes()).into_owned();
        let newest = pages.store.newest_chart().await.unwrap_or_default();
        Ok(Some(match newest {
            None => html,
            Some(newest) => live_links::with_newest(&html, newest),
        }))
    };
    let pages = Arc::clone(&docs.pages);
    let body = pages.read(name.as_bytes(), Resource::Endpoint, &headers, fill).await?;
    Ok(body.into_response(&headers, CachePolicy::Page, media_type))
}

/// A page or a document that every instance has.
pub(crate) async fn document(
    State(docs): State<Arc<ApiDocs>>,
    uri: Uri,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let (body, media_type) = docs.at(&decoded(&uri))?;
    Ok(body.into_response(&headers, CachePolicy::Page, media_type))
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
