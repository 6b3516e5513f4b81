//! `/docs/note-hash`: the rule and its test vectors.

use askama::Template;
use serde::Deserialize;

use super::markdown::to_html;
use super::{reference, snippets};
use crate::layout::Layout;
use crate::render::render;
use crate::settings::PublicUrl;

/// The golden file: the body of `/docs/note-hash/vectors.json`.
pub(crate) const VECTORS: &str = include_str!("../../../../crates/chartfile/golden/note_hash_v1.json");

#[derive(Deserialize)]
struct Golden {
    vectors: Vec<Vector>,
    refused: Vec<Refused>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vector {
    name: String,
    keys: u8,
    notes: Vec<Note>,
    canonical_hex: String,
    hash: String,
}

#[derive(Deserialize)]
struct Refused {
    name: String,
    keys: u8,
    notes: Vec<Note>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Note {
    start_us: i64,
    column: u8,
    end_us: Option<i64>,
}

#[derive(Template)]
#[template(path = "api_docs/note_hash.html")]
struct NoteHashTemplate {
    layout: Layout,
    /// HTML of docs/api.md.
    rule: String,
    golden: Golden,
    snippets: &'static [snippets::Snippet],
}

/// The page.
pub(crate) fn page(public_url: Option<&PublicUrl>) -> String {
    let section = reference::section("Note hash");
    // The page has all vectors in a table.
    let rule = section.split("\n\nTest vectors:").next().unwrap_or(section);
    let template = NoteHashTemplate {
        layout: Layout {
            description: "How to compute the note hash of a chart, with test vectors".to_owned(),
            ..Layout::new("Note hash", "/docs/note-hash", public_url)
        },
        rule: to_html(rule),
        golden: serde_json::from_str(VECTORS).unwrap_or(Golden { vectors: Vec::new(), refused: Vec::new() }),
        snippets: snippets::NOTE_HASH,
    };
    render(&template).unwrap_or_default()
}
