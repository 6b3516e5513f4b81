//! Rate limits per client address and group of routes (docs/api.md, "Rate limits").

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{FromRequestParts, Request, State};
use axum::http::HeaderValue;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::MethodRouter;
use chart_index_ratelimit::{ClientAddress, Group, Limiter, PreparedCheck, TrustedProxies};

use crate::ApiError;

/// The peer address of a connection. The server adds it to the extensions of every request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// The rate limiter, and the proxies whose `X-Forwarded-For` is trusted.
#[derive(Debug, Clone)]
pub struct HttpRateLimiter {
    limiter: Arc<Limiter>,
    trusted_proxies: Arc<TrustedProxies>,
}

/// The rate limit check of a request, which runs once: in [`ResponseCache`](crate::ResponseCache), in the same Redis
/// round trip as the read of the response, or else in the layer after the handler.
///
/// The layer runs the check of a request whose handler did not, such as one with a malformed path: every request counts.
#[derive(Debug, Clone)]
pub struct RateLimitCheck(Arc<Mutex<Option<PreparedCheck>>>);

impl RateLimitCheck {
    fn new(check: PreparedCheck) -> Self {
        Self(Arc::new(Mutex::new(Some(check))))
    }

    /// The check, unless it has been taken.
    pub(crate) fn take(&self) -> Option<PreparedCheck> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A handler extracts a [`RateLimitCheck`], but its route is not in a group.
#[derive(Debug, thiserror::Error)]
#[error("route has no rate limit")]
pub(crate) struct NoRateLimit;

impl<S: Sync> FromRequestParts<S> for RateLimitCheck {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parts.extensions.get().cloned().ok_or_else(|| ApiError::Internal(NoRateLimit.into()))
    }
}

impl HttpRateLimiter {
    /// Limits requests by client address, which trusted proxies may forward.
    #[must_use]
    pub fn new(limiter: Limiter, trusted_proxies: TrustedProxies) -> Self {
        Self { limiter: Arc::new(limiter), trusted_proxies: Arc::new(trusted_proxies) }
    }

    /// The limiter.
    #[must_use]
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// Whether the peer is a trusted proxy.
    pub(crate) fn is_from_trusted_proxy(&self, request: &Request) -> bool {
        let peer = request.extensions().get::<PeerAddress>();
        peer.is_some_and(|&PeerAddress(peer)| self.trusted_proxies.contains(peer))
    }

    /// The handlers of a route with the rate limit of a group, which does not apply to their fallback.
    pub(crate) fn with_rate_limit<S: Clone + Send + Sync + 'static>(
        &self,
        group: Group,
        handlers: MethodRouter<S>,
    ) -> MethodRouter<S> {
        handlers.route_layer(from_fn_with_state((self.clone(), group), enforce))
    }

    /// Counts a request without a route against the group `other`. Returns the error to respond with: the given one, or
    /// [`ApiError::RateLimited`] above the limit.
    pub(crate) async fn count_other(&self, address: ClientAddress, error: ApiError) -> ApiError {
        let decision = self.limiter.check(Group::Other, address).await;
        if decision.is_admitted() { error } else { ApiError::RateLimited(Group::Other, decision) }
    }

    /// The address that a request is counted against.
    pub(crate) fn client_address(&self, request: &Request) -> ClientAddress {
        // Only a test that calls the routes without a server has no peer address.
        let peer =
            request.extensions().get().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |&PeerAddress(peer)| peer);
        let forwarded_for = request.headers().get_all("x-forwarded-for");
        let lines: Vec<&[u8]> = forwarded_for.iter().map(HeaderValue::as_bytes).collect();
        self.trusted_proxies.client_address(peer, lines)
    }
}

async fn enforce(
    State((rate_limiter, group)): State<(HttpRateLimiter, Group)>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let limiter = &rate_limiter.limiter;
    let prepared = limiter
        .prepare(group, rate_limiter.client_address(&request))
        .map_err(|refused| ApiError::RateLimited(group, refused))?;
    let check = RateLimitCheck::new(prepared);
    request.extensions_mut().insert(check.clone());
    let response = next.run(request).await;
    let Some(prepared) = check.take() else { return Ok(response) };
    let decision = limiter.decide(prepared).await;
    if decision.is_admitted() { Ok(response) } else { Err(ApiError::RateLimited(group, decision)) }
}

#[cfg(test)]
mod tests;
