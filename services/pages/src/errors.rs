//! Errors as pages.

use askama::Template;
use chart_index_http::{ErrorPage, ErrorPages, Resource};

use crate::layout::Layout;
use crate::render::render;

#[derive(Template)]
#[template(path = "error.html", whitespace = "minimize")]
struct ErrorTemplate<'a> {
    layout: Layout,
    heading: &'static str,
    /// What is wrong; a sentence without its full stop.
    sentence: &'a str,
    error: &'a ErrorPage,
}

impl<'a> ErrorTemplate<'a> {
    fn new(error: &'a ErrorPage) -> Self {
        let (heading, sentence) = words(error);
        Self { layout: Layout::not_indexed(heading), heading, sentence, error }
    }
}

/// The pages of all errors outside of the API.
pub(crate) fn error_pages() -> ErrorPages {
    ErrorPages::new(|error| render(&ErrorTemplate::new(error)).unwrap_or_else(|_| error.title.to_owned()))
}

/// The heading of an error, and what is wrong.
fn words(error: &ErrorPage) -> (&'static str, &str) {
    match (error.status, error.missing) {
        (_, Some(Resource::Chart | Resource::RoxFile)) => (
            "No chart is at this address",
            "Its notes may have changed, and with them its hash, or its creator had it removed",
        ),
        (_, Some(Resource::Chartset)) => (
            "No set is at this address",
            "Its creator may have had it removed, or a part of the address is missing",
        ),
        (_, Some(Resource::SourcePage)) => {
            ("No download is at this address", "The set has no page of its own, or it has been removed")
        }
        (_, Some(Resource::ChartSourcePage)) => {
            ("No download is at this address", "The chart has no page of its own, or it has been removed")
        }
        (_, Some(Resource::Pack)) => ("No pack is at this address", "None of its sets is in the index"),
        (_, Some(Resource::Creator)) => (
            "No creator has this name",
            "Names are those in the files of the index, in upper and lower case as they are there",
        ),
        (_, Some(Resource::AnyChartset)) => ("No set matches", "Leave out one of the filters"),
        (404, _) => ("No page is at this address", "A part of it may be missing, or the page has moved"),
        (429, _) => (
            "Too many pages in a minute",
            "The limit is for your whole network. The page opens by itself as soon as it may",
        ),
        (503, _) => (error.title, "It usually returns within a minute, and nothing is lost"),
        _ => (error.title, &error.detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detail_is_escaped() {
        let error = ErrorPage {
            status: 400,
            title: "Bad request",
            detail: "at most <240>".to_owned(),
            missing: None,
            problem_type: "/problems/invalid-parameter",
            retry_after_seconds: None,
            request_id: String::new(),
            is_framed: false,
        };
        let html = render(&ErrorTemplate::new(&error)).unwrap();
        assert!(html.contains("at most &#60;240&#62;"), "{html}");
    }
}
