//! `GET /identify`: identifies chart files, which a script hashes in the browser (decision 0084).

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chart_index_domain::SourceKind;
use chart_index_http::{ApiError, CachePolicy, MediaType, RequestHeaders, TextBody};

use crate::PagesState;
use crate::filter_form::source_name;
use crate::layout::Layout;
use crate::level;
use crate::render::render;

#[derive(Template)]
#[template(path = "identify.html", whitespace = "minimize")]
struct IdentifyTemplate {
    layout: Layout,
    alpha_set: &'static str,
    beta_pack: &'static str,
    /// Where the colours of levels begin, by rating in hundredths and by peak density.
    rating_stops: String,
    density_stops: String,
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
        ..Layout::new("Identify files", "/identify", state.settings.public_url.as_ref())
    };
    let html = render(&IdentifyTemplate {
        layout,
        alpha_set: source_name(SourceKind::AlphaSet),
        beta_pack: source_name(SourceKind::BetaPack),
        rating_stops: level::STOPS.map(|stop| stop.to_string()).join(" "),
        density_stops: level::DENSITY_STOPS.map(|stop| stop.to_string()).join(" "),
    })?;
    Ok(TextBody::new(html).into_response(&headers, CachePolicy::Page, MediaType::Html))
}
