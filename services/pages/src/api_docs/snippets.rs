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

/// Clients: a lookup with a cached ETag, a list page by page, waiting after a 429.
pub(crate) const CLIENTS: &[Snippet] = &[
    snippet!("curl", "client.sh"),
    snippet!("Python", "client.py"),
    snippet!("JavaScript", "client.mjs"),
    snippet!("Rust", "client.rs"),
    snippet!("C#", "Client.cs"),
];

/// Readers of the hash filter.
pub(crate) const HASH_FILTER: &[Snippet] = &[
    snippet!("Python", "hash_filter.py"),
    snippet!("JavaScript", "hash_filter.mjs"),
    snippet!("Rust", "hash_filter.rs"),
];

/// The note hash.
pub(crate) const NOTE_HASH: &[Snippet] = &[
    snippet!("Shell", "note_hash.sh"),
    snippet!("Python", "note_hash.py"),
    snippet!("JavaScript", "note_hash.mjs"),
    snippet!("Rust", "note_hash.rs"),
    snippet!("C#", "NoteHash.cs"),
];
