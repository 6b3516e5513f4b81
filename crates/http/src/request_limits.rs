//! Limits on each request: requests in flight, of all and of each group, bodies, duration, length of the URI,
//! and a valid `Host` header.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chart_index_instrumentation::Metrics;
use chart_index_ratelimit::{Group, Limiter};
use futures_util::FutureExt;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use crate::group_budget::GroupBudget;
use crate::request_telemetry::Waited;
use crate::routes::Route;
use crate::{ApiError, HttpRateLimiter, Overload, RequestLimitConfig, cors, host_header, json_request};

/// The longest path and query. The longest useful query has every parameter and a `q` of 200 characters, all
/// escaped, and is much shorter.
const MAX_URI_BYTES: usize = 8 * 1024;

/// The limits on requests. Clones share all permits.
#[derive(Debug, Clone)]
pub(crate) struct RequestLimits {
    rate_limiter: HttpRateLimiter,
    in_flight: Arc<Semaphore>,
    /// By group: requests of one group, which may be slow, cannot use up the permits of all.
    groups: Arc<[Semaphore]>,
    /// Bodies being received, each of which takes up to 128 KiB of memory. Not part of the requests in flight,
    /// which slow clients would use up.
    bodies: Arc<Semaphore>,
    /// The maximum duration of a request.
    deadline: Duration,
}

/// A handler panicked. The panic hook has logged where; the message of the panic may quote the request.
#[derive(Debug, thiserror::Error)]
#[error("handler panicked")]
struct Panicked;

impl RequestLimits {
    pub(crate) fn new(rate_limiter: HttpRateLimiter, config: &RequestLimitConfig, metrics: &Metrics) -> Self {
        let max_in_flight = config.max_in_flight();
        let in_flight = Arc::new(Semaphore::new(max_in_flight));
        metrics.observe(&in_flight, move |in_flight, metrics| {
            let active = max_in_flight.saturating_sub(in_flight.available_permits());
            metrics.http_server_active_requests.set([], active);
            metrics.chart_index_http_requests_limit.set([], max_in_flight);
        });
        Self {
            rate_limiter,
            in_flight,
            groups: Group::ALL.iter().map(|&group| Semaphore::new(config.max_in_flight_of(group))).collect(),
            bodies: Arc::new(Semaphore::new(max_in_flight)),
            deadline: config.request_deadline,
        }
    }

    pub(crate) fn with_limiter(&self, limiter: &Limiter) -> Self {
        Self { rate_limiter: self.rate_limiter.with_limiter(limiter.clone()), ..self.clone() }
    }

    /// Handles a request within the limits. Preflights have none, since they read nothing.
    pub(crate) async fn enforce(&self, request: Request, next: Next) -> Response {
        if cors::is_preflight(&request) {
            return next.run(request).await;
        }
        let route = request.extensions().get::<Arc<Route>>().cloned();
        let has_body = route.as_ref().is_some_and(|route| route.has_body);
        let mut budget = None;
        let handled = {
            let handling = pin!(self.handle(request, route, next, &mut budget));
            // Safe: what a handler leaves behind when it panics is shared through locks and channels that
            // tolerate it.
            AssertUnwindSafe(handling).catch_unwind().await
        };
        let result = handled.unwrap_or_else(|_| Err(ApiError::Internal(Panicked.into())));
        let mut response = result.unwrap_or_else(|error| {
            let mut response = error.into_response();
            if has_body {
                // It may not have been read to its end (RFC 9112, sections 9.3 and 9.6).
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            response
        });
        if let Some(budget) = budget {
            budget.add_to(&mut response);
        }
        response
    }

    /// Counts a request, reports the budget that is left, and handles it. A request that is rejected because
    /// too many are in flight does not count, unless it is rejected after its body or its wait.
    async fn handle(
        &self,
        mut request: Request,
        route: Option<Arc<Route>>,
        next: Next,
        budget: &mut Option<GroupBudget>,
    ) -> Result<Response, ApiError> {
        let group = route.as_ref().map_or(Group::Other, |route| route.group);
        let has_body = route.as_ref().is_some_and(|route| route.has_body);
        let body_permit = has_body.then(|| self.try_acquire_body()).transpose()?;
        let mut permits = self.try_acquire(group)?;
        let (address, valid) = (self.rate_limiter.client_address(&request), validate(&request));
        let counted_as = route.as_deref().filter(|_| valid.is_ok());
        *budget = self.rate_limiter.count(address, counted_as).await?;
        valid?;
        let mut waited = None;
        // While a client sends a body or waits, which takes as long as it decides, it is not in flight.
        if let Some(wait) = route.and_then(|route| route.long_polling.as_ref()?.wait(&request)) {
            drop(permits);
            let start = Instant::now();
            wait.await;
            waited = Some(Waited(start.elapsed()));
            permits = self.try_acquire(group)?;
        } else if has_body {
            drop(permits);
            // Boxed, so that the future of other requests is no larger.
            request = Box::pin(json_request::receive(request)).await?;
            permits = self.try_acquire(group)?;
        }
        drop(body_permit);
        let response = timeout(self.deadline, next.run(request)).await;
        let mut response = response.map_err(|_| ApiError::DeadlineExceeded)?;
        drop(permits);
        if let Some(waited) = waited {
            response.extensions_mut().insert(waited);
        }
        Ok(response)
    }

    /// Acquires the permit to receive a body.
    fn try_acquire_body(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        self.bodies.try_acquire().map_err(|_| ApiError::Overloaded(Overload::InFlight))
    }

    /// Acquires the permits of a request of this group.
    fn try_acquire(&self, group: Group) -> Result<RequestPermits<'_>, ApiError> {
        let any = self.in_flight.try_acquire().map_err(|_| ApiError::Overloaded(Overload::InFlight))?;
        let group = self.groups[group as usize].try_acquire();
        let group = group.map_err(|_| ApiError::Overloaded(Overload::GroupInFlight))?;
        Ok(RequestPermits { _any: any, _group: group })
    }
}

/// The permits of a request in flight, which are released when it is dropped.
#[derive(Debug)]
struct RequestPermits<'limits> {
    _any: SemaphorePermit<'limits>,
    _group: SemaphorePermit<'limits>,
}

/// Checks what does not depend on the route: the length of the URI, and the `Host` header.
fn validate(request: &Request) -> Result<(), ApiError> {
    let uri = request.uri();
    if uri.path().len() + uri.query().map_or(0, str::len) > MAX_URI_BYTES {
        return Err(ApiError::UriTooLong);
    }
    host_header::check(request)
}
