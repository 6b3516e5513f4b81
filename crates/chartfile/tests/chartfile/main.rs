//! The crate as its users see it.

#![cfg(test)]
#![expect(
    clippy::format_collect,
    clippy::format_push_string,
    reason = "the files of the tests are easiest to read where each line is put together in its place"
)]

mod archives;
mod corpus;
mod encodings;
mod formats;
mod fuzz_seeds;
mod golden;
mod hostile;
mod note_hash;
mod repairs;
mod samples;
mod support;
