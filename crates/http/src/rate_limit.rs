//! Rate limits per client address and group of routes (docs/api.md, "Rate limits").

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::Request;
use chart_index_ratelimit::{ClientAddress, Group, Limiter, PreparedCheck, TrustedProxies};

use crate::ApiError;

/// The address of the peer of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// The rate limiter, and the proxies whose `X-Forwarded-For` is trusted.
#[derive(Debug, Clone)]
pub struct HttpRateLimiter {
    limiter: Limiter,
    trusted_proxies: Arc<TrustedProxies>,
}

/// The rate limit check of a request, which runs once: in [`ResponseCache`](crate::ResponseCache), in the same
/// Redis round trip as the read of the response, or else after the handler, e.g. if the path was malformed:
/// every request counts. That of a request with a body runs before the body is received.
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

    /// The check of a request without a rate limit, or whose limit has been decided.
    pub(crate) fn unlimited() -> RateLimitCheck {
        RateLimitCheck(Arc::default())
    }

    /// Prepares the check of a request.
    ///
    /// # Errors
    ///
    /// [`ApiError::RateLimited`], if Redis would certainly refuse the request.
    pub(crate) fn prepare(&self, group: Group, address: ClientAddress) -> Result<RateLimitCheck, ApiError> {
        let check = self.limiter.prepare(group, address);
        check.map(RateLimitCheck::new).map_err(|refused| ApiError::RateLimited(group, refused))
    }

    /// Runs the check of a request that was handled, unless its handler did.
    ///
    /// # Errors
    ///
    /// [`ApiError::RateLimited`].
    pub(crate) async fn finish(&self, check: &RateLimitCheck) -> Result<(), ApiError> {
        let Some(prepared) = check.take() else { return Ok(()) };
        let group = prepared.group();
        let decision = self.limiter.decide(prepared).await;
        if decision.is_admitted() { Ok(()) } else { Err(ApiError::RateLimited(group, decision)) }
    }

    /// Counts an invalid request against the group `other`. Returns the error to respond with: the given one,
    /// or [`ApiError::RateLimited`] above the limit.
    pub(crate) async fn count_invalid(&self, address: ClientAddress, error: ApiError) -> ApiError {
        let decision = self.limiter.check(Group::Other, address).await;
        if decision.is_admitted() { error } else { ApiError::RateLimited(Group::Other, decision) }
    }

    /// The address that a request is counted against.
    pub(crate) fn client_address(&self, request: &Request, PeerAddress(peer): PeerAddress) -> ClientAddress {
        self.trusted_proxies.client_address(peer, request.headers().get_all("x-forwarded-for"))
    }
}

#[cfg(test)]
mod tests;
