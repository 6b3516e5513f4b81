//! Parsers of command-line arguments and environment variables.
//!
//! - [`parse`]: the command line of a program.
//! - [`SecretParser`][]: values that errors must not print, such as URLs with a password.
//! - [`FileParser`], [`CommaSeparated`]: values in files.
//! - [`parse_milliseconds`][], [`parse_delay_milliseconds`][]: durations.

mod duration;
mod file;
mod parse;
mod secret;

pub use duration::{parse_delay_milliseconds, parse_milliseconds};
pub use file::{CommaSeparated, FileParser};
pub use parse::parse;
pub use secret::SecretParser;
