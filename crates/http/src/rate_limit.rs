//! Rate limits per client address and group of routes (docs/api.md, "Rate limits").

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::Request;
use chart_index_ratelimit::{ClientAddress, Group, Limiter, TrustedProxies};

use crate::ApiError;
use crate::routes::MatchedRoute;

/// The address of the peer of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// The rate limiter, and the proxies whose `X-Forwarded-For` is trusted.
#[derive(Debug, Clone)]
pub struct HttpRateLimiter {
    limiter: Limiter,
    trusted_proxies: Arc<TrustedProxies>,
}

impl HttpRateLimiter {
    /// Limits requests by client address, which trusted proxies may forward.
    #[must_use]
    pub fn new(limiter: Limiter, trusted_proxies: TrustedProxies) -> Self {
        Self { limiter, trusted_proxies: Arc::new(trusted_proxies) }
    }

    /// Another limiter with the same trusted proxies.
    pub(crate) fn with_limiter(&self, limiter: Limiter) -> Self {
        Self { limiter, trusted_proxies: Arc::clone(&self.trusted_proxies) }
    }

    /// The limiter.
    #[must_use]
    pub const fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    pub(crate) fn is_trusted_proxy(&self, peer: PeerAddress) -> bool {
        self.trusted_proxies.contains(peer.0)
    }

    /// The address that a request is counted against.
    pub(crate) fn client_address(&self, request: &Request, PeerAddress(peer): PeerAddress) -> ClientAddress {
        self.trusted_proxies.client_address(peer, request.headers().get_all("x-forwarded-for"))
    }

    /// Counts a request against the group of its route, and an invalid one against the group `other`.
    ///
    /// # Errors
    ///
    /// [`ApiError::RateLimited`], and the error of an invalid request.
    pub(crate) async fn count(
        &self,
        address: ClientAddress,
        route: Result<MatchedRoute, ApiError>,
    ) -> Result<MatchedRoute, ApiError> {
        if route.as_ref().is_ok_and(|route| !route.is_limited) {
            return route;
        }
        let group = route.as_ref().map_or(Group::Other, |route| route.group);
        match self.limiter.check(group, address).await {
            Ok(()) => route,
            Err(refusal) => Err(ApiError::RateLimited(group, refusal)),
        }
    }
}

#[cfg(test)]
mod tests;
