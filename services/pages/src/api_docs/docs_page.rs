//! `/docs`: the API reference as a page, with the facts of the OpenAPI document at each operation.

use askama::Template;
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::{RefOr, Required};

use super::markdown::to_html;
use super::openapi_words::{anchor, is_of, section_of};
use super::reference::{self, Section};
use super::snippets;
use crate::layout::Layout;
use crate::render::render;
use crate::settings::PublicUrl;

/// The changes of the API, in the sections `### API` of each version.
const CHANGELOG: &str = include_str!("../../../../CHANGELOG.md");

/// Sections that are not on this page: the health endpoints are on a private listener, and the note hash has a page.
const ELSEWHERE: [&str; 2] = ["Health endpoints", "Note hash"];

#[derive(Template)]
#[template(path = "api_docs/docs.html")]
struct DocsTemplate {
    layout: Layout,
    introduction: String,
    parts: Vec<Part>,
    snippets: &'static [snippets::Snippet],
    hash_filter_snippets: &'static [snippets::Snippet],
    changelog: String,
}

/// A section of the reference.
struct Part {
    anchor: String,
    heading: &'static str,
    /// The operation that it describes.
    operation: Option<OperationFacts>,
    /// HTML of docs/api.md.
    html: String,
}

/// What the OpenAPI document says of an operation.
struct OperationFacts {
    method: &'static str,
    path: String,
    /// The target of an example that is a success, for a link.
    live: Option<&'static str>,
    parameters: Vec<ParameterFacts>,
    statuses: String,
    is_extension: bool,
}

struct ParameterFacts {
    name: String,
    place: &'static str,
    is_required: bool,
}

/// The page.
pub(crate) fn page(document: &OpenApi, public_url: Option<&PublicUrl>) -> String {
    let sections = reference::sections().filter(|section| !ELSEWHERE.contains(&section.heading));
    let template = DocsTemplate {
        layout: Layout {
            description: "The API of the chart index: operations, errors, limits, examples".to_owned(),
            json: Some("/docs/openapi.json".to_owned()),
            ..Layout::new("API", "/docs", public_url)
        },
        introduction: to_html(reference::introduction()),
        parts: sections.map(|section| part(section, document)).collect(),
        snippets: snippets::CLIENTS,
        hash_filter_snippets: snippets::HASH_FILTER,
        changelog: to_html(&changelog()),
    };
    render(&template).unwrap_or_default()
}

fn part(section: Section, document: &OpenApi) -> Part {
    let operations = document.paths.paths.iter().flat_map(|(path, item)| {
        let of_methods = [("GET", &item.get), ("POST", &item.post)];
        of_methods
            .into_iter()
            .filter_map(move |(method, operation)| Some((method, path, operation.as_ref()?)))
    });
    let mut described = operations
        .filter(|(method, path, _)| section_of(method, path).is_some_and(|(_, one)| one == section));
    Part {
        anchor: anchor(section.heading),
        heading: section.heading,
        operation: described.next().map(|(method, path, operation)| facts(method, path, operation)),
        html: to_html(section.text),
    }
}

fn facts(method: &'static str, path: &str, operation: &Operation) -> OperationFacts {
    let mut examples = reference::examples().filter(|example| is_of(method, path, example));
    let success = examples.find(|example| matches!(example.status, "200" | "302"));
    let live = success.filter(|_| method == "GET").map(|example| example.target);
    let parameters = operation.parameters.iter().flatten().filter_map(|parameter| match parameter {
        RefOr::T(parameter) => Some(parameter_facts(parameter)),
        RefOr::Ref(_) => None,
    });
    let statuses: Vec<&str> = operation.responses.responses.keys().map(String::as_str).collect();
    let is_extension = operation.extensions.as_ref().is_some_and(|all| all.contains_key("x-extension"));
    OperationFacts {
        method,
        path: path.to_owned(),
        live,
        parameters: parameters.collect(),
        statuses: statuses.join(", "),
        is_extension,
    }
}

fn parameter_facts(parameter: &Parameter) -> ParameterFacts {
    let place = match parameter.parameter_in {
        ParameterIn::Path => "path",
        ParameterIn::Header => "header",
        _ => "query",
    };
    ParameterFacts { name: parameter.name.clone(), place, is_required: parameter.required == Required::True }
}

/// The changes of the API of each version, newest first, as Markdown.
fn changelog() -> String {
    let mut changes = String::new();
    for version in CHANGELOG.split("\n## ").skip(1) {
        let name = version.lines().next().unwrap_or_default();
        let api = version.split("\n### API\n").nth(1).and_then(|rest| rest.split("\n### ").next());
        if let Some(api) = api {
            changes.extend(["### ", name, "\n", api, "\n"]);
        }
    }
    changes
}
