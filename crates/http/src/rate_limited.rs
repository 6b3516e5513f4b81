//! Extractors of the rate limit check of a request.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::request_context::RequestContext;
use crate::{ApiError, RateLimitCheck};

/// A handler extracts a [`RateLimitCheck`], but its route is not a cached one.
#[derive(Debug, thiserror::Error)]
#[error("the route has no rate limit check")]
struct NoCheck;

impl<S: Sync> FromRequestParts<S> for RateLimitCheck {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let client = RequestContext::take_client(parts).ok_or_else(|| ApiError::Internal(NoCheck.into()))?;
        client.check()
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
