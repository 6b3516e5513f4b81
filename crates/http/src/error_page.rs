//! Error responses as HTML, for people who open a page outside of the API.

use std::fmt;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;

use crate::error::PROBLEM_JSON;
use crate::request_id::X_REQUEST_ID;
use crate::{ApiError, Resource, content_encoding, html_headers};

/// Paths below this are the API: their errors are always problem details.
const API: &str = "/api/";

/// What the template of an error page needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorPage {
    /// The HTTP status code.
    pub status: u16,
    /// The same for every error of this type.
    pub title: &'static str,
    /// What is wrong with this request.
    pub detail: String,
    /// What does not exist, if that is the error.
    pub missing: Option<Resource>,
    /// The type of the problem, such as `/problems/not-found`.
    pub problem_type: &'static str,
    /// The value of `Retry-After`, in seconds.
    pub retry_after_seconds: Option<u32>,
    /// The id of the request, by which an operator finds it in the log.
    pub request_id: String,
    /// Whether pages of other sites may show it in a frame.
    pub is_framed: bool,
}

/// Renders error pages, with the function that it was given.
#[derive(Clone)]
pub struct ErrorPages(Arc<dyn Fn(&ErrorPage) -> String + Send + Sync>);

impl ErrorPages {
    /// Pages rendered by this function.
    pub fn new(render: impl Fn(&ErrorPage) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(render))
    }

    /// What to do with an error response to this request; `None` if its errors are problem details in any case.
    pub(crate) fn negotiate(&self, request: &Request) -> Option<NegotiatedErrorPage> {
        let is_api = request.uri().path().starts_with(API);
        (!is_api)
            .then(|| NegotiatedErrorPage { pages: prefers_html(request.headers()).then(|| self.clone()) })
    }

    /// The page for the error of a response; `None` without an error.
    fn render(&self, response: &Response, is_framed: bool) -> Option<String> {
        if let Some(ErrorInPage(html)) = response.extensions().get() {
            return Some(html.clone());
        }
        let error = response.extensions().get::<Arc<ApiError>>()?;
        let request_id = response.headers().get(X_REQUEST_ID)?.to_str().ok()?;
        Some((self.0)(&ErrorPage { is_framed, ..error.page(request_id) }))
    }
}

/// A page that shows an error at its place, such as at the field of a form: an extension of the response, whose
/// body it is if the client prefers HTML.
#[derive(Debug, Clone)]
pub struct ErrorInPage(pub String);

impl fmt::Debug for ErrorPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErrorPages").finish_non_exhaustive()
    }
}

/// The form of errors that a request outside of the API has negotiated.
pub(crate) struct NegotiatedErrorPage {
    /// `None` if the client does not prefer HTML.
    pages: Option<ErrorPages>,
}

impl NegotiatedErrorPage {
    /// Replaces problem details by a page, if the client prefers it. Names the header that decided.
    pub(crate) fn replace_problem(self, response: &mut Response, is_framed: bool) {
        if response.headers().get(CONTENT_TYPE) != Some(&PROBLEM_JSON) {
            return;
        }
        response.headers_mut().append(VARY, HeaderValue::from_name(ACCEPT));
        if let Some(html) = self.pages.and_then(|pages| pages.render(response, is_framed)) {
            response.headers_mut().insert(CONTENT_TYPE, html_headers::HTML);
            *response.body_mut() = html.into();
        }
    }
}

impl ApiError {
    fn page(&self, request_id: &str) -> ErrorPage {
        let error_type = self.error_type();
        let seconds = self.retry_after();
        ErrorPage {
            status: error_type.status().as_u16(),
            title: error_type.title(),
            detail: self.detail().into_owned(),
            missing: if let Self::NotFound(resource) = self { Some(*resource) } else { None },
            problem_type: error_type.problem_type(),
            retry_after_seconds: seconds.and_then(|seconds| seconds.to_str().ok()?.parse().ok()),
            request_id: request_id.to_owned(),
            is_framed: false,
        }
    }
}

/// Whether `Accept` weighs HTML above JSON (RFC 9110, section 12.5.1). A client that accepts anything gets
/// problem details.
fn prefers_html(headers: &HeaderMap) -> bool {
    let mut html = Accepted::default();
    let mut json = Accepted::default();
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    for element in lines.flat_map(|line| line.split(',')) {
        let (range, parameters) = element.split_once(';').unwrap_or((element, ""));
        let is_weight = |parameter: &&str| parameter.trim_start().starts_with(['q', 'Q']);
        let quality = content_encoding::quality(parameters.split(';').find(is_weight).unwrap_or_default());
        match range.trim().to_ascii_lowercase().as_str() {
            "text/html" => html.accept(2, quality),
            "text/*" => html.accept(1, quality),
            "application/problem+json" | "application/json" => json.accept(2, quality),
            "application/*" => json.accept(1, quality),
            "*/*" => {
                html.accept(0, quality);
                json.accept(0, quality);
            }
            _ => {}
        }
    }
    html.quality > json.quality
}

/// The weight of a media type, from the most specific range that includes it.
#[derive(Default)]
struct Accepted {
    specificity: u8,
    quality: u32,
}

impl Accepted {
    fn accept(&mut self, specificity: u8, quality: u32) {
        if specificity >= self.specificity {
            *self = Self { specificity, quality };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_prefer_html_and_programs_do_not() {
        for (accept, expected) in [
            (None, false),
            (Some("*/*"), false),
            (Some("application/json"), false),
            (Some("text/html"), true),
            (Some("Text/HTML; charset=utf-8"), true),
            (Some("application/json; charset=utf-8, text/html; level=1; q=0.1"), false),
            (Some("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"), true),
            (Some("application/json, text/html;q=0.9"), false),
            (Some("application/json;q=0.5, text/html"), true),
            (Some("text/*"), true),
            (Some("text/html;q=0, */*"), false),
            (Some("application/problem+json"), false),
        ] {
            let headers =
                accept.map(|accept| (ACCEPT, HeaderValue::from_static(accept))).into_iter().collect();
            assert_eq!(prefers_html(&headers), expected, "{accept:?}");
        }
    }
}
