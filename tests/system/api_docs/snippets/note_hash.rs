//! `docs/snippets/note_hash.rs`, as a program of this workspace.
#![expect(clippy::print_stdout, reason = "an example for programs of others")]

include!("../../../../docs/snippets/note_hash.rs");
