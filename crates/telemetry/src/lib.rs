//! Logging and shutdown signals of the programs.
//!
//! - [`LogConfig`], [`Log`]: the log on standard error, written without blocking the program.
//! - [`shutdown_signal`]: SIGTERM and SIGINT.

mod log;
mod signals;

pub use log::{Log, LogConfig, LogFormat};
pub use signals::shutdown_signal;
