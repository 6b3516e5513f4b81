//! The metrics in the text format of Prometheus.

use prometheus::{Registry, TextEncoder};

/// Reads the metrics of the process. Clones read the same ones.
#[derive(Debug, Clone)]
pub struct Scrape {
    registry: Registry,
}

/// The metrics cannot be written as text.
#[derive(Debug, thiserror::Error)]
#[error("cannot encode the metrics")]
pub struct ScrapeError(#[from] prometheus::Error);

impl Scrape {
    /// The value of `Content-Type` for [`text`](Self::text).
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    pub(crate) const fn new(registry: Registry) -> Self {
        Self { registry }
    }

    /// All metrics, with their current values.
    ///
    /// # Errors
    ///
    /// A metric has an invalid name, which is a bug.
    pub fn text(&self) -> Result<String, ScrapeError> {
        Ok(TextEncoder::new().encode_to_string(&self.registry.gather())?)
    }
}
