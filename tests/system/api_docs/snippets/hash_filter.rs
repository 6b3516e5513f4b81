//! `docs/snippets/hash_filter.rs`, as a program of this workspace.
#![expect(clippy::cast_possible_truncation, reason = "an example for programs of others")]

include!("../../../../docs/snippets/hash_filter.rs");
