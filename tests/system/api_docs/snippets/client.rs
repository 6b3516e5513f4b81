//! `docs/snippets/client.rs`, as a program of this workspace.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "an example for programs of others"
)]

include!("../../../../docs/snippets/client.rs");
