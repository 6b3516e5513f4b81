//! What all requests of a listener have in common, around its routes.

use std::any::Any;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

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
use crate::rate_limit::PeerAddress;
use crate::request_limits::{self, RequestLimits};
use crate::request_telemetry::{RequestTelemetry, Waited};
use crate::routes::{MatchedRoute, RouteTable};
use crate::{
    AllowedMethods, ApiError, ErrorPages, HttpRateLimiter, RequestLimitConfig, Routes, cache_policy, cdn,
    cors, html_headers, json_request,
};

/// Handles the requests of the public listener: its routes, and around them what all requests have in common. Clones
/// share it.
///
/// This is one service and not a stack of axum middleware (decision 0049). The futures are pinned where they
/// are created, since a future that is passed on by value is copied as a whole.
#[derive(Debug, Clone)]
pub struct HttpService {
    shared: Arc<SharedParts>,
    /// Over the connection to Redis of one worker.
    rate_limiter: HttpRateLimiter,
    peer: PeerAddress,
    timer: ConnectionTimer,
}

#[derive(Debug)]
struct SharedParts {
    routes: RouteTable,
    limits: RequestLimits,
    telemetry: RequestTelemetry,
    error_pages: Option<ErrorPages>,
    has_tags: bool,
}

impl HttpService {
    /// The public API. Around its routes are, from the outermost: request id, span, metrics and log; headers of
    /// all responses; CORS; conversion of panics to errors; request limits; rate limits. Requests without a
    /// route count against the group `other`.
    ///
    /// The sampler decides which requests have a span. A trusted proxy that sends `traceparent` decides
    /// instead, unless the sampler is off.
    #[must_use]
    pub fn public(
        routes: Routes,
        rate_limiter: HttpRateLimiter,
        config: &RequestLimitConfig,
        sampler: Sampler,
    ) -> Self {
        Self::metered(routes, rate_limiter, config, sampler, &meter())
    }

    /// [`HttpService::public`], with its metrics in this meter.
    pub(crate) fn metered(
        routes: Routes,
        rate_limiter: HttpRateLimiter,
        config: &RequestLimitConfig,
        sampler: Sampler,
        meter: &Meter,
    ) -> Self {
        let telemetry = RequestTelemetry::new(&routes, &rate_limiter, sampler, meter);
        let limits = RequestLimits::new(config, meter);
        let (error_pages, has_tags, routes) = routes.into_parts();
        let routes = RouteTable::new(routes);
        let shared = Arc::new(SharedParts { routes, limits, telemetry, error_pages, has_tags });
        // Only a test that calls the service without a server has no peer address.
        let peer = PeerAddress(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        Self { shared, rate_limiter, peer, timer: ConnectionTimer::default() }
    }

    /// The same service with this limiter, which differs by its queue only (see [`Limiter::with_own_queue`]).
    #[must_use]
    pub fn with_limiter(&self, limiter: &Limiter) -> Self {
        Self { rate_limiter: self.rate_limiter.with_limiter(limiter.clone()), ..self.clone() }
    }

    /// The service for the requests of a connection from this peer.
    pub(crate) fn for_peer(&self, peer: PeerAddress) -> Self {
        Self { peer, timer: ConnectionTimer::default(), ..self.clone() }
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
        let telemetry = &self.shared.telemetry;
        let route = self.shared.routes.find(&request);
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
        let is_head = request.method() == Method::HEAD;
        let has_body = route.as_ref().is_ok_and(|route| route.has_body);
        let error_page = self.shared.error_pages.as_ref().and_then(|pages| pages.for_request(&request));
        let mut response = if cors::is_preflight(&request) {
            cors::preflight(allowed_methods(&route))
        } else {
            let response = pin!(self.call(request, route));
            // Safe: what a handler leaves behind when it panics is shared through locks and channels that
            // tolerate it.
            let response = AssertUnwindSafe(response).catch_unwind().await;
            let response = response.unwrap_or_else(|panic| Err(panic_error(panic)));
            response.unwrap_or_else(|error| error_response(error, is_head, has_body))
        };
        cors::allow_any_origin(&mut response);
        if let Some(error_page) = error_page {
            error_page.replace_problem(&mut response, is_head, request_id);
        }
        html_headers::add(&mut response);
        cache_policy::write_headers(&mut response);
        cdn::write_headers(&mut response, self.shared.has_tags);
        response
    }

    /// Counts a request and calls its handler. A request that is rejected because too many are in flight does
    /// not count, unless it is rejected after its body or its wait.
    async fn call(
        &self,
        mut request: Request,
        route: Result<MatchedRoute, ApiError>,
    ) -> Result<Response, ApiError> {
        let Self { shared, rate_limiter, .. } = self;
        let has_body = route.as_ref().is_ok_and(|route| route.has_body);
        let group = route.as_ref().map_or(Group::Other, |route| route.group);
        let body_permit = has_body.then(|| shared.limits.try_acquire_body()).transpose()?;
        let mut permits = shared.limits.try_acquire(group)?;
        let address = rate_limiter.client_address(&request, self.peer);
        let route = request_limits::validate(&request).and(route);
        let route = rate_limiter.count(address, route).await?;
        let mut waited = None;
        // While a client sends a body or waits, which takes as long as it decides, it is not in flight.
        if let Some(wait) = shared.routes.wait(route, &request) {
            drop(permits);
            let start = Instant::now();
            wait.await;
            waited = Some(Waited(start.elapsed()));
            permits = shared.limits.try_acquire(group)?;
        } else if has_body {
            drop(permits);
            // Boxed, so that the future of other requests is no larger.
            request = Box::pin(json_request::receive(request, &self.timer)).await?;
            permits = shared.limits.try_acquire(group)?;
        }
        drop(body_permit);
        request.extensions_mut().insert(route);
        let response = pin!(shared.routes.call(route, request));
        let mut response = tokio::select! {
            biased;
            response = response => response,
            () = self.timer.after(shared.limits.deadline) => return Err(ApiError::DeadlineExceeded),
        };
        drop(permits);
        if let Some(waited) = waited {
            response.extensions_mut().insert(waited);
        }
        Ok(response)
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
