//! What every program of the workspace does for whoever operates it: write a log, and end on a signal.
//!
//! - [`LogConfig`], [`Log`]: the log on standard error, which never makes the program wait.
//! - [`shutdown_signal`]: SIGTERM and SIGINT.

mod log;
mod signals;

pub use log::{Log, LogConfig, LogFormat};
pub use signals::shutdown_signal;
