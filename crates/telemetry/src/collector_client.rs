//! The HTTP client of the exporters, which notices what a collector rejects.

use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;

use crate::export_counts::{ExportCounts, Signal};

/// Maximum time of a request to the collector, and of the connection to it.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(3);

/// A blocking client: exporters run on threads of their own, which no request waits for.
#[derive(Debug)]
pub(crate) struct CollectorClient {
    client: reqwest::blocking::Client,
    signal: Signal,
    counts: ExportCounts,
}

impl CollectorClient {
    /// A client for a signal, which adds what is rejected to the counts.
    ///
    /// # Errors
    ///
    /// The client cannot be built.
    pub(crate) fn new(signal: Signal, counts: &ExportCounts) -> Result<Self, reqwest::Error> {
        // Err if a provider is installed already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::blocking::Client::builder().http1_only();
        let client = client.timeout(TIMEOUT).connect_timeout(TIMEOUT).build()?;
        Ok(Self { client, signal, counts: counts.clone() })
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let response = self.client.send_bytes(request).await?;
        if response.status().is_success() {
            self.counts.record_rejected(self.signal, rejected(response.body()));
        }
        Ok(response)
    }
}

/// The number of items that a collector has rejected (OTLP specification, "Partial Success"). The responses
/// for traces and metrics have the same fields.
fn rejected(body: &[u8]) -> u64 {
    let response = ExportTraceServiceResponse::decode(body).unwrap_or_default();
    response.partial_success.map_or(0, |partial| u64::try_from(partial.rejected_spans).unwrap_or(0))
}
