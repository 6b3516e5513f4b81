//! The client over servers that a test scripts.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod files;
mod requests;
mod server;
