//! The API reference, docs/api.md: its sections, tables and examples. The pages and the OpenAPI document take their words
//! and examples from it.

/// The text of docs/api.md.
pub(crate) const REFERENCE: &str = include_str!("../../../../docs/api.md");

/// A section of the reference: its heading and its text up to the next heading of the same level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    /// Such as `Chart lookup`.
    pub(crate) heading: &'static str,
    pub(crate) text: &'static str,
}

/// The sections of level 2, in order.
pub(crate) fn sections() -> impl Iterator<Item = Section> {
    REFERENCE.split("\n## ").skip(1).filter_map(|section| {
        let (heading, text) = section.split_once('\n')?;
        Some(Section { heading, text })
    })
}

/// The text of a section; empty if there is none.
pub(crate) fn section(heading: &str) -> &'static str {
    sections().find(|section| section.heading == heading).map_or("", |section| section.text)
}

/// The text before the first section.
pub(crate) fn introduction() -> &'static str {
    REFERENCE.split("\n## ").next().unwrap_or_default().split_once('\n').map_or("", |(_, text)| text)
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// What is between backticks in the first cell.
    pub(crate) names: Vec<&'static str>,
    /// The anchor to which the first cell links.
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
        let target = first.split_once("](#").and_then(|(_, rest)| rest.strip_suffix(')'));
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
        let (head, body) = response.split_once("\n\n").unwrap_or((response, ""));
        let status = head.lines().next()?.split(' ').nth(1)?;
        Some(Self { method, target, status, body: body.trim_end() })
    }
}

/// The text of all examples, in order.
pub(crate) fn example_blocks() -> impl Iterator<Item = &'static str> {
    REFERENCE.split("\n```http\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0))
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
        assert!(sections().count() > 10);
        let rows = rows(section("Chartset list"), "Parameter");
        let names: Vec<&str> = rows.iter().flat_map(|row| row.names.iter().copied()).collect();
        assert_eq!(names.first(), Some(&"q"));
        assert!(names.contains(&"bpmMax") && names.contains(&"perPage") && !names.contains(&"items"));
        let page = rows.iter().find(|row| row.names == ["page"]);
        assert_eq!(page.map(|row| &row.cells[..]), Some(&["Whole number, from 1", "1"][..]));
        let endpoints = rows_of_endpoints();
        assert_eq!(endpoints[0].names, ["GET /api/charts/{hash}"]);
        assert_eq!(endpoints[0].target, Some("chart-lookup"));
        assert!(introduction().starts_with("\nA read-only HTTP API"));
    }

    fn rows_of_endpoints() -> Vec<Row> {
        rows(introduction(), "Endpoint")
    }

    #[test]
    fn examples_have_request_and_response() {
        let all: Vec<Example<'_>> = examples().collect();
        assert!(all.len() > 10);
        assert_eq!((all[0].method, all[0].status), ("GET", "200"));
        assert!(all[0].body.starts_with('{') && all[0].body.ends_with('}'));
    }
}
