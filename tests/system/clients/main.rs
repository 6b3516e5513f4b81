//! The packages in `clients`: each is packed, installed into an empty folder and run, over real servers.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test panics if its set-up fails")]

mod link;
mod npm;
mod program;
mod python;
mod rust;
mod types;
