//! `/problems/{slug}`: what an error means, and what to do.

use askama::Template;
use chart_index_http::ErrorType;

use super::markdown::{inline_html, to_html};
use super::reference;
use crate::layout::Layout;
use crate::render::render;
use crate::settings::PublicUrl;

#[derive(Template)]
#[template(path = "api_docs/problem.html")]
struct ProblemTemplate {
    layout: Layout,
    title: &'static str,
    problem_type: &'static str,
    status: u16,
    reason: &'static str,
    /// HTML of docs/api.md.
    meaning: String,
    /// HTML of docs/api.md.
    advice: String,
    /// An example of docs/api.md as HTML; empty if it has none.
    example: String,
}

/// The page of a problem type.
pub(crate) fn page(kind: ErrorType, public_url: Option<&PublicUrl>) -> String {
    let problem_type = kind.problem_type();
    let rows = reference::rows(reference::section("Errors"), "`type`");
    let cells = rows.iter().find(|row| row.names == [problem_type]).map_or(&[][..], |row| &row.cells);
    let cell = |index: usize| cells.get(index).map_or_else(String::new, |text| inline_html(text));
    let template = ProblemTemplate {
        layout: Layout {
            description: format!("What the error {problem_type} of the API means, and what to do"),
            ..Layout::new(kind.title(), problem_type, public_url)
        },
        title: kind.title(),
        problem_type,
        status: kind.status().as_u16(),
        reason: kind.status().canonical_reason().unwrap_or_default(),
        meaning: cell(1),
        advice: cell(2),
        example: example(problem_type).map_or_else(String::new, |block| to_html(&block)),
    };
    render(&template).unwrap_or_default()
}

/// The example of docs/api.md that has this error, as Markdown.
fn example(problem_type: &str) -> Option<String> {
    let body = format!("\"type\": \"{problem_type}\"");
    let block = reference::example_blocks().find(|block| block.contains(&body))?;
    Some(format!("```http\n{block}```\n"))
}
