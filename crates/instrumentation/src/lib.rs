//! What the library crates share to record metrics and spans. Spans use the OpenTelemetry API only: without an
//! SDK, as in unit tests, there are none.
//!
//! - [`Metrics`]: the table of all metrics, from which docs/operations/metrics.md is generated; [`metrics`] are
//!   those of the process.
//! - [`DatabaseClient`]: the duration and the span of an operation of PostgreSQL, Redis or Meilisearch.
//! - [`Sampler`]: decides which root spans are created.
//! - [`RemoteParent`]: the caller's span, from `traceparent`.
//! - [`child_span`]: a span if the current operation has one.
//! - [`set_current_as_parent`]: for child spans that may outlive their parent.
//!
//! # Spans
//!
//! Spans are those of `tracing`. A *root* span, such as that of a request, is an `info_span!`, created only if
//! the [`Sampler`] samples it. All other spans are `debug_span!`s that [`child_span`] creates only inside
//! another span: an unsampled request has no spans. Fields have the names of the OpenTelemetry semantic
//! conventions. No span contains an address, a query string, a hash or text of a chart.

mod child_span;
mod database_client;
mod detached_span;
mod metric_family;
mod metrics;
mod remote_parent;
mod sampler;

pub use child_span::child_span;
pub use database_client::{DatabaseClient, ErrorType, Operation};
pub use detached_span::set_current_as_parent;
pub use metric_family::{Family, GaugeValue, Kind, MetricRow};
pub use metrics::{Metrics, ScrapeError, metrics};
pub use prometheus::{Histogram, IntCounter as Counter};
pub use remote_parent::RemoteParent;
pub use sampler::{InvalidSampleRatio, Sampler};

/// The name of the instrumentation scope of spans.
pub const SCOPE: &str = "chart_index";
