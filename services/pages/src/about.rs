//! `GET /about`: what the site is, and how to reach its operator.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chart_index_cli::DataLicense;
use chart_index_http::{ApiError, CachePolicy, MediaType, RequestHeaders, TextBody};

use url::Url;

use crate::PagesState;
use crate::layout::Layout;
use crate::render::render;

#[derive(Template)]
#[template(path = "about.html", whitespace = "minimize")]
struct AboutTemplate {
    layout: Layout,
    contact: Option<Contact>,
    license: Option<DataLicense>,
    terms: Option<Url>,
}

/// How to reach the operator.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Contact {
    pub(crate) text: String,
    /// The URL of a link; `None` if the text is neither a URL nor an e-mail address.
    pub(crate) url: Option<String>,
}

impl Contact {
    pub(crate) fn new(text: &str) -> Self {
        let is_url = ["https://", "http://", "mailto:"].iter().any(|scheme| text.starts_with(scheme));
        let is_address = text.contains('@') && !text.contains(char::is_whitespace);
        let url = if is_url { Some(text.to_owned()) } else { is_address.then(|| format!("mailto:{text}")) };
        Self { text: text.strip_prefix("mailto:").unwrap_or(text).to_owned(), url }
    }
}

/// `GET /about`.
pub(crate) async fn about(
    State(state): State<Arc<PagesState>>,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let settings = &state.settings;
    let layout = Layout {
        description: "What this index holds, how to reach its operator, and how to have an entry removed."
            .to_owned(),
        ..Layout::new("About", "/about", settings.public_url.as_ref())
    };
    let operator = settings.operator.clone();
    let html = render(&AboutTemplate {
        layout,
        contact: operator.contact.as_deref().map(Contact::new),
        license: operator.data_license,
        terms: operator.terms_url,
    })?;
    Ok(TextBody::new(html).into_response(&headers, CachePolicy::Page, MediaType::Html))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_urls_are_links() {
        for (contact, text, url) in [
            ("a@b.example", "a@b.example", Some("mailto:a@b.example")),
            ("mailto:a@b.example", "a@b.example", Some("mailto:a@b.example")),
            ("https://b.example/contact", "https://b.example/contact", Some("https://b.example/contact")),
            ("ask @zoe in the chat", "ask @zoe in the chat", None),
            ("javascript:alert(1)", "javascript:alert(1)", None),
        ] {
            assert_eq!(Contact::new(contact), Contact { text: text.to_owned(), url: url.map(str::to_owned) });
        }
    }
}
