//! Errors as pages.

use askama::Template;
use chart_index_http::{ErrorPage, ErrorPages};

use crate::layout::Layout;
use crate::render::render;

#[derive(Template)]
#[template(path = "error.html", whitespace = "minimize")]
struct ErrorTemplate<'a> {
    layout: Layout,
    error: &'a ErrorPage,
}

/// The pages of all errors outside of the API.
pub(crate) fn error_pages() -> ErrorPages {
    ErrorPages::new(|error| {
        let template = ErrorTemplate { layout: Layout::not_indexed(error.title), error };
        render(&template).unwrap_or_else(|_| error.title.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_the_detail_escaped_and_the_seconds() {
        let error = ErrorPage {
            status: 400,
            title: "Bad request",
            detail: "at most <240>".to_owned(),
            problem_type: "/problems/invalid-parameter",
            retry_after_seconds: Some(17),
        };
        let html = render(&ErrorTemplate { layout: Layout::not_indexed("x"), error: &error }).unwrap();
        for part in
            ["data-retry-after=\"17\"", "at most &#60;240&#62;", "/problems/invalid-parameter", "noindex"]
        {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}
