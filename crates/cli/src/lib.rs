//! Parsers of command-line arguments and environment variables, and text that is printed.
//!
//! - [`parse`]: the command line of a program.
//! - [`SecretParser`], [`CommaSeparated`]: values that errors must not print, such as URLs with a password, and
//!   files with them.
//! - [`escape_controls`], [`escape_controls_in_json`]: text of others, for terminals and logs.
//! - [`Causes`]: an error with its causes.
//! - [`OperatorArguments`]: what an operator says about the use of the catalogue.
//! - [`parse_milliseconds`][], [`parse_delay_milliseconds`][], [`format_duration`][], [`format_age`][]:
//!   durations and ages.

mod causes;
mod duration;
mod escape;
mod manual;
mod operator;
mod parse;
mod secret;

pub use causes::Causes;
pub use duration::{format_age, format_duration, parse_delay_milliseconds, parse_milliseconds};
pub use escape::{escape_controls, escape_controls_in_json};
pub use operator::{DataLicense, InvalidLicense, OperatorArguments};
pub use parse::parse;
pub use secret::{CommaSeparated, SecretParser};
