//! Rate limits per client address and group of routes (docs/api.md, "Rate limits").

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::Request;
use chart_index_ratelimit::{ClientAddress, Group, Limiter, PreparedCheck, TrustedProxies};

use crate::ApiError;

/// The address of the peer of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// When the requests of a route are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateLimiting {
    /// Before the handler is called, and before a body is received.
    BeforeHandler,
    /// By the handler, which extracts the [`RateLimitCheck`].
    InHandler,
    /// They have been counted.
    Done,
    /// They have no rate limit.
    Never,
}

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

    /// The limiter, whose connection to Redis the cache shares.
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

    /// Counts a request.
    ///
    /// # Errors
    ///
    /// [`ApiError::RateLimited`].
    pub(crate) async fn admit(&self, group: Group, address: ClientAddress) -> Result<(), ApiError> {
        self.check(group, address)?.admit().await
    }

    /// Counts an invalid request against the group `other`. Returns the error to respond with: the given one,
    /// or [`ApiError::RateLimited`].
    pub(crate) async fn count_invalid(&self, address: ClientAddress, error: ApiError) -> ApiError {
        self.admit(Group::Other, address).await.err().unwrap_or(error)
    }

    /// The check of a request.
    ///
    /// # Errors
    ///
    /// [`ApiError::RateLimited`], if Redis would certainly refuse the request.
    pub(crate) fn check(&self, group: Group, address: ClientAddress) -> Result<RateLimitCheck, ApiError> {
        let check = self.limiter.prepare(group, address);
        let check = check.map_err(|refusal| ApiError::RateLimited(group, refusal))?;
        Ok(RateLimitCheck { limiter: self.limiter.clone(), check })
    }
}

/// The rate limit check of a request, which the handler of a
/// [`cached_route`](crate::Routes::cached_route) must run: by its first read of the
/// [`ResponseCache`](crate::ResponseCache), in the same Redis round trip, or by [`admit`](Self::admit).
#[derive(Debug, Clone)]
#[must_use = "the request does not count until it is admitted"]
pub struct RateLimitCheck {
    limiter: Limiter,
    check: PreparedCheck,
}

impl RateLimitCheck {
    /// Counts the request.
    ///
    /// # Errors
    ///
    /// [`ApiError::RateLimited`].
    pub async fn admit(self) -> Result<(), ApiError> {
        self.decide().await
    }

    pub(crate) async fn decide(&self) -> Result<(), ApiError> {
        let group = self.check.group();
        self.limiter.decide(self.check).await.map_err(|refusal| ApiError::RateLimited(group, refusal))
    }

    /// The limiter that it is of.
    pub(crate) const fn limiter(&self) -> &Limiter {
        &self.limiter
    }
}

#[cfg(test)]
mod tests;
