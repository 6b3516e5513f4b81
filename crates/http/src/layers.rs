//! The middleware around the routes of a listener, and its fallbacks.

use std::any::Any;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;

use crate::request_limits::{self, RequestLimits};
use crate::{
    ApiError, HttpRateLimiter, RequestLimitConfig, Resource, cache_policy, cors, host_header, request_span,
};

/// Adds the layers of the public API to its routes. From the outermost: request id and span, headers of all responses,
/// CORS, conversion of panics to errors, request limits. Requests without a route count against the group `other`.
///
/// The rate limits of the groups belong to their routes, see [`HttpRateLimiter::with_rate_limit`].
pub fn public_router(routes: Router, rate_limiter: &HttpRateLimiter, config: &RequestLimitConfig) -> Router {
    let counted = |error: fn() -> ApiError| {
        let rate_limiter = rate_limiter.clone();
        move |request: Request| async move {
            let address = rate_limiter.client_address(&request);
            rate_limiter.count_other(address, error()).await
        }
    };
    let routes = routes.fallback(counted(not_found)).method_not_allowed_fallback(counted(method_not_allowed));
    let limits = RequestLimits::new(config, rate_limiter.clone());
    routes.layer(
        ServiceBuilder::new()
            .layer(from_fn(request_span::in_span))
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
            .layer(from_fn(request_span::in_span))
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

/// A handler panicked.
#[derive(Debug, thiserror::Error)]
#[error("handler panicked: {0}")]
struct Panicked(String);

fn panic_response(payload: Box<dyn Any + Send>) -> Response {
    let message = match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => payload.downcast_ref::<&str>().copied().unwrap_or_default().to_owned(),
    };
    ApiError::Internal(Panicked(message).into()).into_response()
}

#[cfg(test)]
mod tests;
