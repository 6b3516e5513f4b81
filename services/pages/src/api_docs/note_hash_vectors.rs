//! The test vectors of the note hash as tables on `/docs/note-hash`.

use askama::Template;
use serde::Deserialize;

use super::markdown::to_html;
use super::reference::VECTORS;
use crate::render::render;

/// The section of docs/formats/note-hash.md with vectors.
pub(crate) const SECTION: &str = "Test vectors";

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
#[template(path = "api_docs/note_hash_vectors.html")]
struct VectorsTemplate {
    golden: Golden,
}

/// The HTML of the section with this Markdown: all vectors instead of some of them.
pub(crate) fn section_html(text: &str) -> String {
    let introduction = text.split("\n\nSome of them:").next().unwrap_or(text);
    let golden =
        serde_json::from_str(VECTORS[0].json).unwrap_or(Golden { vectors: Vec::new(), refused: Vec::new() });
    to_html(introduction) + &render(&VectorsTemplate { golden }).unwrap_or_default()
}
