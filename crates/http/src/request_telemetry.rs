//! The outermost layer: the id, the span, the metrics and the log lines of each request.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use chart_index_instrumentation::Sampler;
use opentelemetry::metrics::Meter;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::method_label::MethodLabel;
use crate::request_log::{HandledRequest, RequestLog};
use crate::request_metrics::RequestMetrics;
use crate::request_span::{RequestSampler, record_response};
use crate::{ApiError, Routes, request_id};

/// What observes the requests of a listener. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct RequestTelemetry(Arc<Telemetry>);

#[derive(Debug)]
struct Telemetry {
    log: RequestLog,
    public: Option<PublicTelemetry>,
}

/// What only the public listener has.
#[derive(Debug)]
struct PublicTelemetry {
    sampler: RequestSampler,
    metrics: RequestMetrics,
}

impl RequestTelemetry {
    /// For the public listener with these routes.
    pub(crate) fn public(routes: &Routes, sampler: Sampler, meter: &Meter) -> Self {
        let public = PublicTelemetry {
            sampler: RequestSampler::new(sampler, routes.rate_limiter().clone()),
            metrics: RequestMetrics::new(meter, routes.templates()),
        };
        Self(Arc::new(Telemetry { log: RequestLog::new(), public: Some(public) }))
    }

    /// For the private listener: health checks and scrapes have no span and are not counted.
    pub(crate) fn private() -> Self {
        Self(Arc::new(Telemetry { log: RequestLog::new(), public: None }))
    }
}

/// Middleware: handles the request in its span, records and logs it, and adds its id to the response.
pub(crate) async fn observe(
    State(RequestTelemetry(telemetry)): State<RequestTelemetry>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let public = telemetry.public.as_ref();
    let request_id = request_id::accept_or_generate(&request);
    let id = request_id.to_str().unwrap_or_default();
    let method = MethodLabel::new(request.method());
    let route = request.extensions().get::<MatchedPath>().filter(|_| method.has_routes()).cloned();
    let route = route.as_ref().map(MatchedPath::as_str);
    let span = public.map_or_else(Span::none, |public| public.sampler.span(&request, id, method, route));

    let mut response = next.run(request).instrument(span.clone()).await;

    let duration = started.elapsed();
    let status = response.status();
    let error = response.extensions_mut().remove::<Arc<ApiError>>();
    let error = error.as_deref();
    if let Some(public) = public {
        public.metrics.record(method, route, status, error, duration);
    }
    record_response(&span, status, error.map(ApiError::error_type));
    span.in_scope(|| telemetry.log.log(&HandledRequest { id, method, route, status, error, duration }));
    response.headers_mut().insert(request_id::X_REQUEST_ID, request_id);
    response
}
