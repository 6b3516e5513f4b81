//! The root span of a request.

use axum::extract::Request;
use axum::http::StatusCode;
use chart_index_instrumentation::{RemoteParent, Sampler};
use tracing::{Span, field};

use crate::HttpRateLimiter;
use crate::error_type::ErrorType;
use crate::method_label::MethodLabel;
use crate::rate_limit::PeerAddress;

/// Decides which requests have a span.
#[derive(Debug)]
pub(crate) struct RequestSampler {
    sampler: Sampler,
    /// Decides which peers are trusted proxies.
    rate_limiter: HttpRateLimiter,
}

impl RequestSampler {
    pub(crate) const fn new(sampler: Sampler, rate_limiter: HttpRateLimiter) -> Self {
        Self { sampler, rate_limiter }
    }

    /// Creates the span of a request, disabled unless it is sampled: a trusted proxy decides with its
    /// `traceparent`, and that of any other client is ignored. It records neither path, query, host nor
    /// address.
    pub(crate) fn span(
        &self,
        request: &Request,
        peer: PeerAddress,
        id: &str,
        method: MethodLabel,
        route: Option<&str>,
    ) -> Span {
        if self.sampler.is_off() {
            return Span::none();
        }
        let parent = self.remote_parent(request, peer);
        if !parent.as_ref().map_or_else(|| self.sampler.sample(), RemoteParent::is_sampled) {
            return Span::none();
        }
        let span = root_span(id, method, route);
        if let Some(parent) = parent {
            parent.set_on(&span);
        }
        span
    }

    /// Whether the peer is a trusted proxy.
    pub(crate) fn is_trusted_proxy(&self, peer: PeerAddress) -> bool {
        self.rate_limiter.is_trusted_proxy(peer)
    }

    fn remote_parent(&self, request: &Request, peer: PeerAddress) -> Option<RemoteParent> {
        if !self.is_trusted_proxy(peer) {
            return None;
        }
        RemoteParent::extract(|name| {
            let mut values = request.headers().get_all(name).iter();
            // W3C Trace Context: a request with several `traceparent`s has none.
            values.next().filter(|_| values.next().is_none())?.to_str().ok()
        })
    }
}

fn root_span(id: &str, method: MethodLabel, route: Option<&str>) -> Span {
    let method = method.into_str();
    let name = route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}"));
    tracing::info_span!(
        "request",
        otel.name = name,
        otel.kind = "server",
        otel.status_code = field::Empty,
        "http.request.method" = method,
        "http.route" = route,
        "http.response.status_code" = field::Empty,
        "error.type" = field::Empty,
        "chart_index.request_id" = id,
    )
}

/// Records the response in the span of its request.
pub(crate) fn record_response(span: &Span, status: StatusCode, error: Option<ErrorType>) {
    if span.is_disabled() {
        return;
    }
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if let Some(error) = error {
        span.record("error.type", error.as_str());
    }
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
}
