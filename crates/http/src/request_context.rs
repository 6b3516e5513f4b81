//! What a handler needs to know of its request besides the request itself, and the extractors of it.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::routes::MatchedRoute;
use crate::{ApiError, RateLimitCheck};

/// An extension of the request, which extractors read.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    pub(crate) route: MatchedRoute,
    /// For a handler that counts the request.
    pub(crate) check: Option<RateLimitCheck>,
}

impl RequestContext {
    /// The parameter in the path of the request, as it was sent; `None` if its route has none.
    pub(crate) fn path_parameter(parts: &Parts) -> Option<&str> {
        parts.extensions.get::<Self>()?.route.parameter(parts.uri.path())
    }
}

/// A handler extracts a [`RateLimitCheck`], but its route is not a cached one.
#[derive(Debug, thiserror::Error)]
#[error("the route has no rate limit check")]
struct NoCheck;

impl<S: Sync> FromRequestParts<S> for RateLimitCheck {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let context = parts.extensions.get_mut::<RequestContext>();
        context.and_then(|context| context.check.take()).ok_or_else(|| ApiError::Internal(NoCheck.into()))
    }
}

/// Extracts the [`RateLimitCheck`] and the parameters of a request. Without valid parameters the request is
/// counted and rejected.
#[derive(Debug)]
pub struct RateLimited<P>(pub RateLimitCheck, pub P);

impl<S, P> FromRequestParts<S> for RateLimited<P>
where
    S: Sync,
    P: FromRequestParts<S, Rejection = ApiError> + Send,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let check = RateLimitCheck::from_request_parts(parts, state).await?;
        match P::from_request_parts(parts, state).await {
            Ok(parameters) => Ok(Self(check, parameters)),
            Err(error) => {
                check.admit().await?;
                Err(error)
            }
        }
    }
}
