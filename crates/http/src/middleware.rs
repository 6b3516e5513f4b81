//! What all requests of the public API have in common, around their handlers.

use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use chart_index_instrumentation::{Metrics, Sampler, metrics};
use chart_index_ratelimit::Limiter;
use tower::ServiceBuilder;
use tracing::Instrument;

use crate::request_limits::RequestLimits;
use crate::request_telemetry::RequestTelemetry;
use crate::routes::Route;
use crate::{ErrorPages, HttpRateLimiter, RequestLimitConfig, Routes, cache_policy, cdn, cors, html_headers};

/// The public API: its routes, and what all requests have in common around them. Requests without a route count
/// against the group `other`.
#[derive(Debug, Clone)]
pub struct PublicApi {
    routes: Routes,
    around: Around,
}

/// What is done around the handler of a request.
#[derive(Debug, Clone)]
struct Around {
    error_pages: Option<ErrorPages>,
    telemetry: Arc<RequestTelemetry>,
    limits: RequestLimits,
}

/// Handles a request within the limits, observes it, and negotiates the form of an error.
async fn handle(State(around): State<Arc<Around>>, request: Request, next: Next) -> Response {
    let Around { error_pages, telemetry, limits } = &*around;
    let is_framed = request.extensions().get::<Arc<Route>>().is_some_and(|route| route.is_framed);
    let error_page = error_pages.as_ref().and_then(|pages| pages.negotiate(&request));
    let observation = telemetry.start(&request);
    let response = pin!(limits.enforce(request, next));
    let mut response = response.instrument(observation.span.clone()).await;
    telemetry.finish(&observation, &mut response);
    if let Some(error_page) = error_page {
        error_page.replace_problem(&mut response, is_framed);
    }
    if is_framed {
        html_headers::allow_frames(&mut response);
    }
    response
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
        Self::metered(routes, rate_limiter, config, sampler, metrics())
    }

    /// [`PublicApi::new`], with these metrics.
    pub(crate) fn metered(
        routes: Routes,
        rate_limiter: HttpRateLimiter,
        config: &RequestLimitConfig,
        sampler: Sampler,
        metrics: &'static Metrics,
    ) -> Self {
        let telemetry = Arc::new(RequestTelemetry::new(&rate_limiter, sampler, metrics));
        let limits = RequestLimits::new(rate_limiter, config, metrics);
        let around = Around { error_pages: routes.error_pages.clone(), telemetry, limits };
        Self { routes, around }
    }

    /// The same API with this limiter, which differs by its queue only (see [`Limiter::with_own_queue`]).
    #[must_use]
    pub fn with_limiter(&self, limiter: &Limiter) -> Self {
        let mut this = self.clone();
        this.around.limits = self.around.limits.with_limiter(limiter);
        this
    }

    /// The routes within their layers, from the outermost. There is one `from_fn`: each allocates its future
    /// for every request, and clones the layers below it.
    pub fn into_router(self) -> Router {
        let Self { routes, around } = self;
        let has_tags = routes.has_tags;
        let layers = ServiceBuilder::new()
            .map_response(move |response| cdn::add_headers(response, has_tags))
            .map_response(cache_policy::add_headers)
            .map_response(html_headers::add)
            .map_response(cors::allow_any_origin)
            .layer(from_fn_with_state(Arc::new(around), handle));
        routes.into_router(layers)
    }
}

#[cfg(test)]
mod tests;
