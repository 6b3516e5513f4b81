//! The layers around the routes of a listener, and what answers where no route does.

use std::any::Any;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;

use crate::limits::{self, Limits};
use crate::{ApiError, LayerConfig, Missing, cache_policy, cors, request_span};

/// Puts the layers of the public API around its routes, the outermost first:
/// the request's id and span; the headers of every answer; CORS around all that can fail; panics become answers;
/// the bounds of a request.
///
/// What belongs to one group of routes only goes around those routes before they come here.
pub fn public(routes: Router, config: &LayerConfig) -> Router {
    with_fallbacks(routes).layer(
        ServiceBuilder::new()
            .layer(from_fn(request_span::in_span))
            .map_response(cache_policy::write_headers)
            .layer(from_fn(cors::allow_any_origin))
            .layer(CatchPanicLayer::custom(answer_panic))
            .layer(from_fn_with_state(Limits::new(config), limits::enforce)),
    )
}

/// Puts layers around the routes of a private listener. It is not for browsers, so there is no CORS, and it has
/// to answer when the public one is at its bounds, so there are none.
pub fn private(routes: Router) -> Router {
    with_fallbacks(routes).layer(
        ServiceBuilder::new()
            .layer(from_fn(request_span::in_span))
            .map_response(cache_policy::write_headers)
            .layer(CatchPanicLayer::custom(answer_panic)),
    )
}

fn with_fallbacks(routes: Router) -> Router {
    routes
        .fallback(async || ApiError::NotFound(Missing::Path))
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
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
