//! The documents for authors of clients, docs/api.md and docs/formats: their sections, tables and examples. The
//! pages and the OpenAPI document take their words and examples from them.

use std::sync::LazyLock;

/// A document and its page.
#[derive(Debug)]
pub(crate) struct Document {
    /// The path of the page.
    pub(crate) path: &'static str,
    /// What the page is about, for search engines.
    pub(crate) description: &'static str,
    /// The Markdown. Links to documents lead to their pages.
    text: &'static str,
    /// The sections of level 2, in order.
    pub(crate) sections: Vec<Section>,
}

/// All documents: the API reference, then the formats.
pub(crate) static DOCUMENTS: LazyLock<Vec<Document>> =
    LazyLock::new(|| SOURCES.iter().map(Document::new).collect());

/// A document as it is in the repository.
struct Source {
    /// The name of the file.
    name: &'static str,
    path: &'static str,
    description: &'static str,
    text: &'static str,
}

macro_rules! source {
    ($name:literal, $description:literal) => {
        Source {
            name: concat!($name, ".md"),
            path: concat!("/docs/", $name),
            description: $description,
            text: include_str!(concat!("../../../../docs/formats/", $name, ".md")),
        }
    };
}

const SOURCES: [Source; 13] = [
    Source {
        name: "api.md",
        path: "/docs",
        description: "The API of the chart index: operations, errors, limits, examples",
        text: include_str!("../../../../docs/api.md"),
    },
    source!("note-hash", "How to compute the note hash of a chart, with test vectors"),
    source!(
        "readers",
        "Which libraries read chart files as their games do, and the files of the chart index"
    ),
    source!("variant", "How to compute the variant of a chart, with test vectors"),
    source!("rating", "How the difficulty of a chart is rated, with test vectors"),
    source!("patterns", "How the rows of a chart are classified, with test vectors"),
    source!("records", "Charts, chartsets and sources of the chart index as JSON"),
    source!("rox", "What the ROX files of the chart index contain"),
    source!("preview", "The notes and the timing of a chart as JSON"),
    source!("hash-filter", "How to read the file that tells which charts are unknown"),
    source!("change-feed", "How to mirror the chart index"),
    source!("exports", "The chart index as files"),
    source!("catalogue", "The chart index as files for SQLite and of Parquet, with queries"),
];

impl Document {
    fn new(source: &Source) -> Self {
        let mut parts = source.text.split("](");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (target, rest) = part.split_at(part.find(')').unwrap_or(0));
            text.extend(["](", page_target(target, source.path).as_deref().unwrap_or(target), rest]);
        }
        // As long as the program runs.
        let text: &'static str = text.leak();
        let sections = text.split("\n## ").skip(1).filter_map(|section| {
            let (heading, text) = section.split_once('\n')?;
            Some(Section { heading, text })
        });
        Self { path: source.path, description: source.description, text, sections: sections.collect() }
    }

    /// The heading of level 1.
    pub(crate) fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }

    /// The text between the title and the first section.
    pub(crate) fn introduction(&self) -> &'static str {
        self.text.split("\n## ").next().unwrap_or_default().split_once('\n').map_or("", |(_, text)| text)
    }
}

/// Test vectors of a format, as JSON.
pub(crate) struct Vectors {
    /// The name of the format in the path of its page.
    pub(crate) format: &'static str,
    file: &'static str,
    pub(crate) json: &'static str,
}

macro_rules! vectors {
    ($format:literal, $file:literal) => {
        Vectors {
            format: $format,
            file: $file,
            json: include_str!(concat!("../../../../crates/chartfile/golden/", $file)),
        }
    };
}

/// All test vectors, those of the note hash first.
pub(crate) const VECTORS: [Vectors; 5] = [
    vectors!("note-hash", "note_hash_v1.json"),
    vectors!("variant", "variant_v1.json"),
    vectors!("rating", "rating_v1.json"),
    vectors!("patterns", "patterns_v1.json"),
    vectors!("preview", "chart_preview_v1.json"),
];

