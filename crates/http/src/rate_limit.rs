//! The limit of requests per address, around the routes of a group (docs/api.md, "Limits").

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::HeaderValue;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use chart_index_ratelimit::{ClientAddress, Group, Limiter, PreparedCheck, TrustedProxies};

use crate::ApiError;

/// The address of the peer of a connection, put into each of its requests by the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// What the routes of all groups share: the limiter, and whose word on a client's address is taken.
#[derive(Debug, Clone)]
pub struct RateLimiting {
    limiter: Arc<Limiter>,
    trusted_proxies: Arc<TrustedProxies>,
}

/// The question whether a request passes, ready to be asked: once, by whoever asks Redis for the request first.
///
/// A handler that reads through [`Answers`](crate::Answers) hands it on, so that the limit and the answer travel
/// together. Where no handler takes it, as for a path that is malformed, the layer asks for itself: every request
/// counts.
#[derive(Debug, Clone)]
pub struct Turn(Arc<Mutex<Option<PreparedCheck>>>);

impl Turn {
    pub(crate) fn take(&self) -> Option<PreparedCheck> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A handler asked for a turn and its route has no limit.
#[derive(Debug, thiserror::Error)]
#[error("the route belongs to no group of limits")]
pub(crate) struct Unlimited;

impl<S: Sync> FromRequestParts<S> for Turn {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parts.extensions.get().cloned().ok_or_else(|| ApiError::Internal(Unlimited.into()))
    }
}

impl RateLimiting {
    /// Limits by this limiter.
    #[must_use]
    pub fn new(limiter: Limiter, trusted_proxies: TrustedProxies) -> Self {
        Self { limiter: Arc::new(limiter), trusted_proxies: Arc::new(trusted_proxies) }
    }

    /// The limiter.
    #[must_use]
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// Puts the limit of a group around routes. What these routes do not answer at all is not limited.
    pub fn limit<S: Clone + Send + Sync + 'static>(&self, group: Group, routes: Router<S>) -> Router<S> {
        routes.route_layer(from_fn_with_state((self.clone(), group), enforce))
    }

    /// Counts a request that no route answers in the group `other`. Gives the error to answer with: this one, or that
    /// the client is at its limit.
    pub(crate) async fn count_other(&self, address: ClientAddress, error: ApiError) -> ApiError {
        let decision = self.limiter.check(Group::Other, address).await;
        if decision.is_admitted() { error } else { ApiError::RateLimited(Group::Other, decision) }
    }

    /// Whom a request is counted for.
    pub(crate) fn client_address(&self, request: &Request) -> ClientAddress {
        // Without a server there is no peer, as where a test calls the routes by themselves.
        let peer = request.extensions().get().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |&Peer(peer)| peer);
        let forwarded_for = request.headers().get_all("x-forwarded-for");
        let lines: Vec<&[u8]> = forwarded_for.iter().map(HeaderValue::as_bytes).collect();
        self.trusted_proxies.client_address(peer, lines)
    }
}

async fn enforce(
    State((limiting, group)): State<(RateLimiting, Group)>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let limiter = &limiting.limiter;
    let check = limiter
        .prepare(group, limiting.client_address(&request))
        .map_err(|refused| ApiError::RateLimited(group, refused))?;
    let turn = Turn(Arc::new(Mutex::new(Some(check))));
    request.extensions_mut().insert(turn.clone());
    let response = next.run(request).await;
    let Some(check) = turn.take() else { return Ok(response) };
    let decision = limiter.decide(check).await;
    if decision.is_admitted() { Ok(response) } else { Err(ApiError::RateLimited(group, decision)) }
}

#[cfg(test)]
mod tests;
