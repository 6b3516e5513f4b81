//! What all requests of the public API have in common, around their handlers.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use chart_index_instrumentation::{Sampler, meter};
use chart_index_ratelimit::Limiter;
use opentelemetry::metrics::Meter;
use tower::ServiceBuilder;

use crate::request_limits::{self, RequestLimits};
use crate::request_telemetry::{self, RequestTelemetry};
use crate::{HttpRateLimiter, RequestLimitConfig, Routes, cache_policy, cdn, cors, error_page, html_headers};

/// The public API: its routes, and what all requests have in common around them. Requests without a route count
/// against the group `other`.
#[derive(Debug, Clone)]
pub struct PublicApi {
    routes: Routes,
    telemetry: Arc<RequestTelemetry>,
    limits: RequestLimits,
}

impl PublicApi {
    /// The sampler decides which requests have a span. A trusted proxy that sends `traceparent` decides
    /// instead, unless the sampler is off.
    #[must_use]
    pub fn new(
        routes: Routes,
        rate_limiter: HttpRateLimiter,
        config: &RequestLimitConfig,
        sampler: Sampler,
    ) -> Self {
        Self::metered(routes, rate_limiter, config, sampler, &meter())
    }

    /// [`PublicApi::new`], with its metrics in this meter.
    pub(crate) fn metered(
        routes: Routes,
        rate_limiter: HttpRateLimiter,
        config: &RequestLimitConfig,
        sampler: Sampler,
        meter: &Meter,
    ) -> Self {
        let telemetry = Arc::new(RequestTelemetry::new(&routes, &rate_limiter, sampler, meter));
        let limits = RequestLimits::new(rate_limiter, config, meter);
        Self { routes, telemetry, limits }
    }

    /// The same API with this limiter, which differs by its connection only (see
    /// [`Limiter::with_connection`]).
    #[must_use]
    pub fn with_limiter(&self, limiter: &Limiter) -> Self {
        Self { limits: self.limits.with_limiter(limiter), ..self.clone() }
    }

    /// The routes within their layers, from the outermost. A `from_fn` layer allocates its future and clones
    /// the layers below it for every request, a mapped response costs nothing.
    pub fn into_router(self) -> Router {
        let Self { routes, telemetry, limits } = self;
        let (error_pages, has_tags) = (routes.error_pages.clone(), routes.has_tags);
        let layers = ServiceBuilder::new()
            .map_response(move |response| cdn::add_headers(response, has_tags))
            .map_response(cache_policy::add_headers)
            .map_response(html_headers::add)
            .layer(from_fn_with_state(error_pages, error_page::replace_problem))
            .layer(from_fn_with_state(telemetry, request_telemetry::observe))
            .map_response(cors::allow_any_origin)
            .layer(from_fn_with_state(Arc::new(limits), request_limits::enforce));
        routes.into_router(layers)
    }
}

#[cfg(test)]
mod tests;