/// Where a link of the document with this page leads to, if its target is on a page.
fn page_target(target: &str, own_path: &str) -> Option<String> {
    if let Some(vectors) = VECTORS.iter().find(|vectors| target.ends_with(vectors.file)) {
        return Some(format!("/docs/{}/vectors.json", vectors.format));
    }
    let (file, anchor) = target.split_at(target.find('#').unwrap_or(target.len()));
    let path = match file {
        "" => own_path,
        _ => SOURCES.iter().find(|source| file.rsplit('/').next() == Some(source.name))?.path,
    };
    let is_api = path == SOURCES[0].path && !anchor.is_empty();
    Some(if is_api { section_path(anchor.trim_start_matches('#')) } else { format!("{path}{anchor}") })
}

/// The sections of the API reference on the page `/docs`. Each of the others has a page of its own.
const OVERVIEW: [&str; 3] = ["Quick start", "Conventions", "Etiquette"];

/// Whether a section of the API reference is on the page `/docs`.
pub(crate) fn is_in_overview(heading: &str) -> bool {
    OVERVIEW.contains(&heading)
}

/// The page of the heading with this anchor in the API reference.
fn section_path(target: &str) -> String {
    /// The anchors of the API reference that are not pages, with their pages.
    static PAGES: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
        let mut pages = Vec::new();
        let mut section = String::new();
        for line in SOURCES[0].text.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                section = anchor(heading);
                if is_in_overview(heading) {
                    pages.push((section.clone(), "/docs".to_owned()));
                }
            }
            if let Some(heading) = line.strip_prefix("### ") {
                pages.push((anchor(heading), format!("/docs/api/{section}")));
            }
        }
        pages
    });
    let page = PAGES.iter().find(|(anchor, _)| anchor == target);
    page.map_or_else(|| format!("/docs/api/{target}"), |(_, page)| format!("{page}#{target}"))
}

/// The anchor of a heading, as forges make it.
pub(crate) fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// A section of a document: its heading and its text up to the next heading of the same level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    /// Such as `Chart lookup`. No two sections have the same heading.
    pub(crate) heading: &'static str,
    pub(crate) text: &'static str,
}

/// The API reference.
pub(crate) fn api() -> &'static Document {
    &DOCUMENTS[0]
}

/// The text of the section of any document with this heading; empty if there is none.
pub(crate) fn section(heading: &str) -> &'static str {
    let mut sections = DOCUMENTS.iter().flat_map(|document| &document.sections);
    sections.find(|section| section.heading == heading).map_or("", |section| section.text)
}

/// The rows of the table of endpoints.
pub(crate) static ENDPOINTS: LazyLock<Vec<Row>> = LazyLock::new(|| rows(api().introduction(), "Endpoint"));

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// What is between backticks in the first cell.
    pub(crate) names: Vec<&'static str>,
    /// The anchor of the reference to which the first cell links.
    pub(crate) target: Option<&'static str>,
    /// The other cells.
    pub(crate) cells: Vec<&'static str>,
}

/// The rows of those tables of a text whose first column has this title.
pub(crate) fn rows(text: &'static str, title: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut is_wanted = false;
    for line in text.lines() {
        let Some(line) = line.strip_prefix("| ").and_then(|line| line.strip_suffix('|')) else {
            is_wanted &= line.starts_with("|---");
            continue;
        };
        let mut cells = line.split(" | ");
        let first = cells.next().unwrap_or_default();
        if !is_wanted {
            is_wanted = first == title;
            continue;
        }
        // The parts with an odd number are between backticks.
        let names = first.split('`').skip(1).step_by(2).collect();
        let target = first.split_once("](/docs/api/").and_then(|(_, rest)| rest.strip_suffix(')'));
        rows.push(Row { names, target, cells: cells.map(str::trim).collect() });
    }
    rows
}

