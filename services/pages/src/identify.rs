//! `GET /identify`: identifies chart files, which a script hashes in the browser (decision 0084).

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chart_index_http::{ApiError, CachePolicy, MediaType, RequestHeaders, TextBody};

use crate::PagesState;
use crate::layout::Layout;
use crate::render::render;

#[derive(Template)]
#[template(path = "identify.html", whitespace = "minimize")]
struct IdentifyTemplate {
    layout: Layout,
}

/// `GET /identify`.
pub(crate) async fn identify(
    State(state): State<Arc<PagesState>>,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let layout = Layout {
        description:
            "Which chart is this .osu, .qua, .sm or .ssc file? Files, folders and archives are read in the \
                      browser and found by their notes."
                .to_owned(),
        ..Layout::new("Identify a file", "/identify", state.settings.public_url.as_ref())
    };
    let html = render(&IdentifyTemplate { layout })?;
    Ok(TextBody::new(html).into_response(&headers, CachePolicy::Page, MediaType::Html))
}
