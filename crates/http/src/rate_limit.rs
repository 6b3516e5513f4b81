//! Rate limits per client address and group of routes (docs/api.md, "Rate limits").

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::Request;
use chart_index_ratelimit::{ClientAddress, Group, Limiter, TrustedProxies};

use crate::ApiError;
use crate::group_budget::GroupBudget;
use crate::routes::Route;

/// The address of the peer of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

impl PeerAddress {
    /// The peer that sent a request, an extension of it. Only a test that sends requests without a server has
    /// none.
    pub(crate) fn of(request: &Request) -> Self {
        let unspecified = Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        request.extensions().get().copied().unwrap_or(unspecified)
    }
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

    /// The limiter.
    #[must_use]
    pub const fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    pub(crate) fn is_trusted_proxy(&self, peer: PeerAddress) -> bool {
        self.trusted_proxies.contains(peer.0)
    }

    /// Counts a request against the group of its route, and one without a route against the group `other`.
    ///
    /// # Errors
    ///
    /// [`ApiError::RateLimited`].
    pub(crate) async fn count(
        &self,
        address: ClientAddress,
        route: Option<&Route>,
    ) -> Result<Option<GroupBudget>, ApiError> {
        if route.is_some_and(|route| !route.is_limited) {
            return Ok(None);
        }
        let group = route.map_or(Group::Other, |route| route.group);
        let decision = self.limiter.check(group, address).await;
        let budget = decision.map_err(|refusal| ApiError::RateLimited(group, refusal))?;
        Ok(budget.map(|budget| GroupBudget::new(group, budget)))
    }

    /// The address that a request is counted against.
    pub(crate) fn client_address(&self, request: &Request) -> ClientAddress {
        let PeerAddress(peer) = PeerAddress::of(request);
        self.trusted_proxies.client_address(peer, request.headers().get_all("x-forwarded-for"))
    }
}

#[cfg(test)]
mod tests;