/// An example of the reference: a request and the response to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Example<'a> {
    pub(crate) method: &'a str,
    /// Path and query.
    pub(crate) target: &'a str,
    /// Empty without one.
    pub(crate) request_body: &'a str,
    /// Such as `200`.
    pub(crate) status: &'a str,
    /// Empty if the example shows none.
    pub(crate) body: &'a str,
}

impl<'a> Example<'a> {
    /// Parses a block of the language `http`: request, empty line, head of the response, empty line, body.
    pub(crate) fn parse(block: &'a str) -> Option<Self> {
        let (request, response) = block.split_once("\n\nHTTP/1.1")?;
        let (method, target) = request.lines().next()?.split_once(' ')?;
        let request_body = request.split_once("\n\n").map_or("", |(_, body)| body);
        let (head, body) = response.split_once("\n\n").unwrap_or((response, ""));
        let status = head.lines().next()?.split(' ').nth(1)?;
        Some(Self { method, target, request_body, status, body: body.trim_end() })
    }
}

/// The text of all examples of the reference, in order.
pub(crate) fn example_blocks() -> impl Iterator<Item = &'static str> {
    api().text.split("\n```http\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0))
}

/// All examples, in order.
pub(crate) fn examples() -> impl Iterator<Item = Example<'static>> {
    example_blocks().filter_map(Example::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_tables_are_found() {
        assert!(api().sections.len() > 10);
        let rows = rows(section("Chartset list"), "Parameter");
        let names: Vec<&str> = rows.iter().flat_map(|row| row.names.iter().copied()).collect();
        assert_eq!(names.first(), Some(&"q"));
        assert!(names.contains(&"bpmMax") && names.contains(&"perPage") && !names.contains(&"items"));
        let page = rows.iter().find(|row| row.names == ["page"]);
        assert_eq!(page.map(|row| &row.cells[..]), Some(&["Whole number, from 1", "1"][..]));
        assert_eq!(ENDPOINTS[0].names, ["GET /api/charts/{hash}"]);
        assert_eq!(ENDPOINTS[0].target, Some("chart-lookup"));
        assert_eq!(api().title(), "API reference");
        assert!(api().introduction().starts_with("\nA read-only HTTP API"));
    }

    #[test]
    fn headings_of_sections_are_unique() {
        let mut headings: Vec<&str> =
            DOCUMENTS.iter().flat_map(|document| &document.sections).map(|section| section.heading).collect();
        headings.sort_unstable();
        assert!(headings.windows(2).all(|pair| pair[0] != pair[1]), "{headings:?}");
    }

    #[test]
    fn links_to_documents_lead_to_pages() {
        let target = |target: &str| page_target(target, "/docs/rox");
        assert_eq!(target("#rox-encoding").as_deref(), Some("/docs/rox#rox-encoding"));
        assert_eq!(target("../api.md#errors").as_deref(), Some("/docs/api/errors"));
        assert_eq!(target("../api.md#cursor").as_deref(), Some("/docs/api/chartset-list#cursor"));
        assert_eq!(target("../api.md#etiquette").as_deref(), Some("/docs#etiquette"));
        assert_eq!(target("formats/note-hash.md").as_deref(), Some("/docs/note-hash"));
        assert_eq!(
            target("../../crates/chartfile/golden/note_hash_v1.json").as_deref(),
            Some("/docs/note-hash/vectors.json")
        );
        assert_eq!(target("../snippets"), None);
        assert_eq!(target("https://e.example/a#b"), None);
    }

    #[test]
    fn examples_have_request_and_response() {
        let all: Vec<Example<'_>> = examples().collect();
        assert!(all.len() > 10);
        assert_eq!((all[0].method, all[0].status), ("GET", "200"));
        assert!(all[0].body.starts_with('{') && all[0].body.ends_with('}'));
    }
}
