//! The layers around the routes of a listener, and what answers where no route does.

use std::any::Any;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;

use crate::limits::{self, Limits};
use crate::{ApiError, LayerConfig, RateLimiting, Resource, cache_policy, cors, host, request_span};

/// Puts the layers of the public API around its routes, the outermost first:
/// the request's id and span; the headers of every answer; CORS around all that can fail; panics become answers;
/// the bounds of a request. What no route answers counts in the group `other`.
///
/// What belongs to one group of routes only goes around those routes before they come here.
pub fn public(routes: Router, limiting: &RateLimiting, config: &LayerConfig) -> Router {
    let counted = |error: fn() -> ApiError| {
        let limiting = limiting.clone();
        move |request: Request| async move {
            let address = limiting.client_address(&request);
            limiting.count_other(address, error()).await
        }
    };
    let routes = routes.fallback(counted(no_such_path)).method_not_allowed_fallback(counted(other_method));
    routes.layer(
        ServiceBuilder::new()
            .layer(from_fn(request_span::in_span))
            .map_response(cache_policy::write_headers)
            .layer(from_fn(cors::allow_any_origin))
            .layer(CatchPanicLayer::custom(answer_panic))
            .layer(from_fn_with_state(Limits::new(config, limiting.clone()), limits::enforce)),
    )
}

/// Puts layers around the routes of a private listener. It is not for browsers, so there is no CORS, and it has
/// to answer when the public one is at its bounds, so there are none.
pub fn private(routes: Router) -> Router {
    let routes =
        routes.fallback(async || no_such_path()).method_not_allowed_fallback(async || other_method());
    routes.layer(
        ServiceBuilder::new()
            .layer(from_fn(request_span::in_span))
            .map_response(cache_policy::write_headers)
            .layer(CatchPanicLayer::custom(answer_panic))
            .layer(from_fn(host::require)),
    )
}

const fn no_such_path() -> ApiError {
    ApiError::NotFound(Resource::Endpoint)
}

const fn other_method() -> ApiError {
    ApiError::MethodNotAllowed
}

/// A handler panicked.
#[derive(Debug, thiserror::Error)]
#[error("handler panicked: {0}")]
struct Panicked(String);

fn answer_panic(payload: Box<dyn Any + Send>) -> Response {
    let text = match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload.downcast_ref::<&str>().copied().unwrap_or_default().to_owned(),
    };
    ApiError::Internal(Panicked(text).into()).into_response()
}

#[cfg(test)]
mod tests;
