//! What a handler needs to know of its request besides the request itself.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::route_table::MatchedRoute;
use crate::{ApiError, RateLimitCheck};

/// An extension of the request, which extractors read.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    pub(crate) check: RateLimitCheck,
    pub(crate) route: MatchedRoute,
}

impl RequestContext {
    /// The parameter in the path of the request, as it was sent; `None` if its route has none.
    pub(crate) fn path_parameter(parts: &Parts) -> Option<&str> {
        parts.extensions.get::<Self>()?.route.parameter(parts.uri.path())
    }
}

/// A handler extracts a [`RateLimitCheck`], but its route is not one of [`Routes`](crate::Routes).
#[derive(Debug, thiserror::Error)]
#[error("route has no rate limit")]
struct NoRateLimit;

impl<S: Sync> FromRequestParts<S> for RateLimitCheck {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let context = parts.extensions.get::<RequestContext>();
        context.map(|context| context.check.clone()).ok_or_else(|| ApiError::Internal(NoRateLimit.into()))
    }
}
