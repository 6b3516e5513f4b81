//! The examples of docs/snippets, which tests run.

/// An example in one language.
#[derive(Debug)]
pub(crate) struct Snippet {
    pub(crate) language: &'static str,
    /// The name of the file.
    pub(crate) file: &'static str,
    pub(crate) code: &'static str,
}

macro_rules! snippet {
    ($language:literal, $file:literal) => {
        Snippet {
            language: $language,
            file: $file,
            code: include_str!(concat!("../../../../docs/snippets/", $file)),
        }
    };
}

/// The examples of a document.
pub(crate) struct Examples {
    /// What they do, as Markdown.
    pub(crate) introduction: &'static str,
    pub(crate) snippets: &'static [Snippet],
}

/// The examples for the document with this page.
pub(crate) fn of_page(path: &str) -> Option<Examples> {
    let (introduction, snippets) = match path {
        "/docs" => (
            "With the packages for Python, JavaScript and Rust: each says which charts of a folder the index \
             knows, and where they are from. There are also examples that compute \
             [note hashes](/docs/note-hash#examples-in-code).",
            CLIENTS,
        ),
        "/docs/note-hash" => ("Each reads the vectors and prints their hashes.", NOTE_HASH),
        _ => return None,
    };
    Some(Examples { introduction, snippets })
}

const CLIENTS: &[Snippet] = &[
    snippet!("curl", "client.sh"),
    snippet!("Python", "client.py"),
    snippet!("JavaScript", "client.mjs"),
    snippet!("Rust", "client.rs"),
];

const NOTE_HASH: &[Snippet] = &[snippet!("Shell", "note_hash.sh"), snippet!("Python", "note_hash.py")];
