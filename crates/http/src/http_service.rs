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
use axum::http::header::{CONNECTION, CONTENT_LENGTH};
use axum::http::{HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use chart_index_instrumentation::{Sampler, meter};
use chart_index_ratelimit::{Group, Limiter};
use futures_util::FutureExt;
use opentelemetry::metrics::Meter;
use tokio::time::Instant;
use tower::{BoxError, Service};
use tracing::Instrument;

use crate::connection_timer::ConnectionTimer;
use crate::rate_limit::{PeerAddress, RateLimiting};
use crate::request_context::RequestContext;
use crate::request_limits::{self, RequestLimits};
use crate::request_telemetry::{RequestTelemetry, Waited};
use crate::routes::{MatchedRoute, RouteTable};
use crate::{
    AllowedMethods, ApiError, ErrorPages, HttpRateLimiter, RequestLimitConfig, Resource, Routes,
    cache_policy, cdn, cors, host_header, html_headers, json_request,
};

/// Handles the requests of a listener: its routes, and around them what all requests have in common. Clones
/// share it.
///
/// This is one service and not a stack of axum middleware (decision 0049). The futures are pinned where they
/// are created, since a future that is passed on by value is copied as a whole.
#[derive(Debug, Clone)]
pub struct HttpService {
    listener: Listener,
    peer: PeerAddress,
    timer: ConnectionTimer,
}

#[derive(Debug, Clone)]
enum Listener {
    Public {
        shared: Arc<PublicListener>,
        /// Over the connection to Redis of one worker.
        rate_limiter: HttpRateLimiter,
    },
    Private(Arc<PrivateListener>),
}

#[derive(Debug)]
struct PublicListener {
    routes: RouteTable,
    limits: RequestLimits,
    telemetry: RequestTelemetry,
    error_pages: Option<ErrorPages>,
    has_tags: bool,
}

#[derive(Debug)]
struct PrivateListener {
    router: Router,
    telemetry: RequestTelemetry,
}

impl HttpService {
    /// The public API. Around its routes are, from the outermost: request id, span, metrics and log; headers of
    /// all responses; CORS; conversion of panics to errors; request limits; rate limits. A request with a body
    /// has its rate limit before its body, and its request limits after it. Requests without a route count
    /// against the group `other`.
    ///
    /// The sampler decides which requests have a span. A trusted proxy that sends `traceparent` decides
    /// instead, unless the sampler is off.
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
        let (telemetry, limits) =
            (RequestTelemetry::public(&routes, sampler, meter), RequestLimits::new(config, meter));
        let (rate_limiter, error_pages, has_tags, routes) = routes.into_parts();
        let routes = RouteTable::new(routes);
        let shared = PublicListener { routes, limits, telemetry, error_pages, has_tags };
        Self::new(Listener::Public { shared: Arc::new(shared), rate_limiter })
    }

    /// The private listener with these routes. It needs no CORS, since browsers do not use it, and has no
    /// limits, so that it responds while the public listener is overloaded. Its log lines do not name the
    /// route.
    #[must_use]
    pub fn private(router: Router) -> Self {
        let router = router
            .fallback(async || ApiError::NotFound(Resource::Endpoint))
            .method_not_allowed_fallback(async || ApiError::MethodNotAllowed(AllowedMethods::Read));
        Self::new(Listener::Private(Arc::new(PrivateListener {
            router,
            telemetry: RequestTelemetry::private(),
        })))
    }

    fn new(listener: Listener) -> Self {
        // Only a test that calls the service without a server has no peer address.
        let peer = PeerAddress(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        Self { listener, peer, timer: ConnectionTimer::default() }
    }

    /// The same service with this limiter, which differs by its connection only (see
    /// [`Limiter::with_connection`]).
    #[must_use]
    pub fn with_limiter(&self, limiter: &Limiter) -> Self {
        let mut this = self.clone();
        if let Listener::Public { rate_limiter, .. } = &mut this.listener {
            *rate_limiter = rate_limiter.with_limiter(limiter.clone());
        }
        this
    }

    /// The service for the requests of a connection from this peer.
    pub(crate) fn for_peer(&self, peer: PeerAddress) -> Self {
        Self { listener: self.listener.clone(), peer, timer: ConnectionTimer::default() }
    }

    pub(crate) const fn timer(&self) -> &ConnectionTimer {
        &self.timer
    }

    /// Handles a request: in its span, recorded and logged.
    pub(crate) async fn handle<B>(&self, request: hyper::Request<B>) -> Response
    where
        B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let request = request.map(Body::new);
        let (telemetry, route) = match &self.listener {
            Listener::Public { shared, .. } => (&shared.telemetry, shared.routes.find(&request)),
            // Its router finds the route.
            Listener::Private(shared) => (&shared.telemetry, Err(ApiError::NotFound(Resource::Endpoint))),
        };
        let matched = route.as_ref().ok().copied();
        let observation = telemetry.start(&request, self.peer, matched);
        let span = observation.span().clone();
        let response = pin!(self.respond(request, route, observation.id()));
        let mut response = response.instrument(span).await;
        telemetry.finish(&observation, &mut response);
        response
    }

    /// Responds to a request, and adds the headers that all responses have.
    async fn respond(
        &self,
        request: Request,
        route: Result<MatchedRoute, ApiError>,
        request_id: &str,
    ) -> Response {
        let is_public = matches!(self.listener, Listener::Public { .. });
        let is_head = request.method() == Method::HEAD;
        let has_body = route.as_ref().is_ok_and(|route| route.has_body);
        let error_page = self.error_pages().and_then(|pages| pages.for_request(&request));
        let mut response = if is_public && cors::is_preflight(&request) {
            cors::preflight(allowed_methods(&route))
        } else {
            let response = pin!(self.call(request, route));
            // Safe: what a handler leaves behind when it panics is shared through locks and channels that
            // tolerate it.
            let response = AssertUnwindSafe(response).catch_unwind().await;
            let response = response.unwrap_or_else(|panic| Err(panic_error(panic)));
            response.unwrap_or_else(|error| error_response(error, is_head, has_body))
        };
        if is_public {
            cors::allow_any_origin(&mut response);
        }
        if let Some(error_page) = error_page {
            error_page.replace_problem(&mut response, is_head, request_id);
        }
        html_headers::add(&mut response);
        cache_policy::write_headers(&mut response);
        cdn::write_headers(
            &mut response,
            matches!(&self.listener, Listener::Public { shared, .. } if shared.has_tags),
        );
        response
    }

    fn error_pages(&self) -> Option<&ErrorPages> {
        match &self.listener {
            Listener::Public { shared, .. } => shared.error_pages.as_ref(),
            Listener::Private(_) => None,
        }
    }

    /// Calls the handler, on the public listener within the limits on requests in flight and on time.
    async fn call(
        &self,
        mut request: Request,
        mut route: Result<MatchedRoute, ApiError>,
    ) -> Result<Response, ApiError> {
        match &self.listener {
            Listener::Private(shared) => {
                host_header::check(&request)?;
                let Ok(response) = shared.router.clone().call(request).await;
                Ok(response)
            }
            Listener::Public { shared, rate_limiter } => {
                let group = route.as_ref().map_or(Group::Other, |route| route.group);
                let mut waited = None;
                if let Ok(route) = &mut route
                    && (route.has_body || route.may_wait)
                {
                    // Boxed, so that the future of other requests is no larger.
                    let prepared = Box::pin(self.prepare(shared, rate_limiter, request, route));
                    (request, waited) = prepared.await?;
                }
                let _permits = shared.limits.try_acquire(group)?;
                let response =
                    pin!(self.call_within_rate_limit(&shared.routes, rate_limiter, request, route));
                let mut response = tokio::select! {
                    biased;
                    response = response => response?,
                    () = self.timer.after(shared.limits.deadline) => return Err(ApiError::DeadlineExceeded),
                };
                if let Some(waited) = waited {
                    response.extensions_mut().insert(waited);
                }
                Ok(response)
            }
        }
    }

    /// Receives the body of a request, or lets it wait, before it counts as in flight: clients decide how long
    /// that takes. The rate limit is decided first, so that a body that never arrives counts. Returns the
    /// request and how long it has waited.
    async fn prepare(
        &self,
        shared: &PublicListener,
        rate_limiter: &HttpRateLimiter,
        request: Request,
        route: &mut MatchedRoute,
    ) -> Result<(Request, Option<Waited>), ApiError> {
        let wait = shared.routes.wait(*route, &request);
        if !route.has_body && wait.is_none() {
            return Ok((request, None));
        }
        // While the group is at its limit, requests are rejected at once and do not count.
        drop(shared.limits.try_acquire(route.group)?);
        let _permit = if route.has_body { Some(shared.limits.try_acquire_body()?) } else { None };
        let address = rate_limiter.client_address(&request, self.peer);
        if let Err(error) = request_limits::validate(&request) {
            return Err(rate_limiter.count_invalid(address, error).await);
        }
        rate_limiter.admit(route.group, address).await?;
        route.rate_limiting = RateLimiting::Done;
        if let Some(wait) = wait {
            let start = Instant::now();
            wait.await;
            return Ok((request, Some(Waited(start.elapsed()))));
        }
        Ok((json_request::receive(request, &self.timer).await?, None))
    }

    /// Calls the handler, after the request was counted if the handler does not do that.
    async fn call_within_rate_limit(
        &self,
        routes: &RouteTable,
        rate_limiter: &HttpRateLimiter,
        mut request: Request,
        route: Result<MatchedRoute, ApiError>,
    ) -> Result<Response, ApiError> {
        let address = rate_limiter.client_address(&request, self.peer);
        if let Err(error) = request_limits::validate(&request) {
            return Err(rate_limiter.count_invalid(address, error).await);
        }
        let route = match route {
            Ok(route) => route,
            Err(error) => return Err(rate_limiter.count_invalid(address, error).await),
        };
        let check = match route.rate_limiting {
            RateLimiting::InHandler => Some(rate_limiter.check(route.group, address)?),
            RateLimiting::BeforeHandler => {
                rate_limiter.admit(route.group, address).await?;
                None
            }
            RateLimiting::Done | RateLimiting::Never => None,
        };
        request.extensions_mut().insert(RequestContext { route, check });
        Ok(routes.call(route, request).await)
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

/// Turns an error outside of the routes into a response, as `axum::Router` would: with a length, and without a
/// body for HEAD.
fn error_response(error: ApiError, is_head: bool, has_body: bool) -> Response {
    let mut response = error.into_response();
    if let Some(length) = response.body().size_hint().exact() {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    if is_head {
        *response.body_mut() = Body::empty();
    }
    if has_body {
        // It may not have been read to its end (RFC 9112, sections 9.3 and 9.6).
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The methods to name in the response to an OPTIONS request of this route.
const fn allowed_methods(route: &Result<MatchedRoute, ApiError>) -> AllowedMethods {
    match route {
        Err(ApiError::MethodNotAllowed(allowed)) => *allowed,
        _ => AllowedMethods::Read,
    }
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
