//! What is reported: tables in the terminal, a JSON document, and pages in HTML.

mod document;
mod html;
mod terminal;

pub(crate) use document::Document;
pub(crate) use html::{documents_in, write_page};
pub(crate) use terminal::{comparison_table, latency_table};
