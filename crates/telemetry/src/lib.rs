//! The log, metrics and traces of a program, and its shutdown signals.
//!
//! - [`Telemetry`]: starts all of it before the program does anything else, and flushes it at the end.
//! - [`LogConfig`], [`OtlpConfig`]: its settings.
//! - [`serve_private`]: the listener for metrics and health checks.
//! - [`memory_limit`]: how much memory this process may use.
//! - [`print()`], [`exit`], [`is_interactive`]: what a program says on standard error beside its log.
//! - [`shutdown_signal`]: SIGTERM and SIGINT.
//!
//! Prometheus scrapes metrics; traces are pushed to a collector by OTLP. Library crates do not depend on this:
//! they record with `chart_index_instrumentation`.

mod collector_client;
mod counted_exporter;
mod log;
mod log_format;
mod otlp;
mod print;
mod private_listener;
mod process_metrics;
mod runtime_metrics;
mod signals;
mod telemetry;
mod traces;

pub use log::LogConfig;
pub use log_format::LogFormat;
pub use otlp::{InvalidOtlpEndpoint, InvalidOtlpHeaders, OtlpConfig, OtlpEndpoint, OtlpHeaders, StartError};
pub use print::{exit, is_interactive, print};
pub use private_listener::serve_private;
pub use process_metrics::memory_limit;
pub use signals::shutdown_signal;
pub use telemetry::Telemetry;
