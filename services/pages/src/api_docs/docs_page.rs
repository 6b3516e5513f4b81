//! `/docs` and the pages below it: a page for each section of docs/api.md, with the facts of the OpenAPI
//! document at each operation, and one for each document of docs/formats.

use askama::Template;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{OpenApi, RefOr};

use super::markdown::{inline_html, to_html};
use super::openapi_words::{is_of, section_of};
use super::reference::{self, DOCUMENTS, Document, Section, anchor};
use super::requests::{self, Request};
use super::{note_hash_vectors, snippets};
use crate::layout::Layout;
use crate::render::render;
use crate::settings::PublicUrl;

/// The changes of the API, in the sections `### API` of each version.
const CHANGELOG: &str = include_str!("../../../../CHANGELOG.md");

/// A page of the documentation.
pub(crate) struct Page {
    pub(crate) path: String,
    pub(crate) title: &'static str,
    description: String,
    /// HTML before the parts.
    introduction: String,
    operations: Vec<OperationFacts>,
    /// The request of an example, in several languages.
    requests: Vec<Request>,
    /// HTML after the operations.
    html: String,
    errors: Vec<ErrorFacts>,
    /// The sections of a document that has one page.
    pub(crate) parts: Vec<Part>,
}

/// A section of a page.
pub(crate) struct Part {
    pub(crate) anchor: String,
    pub(crate) heading: &'static str,
    pub(crate) html: String,
}

/// What the OpenAPI document says of an operation.
struct OperationFacts {
    method: &'static str,
    path: String,
    /// The target of an example that is a success, for a link.
    live: Option<&'static str>,
    parameters: Vec<String>,
    is_extension: bool,
}

/// An error that an operation may respond with.
struct ErrorFacts {
    status: &'static str,
    problem_type: &'static str,
    /// HTML.
    advice: String,
}

/// A group of links of the navigation.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) links: Vec<NavigationLink>,
}

pub(crate) struct NavigationLink {
    pub(crate) path: String,
    pub(crate) label: &'static str,
    /// The method of the operation that the page describes.
    pub(crate) method: Option<&'static str>,
    /// The anchor that the section had when the reference was one page.
    pub(crate) anchor: String,
    /// The sections of the page.
    pub(crate) parts: Vec<(String, &'static str)>,
}

#[derive(Template)]
#[template(path = "api_docs/docs.html")]
struct DocsTemplate<'a> {
    layout: Layout,
    page: &'a Page,
    groups: &'a [Group],
}

#[derive(Template)]
#[template(path = "api_docs/all.html")]
struct AllTemplate<'a> {
    layout: Layout,
    pages: &'a [Page],
}

#[derive(Template)]
#[template(path = "api_docs/snippets.html")]
struct SnippetsTemplate {
    introduction: String,
    snippets: &'static [snippets::Snippet],
}

/// All pages, in the order of the navigation.
pub(crate) struct Docs {
    pub(crate) pages: Vec<Page>,
    groups: Vec<Group>,
}

impl Docs {
    pub(crate) fn new(openapi: &OpenApi, public_url: Option<&PublicUrl>) -> Self {
        let api = reference::api();
        let sections = api.sections.iter().filter(|section| !reference::is_in_overview(section.heading));
        let mut pages = vec![Page::overview(api)];
        pages.extend(sections.map(|section| Page::of_section(*section, openapi, public_url)));
        pages.extend(Page::examples(api.path));
        pages.push(Page::text("Changelog", to_html(&changelog())));
        pages.extend(DOCUMENTS.iter().skip(1).map(Page::of_document));
        let groups = groups(&pages);
        Self { pages, groups }
    }

    /// The HTML of a page.
    pub(crate) fn html(&self, page: &Page, public_url: Option<&PublicUrl>) -> String {
        let layout = Layout {
            description: page.description.clone(),
            json: (page.path == "/docs").then(|| "/docs/openapi.json".to_owned()),
            ..Layout::new(page.title, page.path.as_str(), public_url)
        };
        render(&DocsTemplate { layout, page, groups: &self.groups }).unwrap_or_default()
    }

