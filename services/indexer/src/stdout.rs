//! The results of a command, on standard output.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use chart_index_cli::{escape_controls, escape_controls_in_json};
use serde::Serialize;

/// Writes a line of text to standard output. Its control characters are escaped.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn print(line: impl Display) -> io::Result<()> {
    write_line(&mut io::stdout(), line)
}

/// Takes output that its reader has closed for written, as `head` does.
///
/// # Errors
/// The output cannot be written for another reason.
pub(crate) fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes a line of text, with its control characters escaped.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn write_line(output: &mut impl Write, line: impl Display) -> io::Result<()> {
    writeln!(output, "{}", escape_controls(&line.to_string()))
}

/// Writes a value as a line of JSON, with its control characters escaped.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn write_json(output: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    writeln!(output, "{}", escape_controls_in_json(&serde_json::to_string(value)?))
}
