//! `/docs` and the pages below it: docs/api.md, with the facts of the OpenAPI document at each operation, and
//! docs/formats.

use std::collections::BTreeMap;

use askama::Template;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::{OpenApi, RefOr, Required};

use super::markdown::to_html;
use super::openapi_words::{anchor, is_of, section_of};
use super::reference::{self, DOCUMENTS, Document, Section};
use super::{note_hash_vectors, snippets};
use crate::layout::Layout;
use crate::render::render;
use crate::settings::PublicUrl;

/// The changes of the API, in the sections `### API` of each version.
const CHANGELOG: &str = include_str!("../../../../CHANGELOG.md");

#[derive(Template)]
#[template(path = "api_docs/docs.html")]
struct DocsTemplate {
    layout: Layout,
    page: Page,
    introduction: String,
    /// For the navigation.
    documents: &'static [Document],
}

/// A document, with the sections of its page.
struct Page {
    document: &'static Document,
    parts: Vec<Part>,
}

/// A section of a page.
struct Part {
    anchor: String,
    heading: &'static str,
    /// The operation that it describes.
    operation: Option<OperationFacts>,
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

#[derive(Template)]
#[template(path = "api_docs/snippets.html")]
struct SnippetsTemplate {
    introduction: String,
    snippets: &'static [snippets::Snippet],
}

/// The HTML of the pages of all documents, by their paths.
pub(crate) fn pages(openapi: &OpenApi, public_url: Option<&PublicUrl>) -> BTreeMap<&'static str, String> {
    let html = |document: &'static Document| {
        let template = DocsTemplate {
            layout: Layout {
                description: document.description.to_owned(),
                json: (document.path == "/docs").then(|| "/docs/openapi.json".to_owned()),
                ..Layout::new(document.title(), document.path, public_url)
            },
            page: Page::new(document, openapi),
            introduction: to_html(document.introduction()),
            documents: &DOCUMENTS,
        };
        (document.path, render(&template).unwrap_or_default())
    };
    DOCUMENTS.iter().map(html).collect()
}

impl Page {
    fn new(document: &'static Document, openapi: &OpenApi) -> Self {
        let mut parts: Vec<Part> =
            document.sections().map(|section| Part::of_section(section, openapi)).collect();
        if let Some(examples) = snippets::of_page(document.path) {
            let introduction = to_html(examples.introduction);
            let template = SnippetsTemplate { introduction, snippets: examples.snippets };
            parts.push(Part::new("Examples in code", render(&template).unwrap_or_default()));
        }
        if document.path == "/docs" {
            parts.push(Part::new("Changelog", to_html(&changelog())));
        }
        Self { document, parts }
    }
}

impl Part {
    fn new(heading: &'static str, html: String) -> Self {
        Self { anchor: anchor(heading), heading, operation: None, html }
    }

    fn of_section(section: Section, openapi: &OpenApi) -> Self {
        let operations = openapi.paths.paths.iter().flat_map(|(path, item)| {
            let of_methods = [("GET", &item.get), ("POST", &item.post)];
            of_methods
                .into_iter()
                .filter_map(move |(method, operation)| Some((method, path, operation.as_ref()?)))
        });
        let mut described = operations
            .filter(|(method, path, _)| section_of(method, path).is_some_and(|(_, one)| one == section));
        let html = match section.heading {
            note_hash_vectors::SECTION => note_hash_vectors::section_html(section.text),
            _ => to_html(section.text),
        };
        Self {
            operation: described.next().map(|(method, path, operation)| facts(method, path, operation)),
            ..Self::new(section.heading, html)
        }
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
