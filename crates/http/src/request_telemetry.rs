//! The id, the span, the metrics and the log lines of each request.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::response::Response;
use chart_index_instrumentation::{Metrics, Sampler};
use tokio::time::Instant;
use tracing::Span;

use crate::method_label::MethodLabel;
use crate::rate_limit::PeerAddress;
use crate::request_log::{HandledRequest, RequestLog};
use crate::request_metrics::RequestMetrics;
use crate::request_span::{RequestSampler, record_response};
use crate::routes::Route;
use crate::{ApiError, HttpRateLimiter, request_id};

/// Observes the requests of a listener.
#[derive(Debug)]
pub(crate) struct RequestTelemetry {
    log: RequestLog,
    sampler: RequestSampler,
    metrics: RequestMetrics,
}

impl RequestTelemetry {
    pub(crate) fn new(rate_limiter: &HttpRateLimiter, sampler: Sampler, metrics: &'static Metrics) -> Self {
        Self {
            log: RequestLog::new(),
            sampler: RequestSampler::new(sampler, rate_limiter.clone()),
            metrics: RequestMetrics::new(metrics),
        }
    }

    /// Starts to observe a request.
    pub(crate) fn start(&self, request: &Request) -> Observation {
        let started = Instant::now();
        let peer = PeerAddress::of(request);
        let route = request.extensions().get::<Arc<Route>>().cloned();
        let id = request_id::accept_or_generate(request, || self.sampler.is_trusted_proxy(peer));
        let method = MethodLabel::new(request.method());
        let template = route.as_ref().map(|route| route.template);
        let span = self.sampler.span(request, peer, text_of(&id), method, template);
        Observation { started, id, method, route, span }
    }

    /// Records and logs a request, and adds its id to the response.
    pub(crate) fn finish(&self, observation: &Observation, response: &mut Response) {
        let Observation { started, id, method, route, span } = observation;
        let (method, route) = (*method, route.as_deref());
        let Waited(waited) = response.extensions_mut().remove().unwrap_or_default();
        let (duration, status) = (started.elapsed().saturating_sub(waited), response.status());
        let error = response.extensions().get::<Arc<ApiError>>().map(AsRef::as_ref);
        self.metrics.record(method, route, status, error, duration);
        record_response(span, status, error.map(ApiError::error_type));
        let route = route.map(|route| route.template);
        let request_id = text_of(id);
        let handled = HandledRequest { id: request_id, method, route, status, error, duration };
        span.in_scope(|| self.log.log(&handled));
        response.headers_mut().insert(request_id::X_REQUEST_ID, id.clone());
    }
}

/// How long a request has waited by [`LongPolling`](crate::LongPolling), which is no part of its duration: an
/// extension of the response.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Waited(pub(crate) Duration);

/// A request in flight.
#[derive(Debug)]
pub(crate) struct Observation {
    started: Instant,
    id: HeaderValue,
    method: MethodLabel,
    route: Option<Arc<Route>>,
    /// Disabled unless the request is sampled.
    pub(crate) span: Span,
}

/// The text of an id, which is ASCII.
fn text_of(id: &HeaderValue) -> &str {
    id.to_str().unwrap_or_default()
}
