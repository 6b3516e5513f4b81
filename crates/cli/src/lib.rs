//! Parsers of command-line arguments and environment variables.
//!
//! - [`SecretParser`][]: values that errors must not print, such as URLs with a password.
//! - [`parse_milliseconds`][], [`parse_delay_milliseconds`][]: durations.

mod duration;
mod secret;

pub use duration::{parse_delay_milliseconds, parse_milliseconds};
pub use secret::SecretParser;
