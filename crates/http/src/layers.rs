//! The middleware around the routes of a listener, and its fallbacks.

use std::any::Any;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use chart_index_instrumentation::{Sampler, meter};
use opentelemetry::metrics::Meter;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;

use crate::request_limits::{self, RequestLimits};
use crate::request_telemetry::{self, RequestTelemetry};
use crate::{ApiError, RequestLimitConfig, Resource, Routes, cache_policy, cors, host_header};

/// Adds the layers of the public API to its routes. From the outermost: request id, span, metrics and log; headers of all
/// responses; CORS; conversion of panics to errors; request limits. Requests without a route count against the group
/// `other`.
///
/// The sampler decides which requests have a span. A trusted proxy that sends `traceparent` decides instead, unless the
/// sampler is off.
pub fn public_router(routes: Routes, config: &RequestLimitConfig, sampler: Sampler) -> Router {
    metered_router(routes, config, sampler, &meter())
}

/// [`public_router`], with its metrics in this meter.
pub(crate) fn metered_router(
    routes: Routes,
    config: &RequestLimitConfig,
    sampler: Sampler,
    meter: &Meter,
) -> Router {
    let telemetry = RequestTelemetry::public(&routes, sampler, meter);
    let rate_limiter = routes.rate_limiter().clone();
    let limits = RequestLimits::new(config, &routes, meter);
    let counted = |error: fn() -> ApiError| {
        let rate_limiter = rate_limiter.clone();
        move |request: Request| async move {
            let address = rate_limiter.client_address(&request);
            rate_limiter.count_other(address, error()).await
        }
    };
    let routes = routes.into_router();
    let routes = routes.fallback(counted(not_found)).method_not_allowed_fallback(counted(method_not_allowed));
    routes.layer(
        ServiceBuilder::new()
            .layer(from_fn_with_state(telemetry, request_telemetry::observe))
            .map_response(cache_policy::write_headers)
            .layer(from_fn(cors::allow_any_origin))
            .layer(CatchPanicLayer::custom(panic_response))
            .layer(from_fn_with_state(limits, request_limits::enforce)),
    )
}

/// Adds the layers of a private listener to its routes. It needs no CORS, since browsers do not use it, and has no
/// limits, so that it responds while the public listener is overloaded.
pub fn private_router(routes: Router) -> Router {
    let routes =
        routes.fallback(async || not_found()).method_not_allowed_fallback(async || method_not_allowed());
    routes.layer(
        ServiceBuilder::new()
            .layer(from_fn_with_state(RequestTelemetry::private(), request_telemetry::observe))
            .map_response(cache_policy::write_headers)
            .layer(CatchPanicLayer::custom(panic_response))
            .layer(from_fn(host_header::require)),
    )
}

const fn not_found() -> ApiError {
    ApiError::NotFound(Resource::Endpoint)
}

const fn method_not_allowed() -> ApiError {
    ApiError::MethodNotAllowed
}

/// A handler panicked. The panic hook has logged where; the message of the panic may quote the request.
#[derive(Debug, thiserror::Error)]
#[error("handler panicked")]
struct Panicked;

fn panic_response(_: Box<dyn Any + Send>) -> Response {
    ApiError::Internal(Panicked.into()).into_response()
}

#[cfg(test)]
mod tests;