    /// The HTML of all pages as one, for printing.
    pub(crate) fn all(&self, public_url: Option<&PublicUrl>) -> String {
        let layout = Layout {
            description: "The documentation of the API and of all formats as one page".to_owned(),
            ..Layout::new("All documentation", "/docs/all", public_url)
        };
        render(&AllTemplate { layout, pages: &self.pages }).unwrap_or_default()
    }

    /// The navigation with what a search has found.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }
}

/// The groups of the navigation.
fn groups(pages: &[Page]) -> Vec<Group> {
    let link = |page: &Page| NavigationLink {
        path: page.path.clone(),
        label: page.title,
        method: page.operations.first().map(|operation| operation.method),
        anchor: page.path.rsplit('/').next().unwrap_or_default().to_owned(),
        parts: page.parts.iter().map(|part| (part.anchor.clone(), part.heading)).collect(),
    };
    let group = |name, is_in: &dyn Fn(&Page) -> bool| Group {
        name,
        links: pages.iter().filter(|page| is_in(page)).map(link).collect(),
    };
    let is_api = |page: &Page| page.path == "/docs" || page.path.starts_with("/docs/api/");
    vec![
        group("API", &|page| is_api(page) && page.operations.is_empty()),
        group("Endpoints", &|page| !page.operations.is_empty()),
        group("Formats", &|page| !is_api(page)),
    ]
}

impl Page {
    /// A page with a text only.
    fn text(title: &'static str, html: String) -> Self {
        Self {
            path: format!("/docs/api/{}", anchor(title)),
            title,
            description: format!("{title} of the API of the chart index"),
            introduction: String::new(),
            operations: Vec::new(),
            requests: Vec::new(),
            html,
            errors: Vec::new(),
            parts: Vec::new(),
        }
    }

    fn overview(api: &'static Document) -> Self {
        let in_overview = api.sections.iter().filter(|section| reference::is_in_overview(section.heading));
        Self {
            path: api.path.to_owned(),
            description: api.description.to_owned(),
            introduction: to_html(api.introduction()),
            parts: in_overview.map(|section| Part::new(section.heading, to_html(section.text))).collect(),
            ..Self::text(api.title(), String::new())
        }
    }

    fn of_section(section: Section, openapi: &OpenApi, public_url: Option<&PublicUrl>) -> Self {
        let operations: Vec<_> = openapi
            .paths
            .paths
            .iter()
            .flat_map(|(path, item)| {
                let of_methods = [("GET", &item.get), ("POST", &item.post)];
                of_methods
                    .into_iter()
                    .filter_map(move |(method, operation)| Some((method, path, operation.as_ref()?)))
            })
            .filter(|(method, path, _)| section_of(method, path).is_some_and(|(_, one)| one == section))
            .collect();
        let requested = operations.first().and_then(|(method, path, _)| success(method, path));
        Self {
            requests: requested.map_or_else(Vec::new, |example| requests::of(&example, public_url)),
            errors: errors(&operations),
            operations: operations
                .iter()
                .map(|(method, path, operation)| facts(method, path, operation))
                .collect(),
            // The heading of the section is that of the page.
            ..Self::text(section.heading, to_html(&section.text.replace("\n### ", "\n## ")))
        }
    }

    fn of_document(document: &'static Document) -> Self {
        let part = |section: &Section| {
            let html = match section.heading {
                note_hash_vectors::SECTION => note_hash_vectors::section_html(section.text),
                _ => to_html(section.text),
            };
            Part::new(section.heading, html)
        };
        let mut parts: Vec<Part> = document.sections.iter().map(part).collect();
        parts.extend(Self::examples(document.path).map(|page| Part::new(page.title, page.html)));
        Self {
            path: document.path.to_owned(),
            description: document.description.to_owned(),
            introduction: to_html(document.introduction()),
            parts,
            ..Self::text(document.title(), String::new())
        }
    }

