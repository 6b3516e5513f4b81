//! What all requests of a listener have in common, around its routes.

use std::any::Any;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::Method;
use axum::http::header::CONTENT_LENGTH;
use axum::response::{IntoResponse, Response};
use chart_index_instrumentation::{Sampler, meter};
use chart_index_ratelimit::Group;
use futures_util::FutureExt;
use opentelemetry::metrics::Meter;
use tokio::time::timeout;
use tower::{BoxError, Service};
use tracing::Instrument;

use crate::rate_limit::PeerAddress;
use crate::request_limits::{self, RequestLimits};
use crate::request_telemetry::RequestTelemetry;
use crate::route_table::{MatchedRoute, RouteTable};
use crate::{
    ApiError, HttpRateLimiter, RequestLimitConfig, Resource, Routes, cache_policy, cors, host_header,
};

/// Handles the requests of a listener: its routes, and around them what all requests have in common. Clones share it.
///
/// This is one service instead of a stack of axum middleware, of which each layer clones its state and allocates its future
/// for every request (`benchmarks/results/2026-11-22-request-overhead.md`). The futures are pinned where they are created,
/// since a future that is passed on by value is copied as a whole.
#[derive(Debug, Clone)]
pub struct HttpService {
    listener: Arc<Listener>,
    peer: PeerAddress,
}

#[derive(Debug)]
struct Listener {
    router: Router,
    telemetry: RequestTelemetry,
    /// What only the public listener has.
    public: Option<PublicListener>,
}

#[derive(Debug)]
struct PublicListener {
    routes: RouteTable,
    limits: RequestLimits,
}

impl HttpService {
    /// The public API. Around its routes are, from the outermost: request id, span, metrics and log; headers of all
    /// responses; CORS; conversion of panics to errors; request limits; rate limits. Requests without a route count
    /// against the group `other`.
    ///
    /// The sampler decides which requests have a span. A trusted proxy that sends `traceparent` decides instead, unless the
    /// sampler is off.
    #[must_use]
    pub fn public(routes: Routes, config: &RequestLimitConfig, sampler: Sampler) -> Self {
        Self::metered(routes, config, sampler, &meter())
    }

    /// [`HttpService::public`], with its metrics in this meter.
    pub(crate) fn metered(
        routes: Routes,
        config: &RequestLimitConfig,
        sampler: Sampler,
        meter: &Meter,
    ) -> Self {
        let telemetry = RequestTelemetry::public(&routes, sampler, meter);
        let limits = RequestLimits::new(config, &routes, meter);
        let (handlers, table) = routes.into_handlers_and_table();
        Self::new(handlers, telemetry, Some(PublicListener { routes: table, limits }))
    }

    /// The private listener with these routes. It needs no CORS, since browsers do not use it, and has no limits, so that
    /// it responds while the public listener is overloaded. Its log lines do not name the route.
    #[must_use]
    pub fn private(router: Router) -> Self {
        Self::new(router, RequestTelemetry::private(), None)
    }

    fn new(router: Router, telemetry: RequestTelemetry, public: Option<PublicListener>) -> Self {
        let router = router
            .fallback(async || ApiError::NotFound(Resource::Endpoint))
            .method_not_allowed_fallback(async || ApiError::MethodNotAllowed);
        // Only a test that calls the service without a server has no peer address.
        let peer = PeerAddress(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        Self { listener: Arc::new(Listener { router, telemetry, public }), peer }
    }

    /// The service for the requests of a connection from this peer.
    pub(crate) fn for_peer(&self, peer: PeerAddress) -> Self {
        Self { peer, ..self.clone() }
    }

    /// Handles a request: in its span, recorded and logged.
    pub(crate) async fn handle<B>(&self, request: hyper::Request<B>) -> Response
    where
        B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let (listener, request) = (&*self.listener, request.map(Body::new));
        let route = listener.public.as_ref().and_then(|public| public.routes.find(&request));
        let observation = listener.telemetry.start(&request, self.peer, route);
        let span = observation.span().clone();
        let response = pin!(listener.respond(request, self.peer, route));
        let mut response = response.instrument(span).await;
        listener.telemetry.finish(observation, &mut response);
        response
    }
}

impl Listener {
    /// The response, with the headers that all responses have.
    async fn respond(&self, request: Request, peer: PeerAddress, route: Option<MatchedRoute>) -> Response {
        let (is_public, is_head) = (self.public.is_some(), request.method() == Method::HEAD);
        let mut response = if is_public && cors::is_preflight(&request) {
            cors::preflight()
        } else {
            let response = pin!(self.handle(request, peer, route));
            // Safe: what a handler leaves behind when it panics is shared through locks and channels that tolerate it.
            let response = AssertUnwindSafe(response).catch_unwind().await;
            let response = response.unwrap_or_else(|panic| Err(panic_error(panic)));
            response.unwrap_or_else(|error| error_response(error, is_head))
        };
        if is_public {
            cors::allow_any_origin(&mut response);
        }
        cache_policy::write_headers(&mut response);
        response
    }

    /// The response within the limits of requests in flight and of time.
    async fn handle(
        &self,
        request: Request,
        peer: PeerAddress,
        route: Option<MatchedRoute>,
    ) -> Result<Response, ApiError> {
        let Some(PublicListener { limits, .. }) = &self.public else {
            host_header::check(&request)?;
            return Ok(self.call_routes(request).await);
        };
        let group = route.map_or(Group::Other, |route| route.group);
        let _permits = limits.try_acquire(group)?;
        let response = pin!(self.handle_counted(&limits.rate_limiter, group, request, peer));
        timeout(limits.deadline, response).await.map_err(|_| ApiError::DeadlineExceeded)?
    }

    /// The response within the rate limit. The handler may run the check together with its read; if it did not, it runs
    /// afterwards.
    async fn handle_counted(
        &self,
        rate_limiter: &HttpRateLimiter,
        group: Group,
        mut request: Request,
        peer: PeerAddress,
    ) -> Result<Response, ApiError> {
        let address = rate_limiter.client_address(&request, peer);
        if let Err(error) = request_limits::validate(&request) {
            return Err(rate_limiter.count_invalid(address, error).await);
        }
        let check = rate_limiter.prepare(group, address)?;
        request.extensions_mut().insert(check.clone());
        let response = self.call_routes(request).await;
        rate_limiter.finish(&check).await.map(|()| response)
    }

    async fn call_routes(&self, request: Request) -> Response {
        let Ok(response) = self.router.clone().call(request).await;
        response
    }
}

/// For tests, which send requests without a connection. Connections call `handle`, without this allocation.
impl<B> Service<hyper::Request<B>> for HttpService
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: hyper::Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.handle(request).await) })
    }
}

/// The response to an error outside of the routes, with its length and without a body for HEAD, as `axum::Router` responds.
fn error_response(error: ApiError, is_head: bool) -> Response {
    let mut response = error.into_response();
    if let Some(length) = response.body().size_hint().exact() {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    if is_head {
        *response.body_mut() = Body::empty();
    }
    response
}

/// A handler panicked. The panic hook has logged where; the message of the panic may quote the request.
#[derive(Debug, thiserror::Error)]
#[error("handler panicked")]
struct Panicked;

fn panic_error(_: Box<dyn Any + Send>) -> ApiError {
    ApiError::Internal(Panicked.into())
}

#[cfg(test)]
mod tests;
