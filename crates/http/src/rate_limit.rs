//! The limit of requests per address, around the routes of a group (decisions, "Limits").

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use chart_index_ratelimit::{ClientAddress, Decision, Group, Limiter, TrustedProxies};

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

impl RateLimiting {
    /// Limits by this limiter.
    #[must_use]
    pub fn new(limiter: Limiter, trusted_proxies: TrustedProxies) -> Self {
        Self { limiter: Arc::new(limiter), trusted_proxies: Arc::new(trusted_proxies) }
    }

    /// Puts the limit of a group around routes. What these routes do not answer at all is not limited.
    pub fn limit<S: Clone + Send + Sync + 'static>(&self, group: Group, routes: Router<S>) -> Router<S> {
        routes.route_layer(from_fn_with_state((self.clone(), group), enforce))
    }

    fn client_address(&self, request: &Request) -> ClientAddress {
        // Without a server there is no peer, as where a test calls the routes by themselves.
        let peer = request.extensions().get().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |&Peer(peer)| peer);
        let forwarded_for = request.headers().get_all("x-forwarded-for");
        let lines: Vec<&[u8]> = forwarded_for.iter().map(HeaderValue::as_bytes).collect();
        self.trusted_proxies.client_address(peer, lines)
    }
}

async fn enforce(
    State((limiting, group)): State<(RateLimiting, Group)>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let address = limiting.client_address(&request);
    let decision: Decision = limiting.limiter.check(group, address).await;
    if decision.is_admitted() {
        Ok(next.run(request).await)
    } else {
        Err(ApiError::RateLimited(group, decision))
    }
}