    /// The examples in code of the document with this page.
    fn examples(path: &str) -> Option<Self> {
        let examples = snippets::of_page(path)?;
        let introduction = to_html(examples.introduction);
        let template = SnippetsTemplate { introduction, snippets: examples.snippets };
        Some(Self::text("Examples in code", render(&template).unwrap_or_default()))
    }

    /// The HTML of the page with headings from level 3 on, without anchors, for the page of all pages.
    fn all_html(&self) -> String {
        let heading = |part: &Part| format!("<h2>{}</h2>\n{}", part.heading, part.html);
        let parts: String = self.parts.iter().map(heading).collect::<Vec<_>>().concat();
        let mut html = format!("{}{}{parts}", self.introduction, self.html);
        for level in [4, 3, 2] {
            let lower = level + 1;
            html = html.replace(&format!("<h{level}"), &format!("<h{lower}"));
            html = html.replace(&format!("</h{level}>"), &format!("</h{lower}>"));
        }
        let mut parts = html.split(" id=\"");
        let first = parts.next().unwrap_or_default();
        let others = parts.filter_map(|part| Some(part.split_once('"')?.1));
        std::iter::once(first).chain(others).collect()
    }

    /// The text of the page without its markup, for searches.
    pub(crate) fn plain_text(&self) -> String {
        let parts = self.parts.iter().flat_map(|part| [part.heading, &part.html]);
        let html =
            [self.introduction.as_str(), &self.html].into_iter().chain(parts).collect::<Vec<_>>().join(" ");
        let text: String =
            html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
        let text =
            text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl Part {
    fn new(heading: &'static str, html: String) -> Self {
        Self { anchor: anchor(heading), heading, html }
    }
}

/// The first example of an operation that is a success.
fn success(method: &str, path: &str) -> Option<reference::Example<'static>> {
    let mut examples = reference::examples().filter(|example| is_of(method, path, example));
    examples.find(|example| matches!(example.status, "200" | "302" | "303"))
}

fn facts(method: &'static str, path: &str, operation: &Operation) -> OperationFacts {
    let parameters = operation.parameters.iter().flatten().filter_map(|parameter| match parameter {
        RefOr::T(parameter) => Some(parameter.name.clone()),
        RefOr::Ref(_) => None,
    });
    OperationFacts {
        method,
        path: path.to_owned(),
        live: success(method, path).filter(|_| method == "GET").map(|example| example.target),
        parameters: parameters.collect(),
        is_extension: operation.extensions.as_ref().is_some_and(|all| all.contains_key("x-extension")),
    }
}

/// The errors of operations, by their statuses, with what to do.
fn errors(operations: &[(&'static str, &String, &Operation)]) -> Vec<ErrorFacts> {
    let has_body = operations.iter().any(|(method, ..)| *method == "POST");
    let has_hash = has_body || operations.iter().any(|(_, path, _)| path.contains("{hash}"));
    let statuses: Vec<&String> =
        operations.iter().flat_map(|(.., operation)| operation.responses.responses.keys()).collect();
    let rows = reference::rows(reference::section("Errors"), "`type`");
    rows.into_iter()
        .filter_map(|row| {
            let (problem_type, [status, _condition, advice, ..]) = (*row.names.first()?, &row.cells[..])
            else {
                return None;
            };
            // Statuses of several types, of which some are about a body or a hash.
            let applies = match problem_type {
                "/problems/malformed-body" => has_body,
                "/problems/malformed-hash" => has_hash,
                _ => true,
            };
            let is_of_operation = applies && statuses.iter().any(|one| one == status);
            is_of_operation.then(|| ErrorFacts { status, problem_type, advice: inline_html(advice) })
        })
        .collect()
}

/// The changes of the API of each version, newest first, as Markdown.
fn changelog() -> String {
    let mut changes = String::new();
    for version in CHANGELOG.split("\n## ").skip(1) {
        let name = version.lines().next().unwrap_or_default();
        let api = version.split("\n### API\n").nth(1).and_then(|rest| rest.split("\n### ").next());
        if let Some(api) = api {
            changes.extend(["## ", name, "\n", api, "\n"]);
        }
    }
    changes
}
