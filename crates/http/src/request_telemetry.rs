//! The id, the span, the metrics and the log lines of each request.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::response::Response;
use chart_index_instrumentation::Sampler;
use opentelemetry::metrics::Meter;
use tokio::time::Instant;
use tracing::Span;

use crate::method_label::MethodLabel;
use crate::rate_limit::PeerAddress;
use crate::request_log::{HandledRequest, RequestLog};
use crate::request_metrics::RequestMetrics;
use crate::request_span::{RequestSampler, record_response};
use crate::routes::MatchedRoute;
use crate::{ApiError, HttpRateLimiter, Routes, request_id};

/// Observes the requests of a listener.
#[derive(Debug)]
pub(crate) struct RequestTelemetry {
    log: RequestLog,
    sampler: RequestSampler,
    metrics: RequestMetrics,
}

impl RequestTelemetry {
    /// For these routes.
    pub(crate) fn new(
        routes: &Routes,
        rate_limiter: &HttpRateLimiter,
        sampler: Sampler,
        meter: &Meter,
    ) -> Self {
        Self {
            log: RequestLog::new(),
            sampler: RequestSampler::new(sampler, rate_limiter.clone()),
            metrics: RequestMetrics::new(meter, routes.all()),
        }
    }

    /// Starts to observe a request.
    pub(crate) fn start(
        &self,
        request: &Request,
        peer: PeerAddress,
        route: Option<MatchedRoute>,
    ) -> Observation {
        let started = Instant::now();
        let id = request_id::accept_or_generate(request, || self.sampler.is_trusted_proxy(peer));
        let method = MethodLabel::new(request.method());
        let template = route.map(|route| route.template);
        let span = self.sampler.span(request, peer, text_of(&id), method, template);
        Observation { started, id, method, route, span }
    }

    /// Records and logs a request, and adds its id to the response.
    pub(crate) fn finish(&self, observation: &Observation, response: &mut Response) {
        let Observation { started, ref id, method, route, ref span } = *observation;
        let Waited(waited) = response.extensions_mut().remove().unwrap_or_default();
        let (duration, status) = (started.elapsed().saturating_sub(waited), response.status());
        let error = response.extensions_mut().remove::<Arc<ApiError>>();
        let error = error.as_deref();
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
    route: Option<MatchedRoute>,
    span: Span,
}

/// The text of an id, which is ASCII.
fn text_of(id: &HeaderValue) -> &str {
    id.to_str().unwrap_or_default()
}

impl Observation {
    /// The id of the request.
    pub(crate) fn id(&self) -> &str {
        text_of(&self.id)
    }

    /// The span of the request, disabled unless it is sampled.
    pub(crate) const fn span(&self) -> &Span {
        &self.span
    }
}
