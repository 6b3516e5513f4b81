//! The log of the process, on standard error.

use std::io::{self, IsTerminal};

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

/// What is logged, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct LogConfig {
    /// How the log is written.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value = "text")]
    log_format: LogFormat,

    /// What is logged, as levels and targets: `info`, `debug`, `info,chart_index_http=debug`, …
    #[arg(long, env = "RUST_LOG", value_name = "RUST_LOG", default_value = "info", value_parser = filter)]
    log_filter: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogFormat {
    /// Lines for people.
    Text,
    /// A JSON object a line, for programs.
    Json,
}

/// Checks a filter. It is kept as text because the parsed one cannot be cloned.
fn filter(text: &str) -> Result<String, tracing_subscriber::filter::ParseError> {
    EnvFilter::try_new(text).map(|_| text.to_owned())
}

/// Starts the log of this process.
pub(crate) fn start(config: &LogConfig) {
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&config.log_filter))
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    match config.log_format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}
