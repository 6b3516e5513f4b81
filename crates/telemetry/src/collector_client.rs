//! The HTTP client of the exporter, which notices what a collector rejects.

use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;

use crate::counted_exporter::ExportState;

/// Maximum time of a request to the collector, and of the connection to it.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(3);

/// A blocking client: the exporter runs on a thread of its own, which no request waits for.
#[derive(Debug)]
pub(crate) struct CollectorClient {
    client: reqwest::blocking::Client,
    state: ExportState,
}

impl CollectorClient {
    /// A client that records what is rejected.
    ///
    /// # Errors
    ///
    /// The client cannot be built.
    pub(crate) fn new(state: ExportState) -> Result<Self, reqwest::Error> {
        // Err if a provider is installed already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::blocking::Client::builder().http1_only();
        let client = client.timeout(TIMEOUT).connect_timeout(TIMEOUT).build()?;
        Ok(Self { client, state })
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let response = self.client.send_bytes(request).await?;
        if response.status().is_success() {
            self.state.record_rejected(rejected(response.body()));
        }
        Ok(response)
    }
}

/// The number of spans that a collector has rejected (OTLP specification, "Partial Success").
fn rejected(body: &[u8]) -> u64 {
    let response = ExportTraceServiceResponse::decode(body).unwrap_or_default();
    response.partial_success.map_or(0, |partial| u64::try_from(partial.rejected_spans).unwrap_or(0))
}
