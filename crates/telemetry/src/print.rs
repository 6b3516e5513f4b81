//! What a program says on standard error beside its log: in text as it is, in JSON as a line of the log.
#![expect(clippy::disallowed_methods, reason = "these are the ways to standard error")]

use std::env;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process;
use std::sync::OnceLock;

use chart_index_cli::{escape_controls, escape_controls_in_json};
use clap::ValueEnum;
use serde_json::json;
use tracing::Level;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use crate::LogFormat;

/// The format of the log, once it is started.
static FORMAT: OnceLock<LogFormat> = OnceLock::new();

/// Sets the format of all later lines.
pub(crate) fn set_format(format: LogFormat) {
    let _ = FORMAT.set(format);
}

/// Writes a line to standard error. Control characters of the message are escaped.
///
/// The filter of the log does not apply. A reader that has closed standard error is not an error.
pub fn print(level: Level, message: impl Display) {
    let message = message.to_string();
    let line = match FORMAT.get() {
        Some(LogFormat::Json) => json_line(level, &message),
        Some(LogFormat::Text) | None => format!("{}\n", escape_controls(&message)),
    };
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Whether standard error is a terminal and has no lines of JSON, so that a progress bar may be drawn on it.
#[must_use]
pub fn is_interactive() -> bool {
    io::stderr().is_terminal() && FORMAT.get() != Some(&LogFormat::Json)
}

/// Prints why the arguments are invalid, or the help that they ask for, and ends the process.
pub fn exit(error: &clap::Error) -> ! {
    if !error.use_stderr() || requested_format() == LogFormat::Text {
        error.exit();
    }
    let line = json_line(Level::ERROR, error.to_string().trim_end());
    let _ = io::stderr().write_all(line.as_bytes());
    process::exit(error.exit_code())
}

/// The format that the arguments or the environment ask for, where they cannot be parsed as a whole.
fn requested_format() -> LogFormat {
    let arguments: Vec<String> =
        env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let joined = arguments.iter().find_map(|argument| argument.strip_prefix("--log-format="));
    let pair = arguments.windows(2).find(|pair| pair[0] == "--log-format");
    let argument = joined.or(pair.map(|pair| &*pair[1])).map(str::to_owned);
    let format = argument.or_else(|| env::var("LOG_FORMAT").ok());
    format.and_then(|name| LogFormat::from_str(&name, false).ok()).unwrap_or(LogFormat::Text)
}

/// A line like those of events.
fn json_line(level: Level, message: &str) -> String {
    let mut timestamp = String::new();
    let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
    let line = json!({ "timestamp": timestamp, "level": level.as_str(), "fields": { "message": message } });
    format!("{}\n", escape_controls_in_json(&line.to_string()))
}
