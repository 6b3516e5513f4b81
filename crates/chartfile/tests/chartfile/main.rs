//! Tests of the public API of the crate.

#![cfg(test)]
#![expect(
    clippy::format_collect,
    clippy::format_push_string,
    reason = "test files are easiest to read when each line is formatted in place"
)]

mod aliases;
mod archives;
mod cases;
mod conversions;
mod corpus;
mod encodings;
mod formats;
mod fuzz_seeds;
mod golden;
mod hostile;
mod note_hash;
mod preview;
mod samples;
mod simfiles;
mod support;
mod writers;
