//! Settings of the export of traces by OTLP. The variables are those of the OpenTelemetry specification.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use chart_index_cli::SecretParser;
use chart_index_instrumentation::Sampler;
use clap::Args;
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use url::Url;

use crate::collector_client::{CollectorClient, TIMEOUT};
use crate::counted_exporter::ExportState;

/// The telemetry cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The HTTP client for the collector cannot be built.
    #[error("cannot set up the telemetry: the HTTP client cannot be built")]
    Client(#[from] reqwest::Error),
    /// The exporter cannot be built.
    #[error("cannot set up the telemetry")]
    Exporter(#[from] ExporterBuildError),
}

/// Where traces are pushed to, and how many are sampled.
#[derive(Debug, Clone, Args)]
pub struct OtlpConfig {
    /// OpenTelemetry collector that traces are pushed to by OTLP over HTTP, e.g. `http://collector:4318`.
    /// Without it nothing is pushed
    #[arg(
        long = "otlp-endpoint",
        env = "OTEL_EXPORTER_OTLP_ENDPOINT",
        value_name = "URL",
        hide_env_values = true,
        value_parser = SecretParser::<OtlpEndpoint>::new(),
        global = true
    )]
    pub otlp_endpoint: Option<OtlpEndpoint>,

    /// Headers of the requests to the collector: `name=value`, separated by commas
    #[arg(
        long = "otlp-headers",
        env = "OTEL_EXPORTER_OTLP_HEADERS",
        value_name = "HEADERS",
        hide_env_values = true,
        value_parser = SecretParser::<OtlpHeaders>::new(),
        global = true
    )]
    pub otlp_headers: Option<OtlpHeaders>,

    /// File with the value of `OTEL_EXPORTER_OTLP_HEADERS`
    #[arg(
        long = "otlp-headers-file",
        env = "OTEL_EXPORTER_OTLP_HEADERS_FILE",
        value_name = "FILE",
        conflicts_with = "otlp_headers",
        value_parser = SecretParser::<OtlpHeaders>::in_file(),
        global = true
    )]
    pub otlp_headers_file: Option<OtlpHeaders>,

    /// Share of the traces that is sampled, from 0 to 1. A trusted proxy that sends `traceparent` decides
    /// itself
    #[arg(
        long = "trace-sample-ratio",
        env = "OTEL_TRACES_SAMPLER_ARG",
        value_name = "OTEL_TRACES_SAMPLER_ARG",
        default_value = "0.01",
        global = true
    )]
    pub trace_sample_ratio: Sampler,
}

/// The base URL of a collector.
#[derive(Clone, PartialEq, Eq)]
pub struct OtlpEndpoint(Url);

/// The URL of a collector is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected http://host[:port][/path] or https://…, without query")]
pub struct InvalidOtlpEndpoint;

impl FromStr for OtlpEndpoint {
    type Err = InvalidOtlpEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidOtlpEndpoint> {
        let url = Url::parse(text).map_err(|_| InvalidOtlpEndpoint)?;
        let is_valid = matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none();
        if is_valid { Ok(Self(url)) } else { Err(InvalidOtlpEndpoint) }
    }
}

impl OtlpEndpoint {
    /// The URL of traces: the base URL and `v1/traces` (OTLP specification, "Endpoint URLs for OTLP/HTTP").
    fn traces(&self) -> String {
        format!("{}/v1/traces", self.0.as_str().trim_end_matches('/'))
    }
}

/// Does not print a password.
impl fmt::Debug for OtlpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OtlpEndpoint").field(&self.0.host_str()).finish_non_exhaustive()
    }
}

/// The headers of requests to a collector, usually a key.
#[derive(Clone, PartialEq, Eq)]
pub struct OtlpHeaders(HashMap<String, String>);

/// The headers are not a list of names and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected name=value, separated by commas")]
pub struct InvalidOtlpHeaders;

impl FromStr for OtlpHeaders {
    type Err = InvalidOtlpHeaders;

    fn from_str(text: &str) -> Result<Self, InvalidOtlpHeaders> {
        let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let header = |pair: &str| {
            let (name, value) = pair.split_once('=').ok_or(InvalidOtlpHeaders)?;
            let is_name = !name.trim().is_empty() && name.trim().bytes().all(|byte| byte.is_ascii_graphic());
            let is_value = value.trim().bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
            if is_name && is_value {
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            } else {
                Err(InvalidOtlpHeaders)
            }
        };
        pairs.map(header).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Debug for OtlpHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl OtlpConfig {
    /// The sampler of root spans: off if nothing is pushed.
    pub(crate) fn sampler(&self) -> Sampler {
        if self.otlp_endpoint.is_some() { self.trace_sample_ratio } else { Sampler::OFF }
    }

    /// The exporter of spans, if an endpoint is configured.
    pub(crate) fn span_exporter(&self, state: &ExportState) -> Result<Option<SpanExporter>, StartError> {
        let Some(endpoint) = &self.otlp_endpoint else { return Ok(None) };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_http_client(CollectorClient::new(state.clone())?)
            .with_headers(self.headers())
            .with_timeout(TIMEOUT)
            .with_endpoint(endpoint.traces());
        Ok(Some(exporter.build()?))
    }

    fn headers(&self) -> HashMap<String, String> {
        let headers = self.otlp_headers.as_ref().or(self.otlp_headers_file.as_ref());
        headers.map(|headers| headers.0.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_is_a_base_url() {
        let traces = |text: &str| text.parse::<OtlpEndpoint>().map(|endpoint| endpoint.traces());
        for (text, expected) in [
            ("http://collector:4318", "http://collector:4318/v1/traces"),
            ("http://collector:4318/", "http://collector:4318/v1/traces"),
            ("https://collector.example/otlp", "https://collector.example/otlp/v1/traces"),
        ] {
            assert_eq!(traces(text).as_deref(), Ok(expected));
        }
        for bad in ["collector:4318", "grpc://collector", "http://collector/?a=b", "", "/v1/traces"] {
            assert_eq!(traces(bad), Err(InvalidOtlpEndpoint), "{bad:?}");
        }
    }

    #[test]
    fn headers_are_pairs_and_are_not_printed() {
        let headers: OtlpHeaders = "api-key=hunter2, tenant=charts==".parse().unwrap();
        assert_eq!(headers.0["api-key"], "hunter2");
        assert_eq!(headers.0["tenant"], "charts==");
        assert!(!format!("{headers:?}").contains("hunter2"));
        for bad in ["api-key", "=hunter2", "a\nb=c"] {
            assert_eq!(bad.parse::<OtlpHeaders>(), Err(InvalidOtlpHeaders), "{bad:?}");
        }
    }

    #[test]
    fn nothing_is_sampled_without_an_endpoint() {
        let config = |endpoint: Option<&str>| OtlpConfig {
            otlp_endpoint: endpoint.map(|url| url.parse().unwrap()),
            otlp_headers: None,
            otlp_headers_file: None,
            trace_sample_ratio: Sampler::new(1.0).unwrap(),
        };
        assert!(config(None).sampler().is_off());
        assert!(config(Some("http://collector:4318")).sampler().sample());
    }
}
