//! Limits on each request: requests in flight, of all and of each group, bodies, duration, length of the URI,
//! and a valid `Host` header.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use chart_index_ratelimit::Group;
use opentelemetry::metrics::Meter;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{ApiError, Overload, RequestLimitConfig, host_header};

/// The longest path and query. The longest useful query has every parameter and a `q` of 200 characters, all
/// escaped, and is much shorter.
const MAX_URI_BYTES: usize = 8 * 1024;

/// The limits of the public listener.
#[derive(Debug)]
pub(crate) struct RequestLimits {
    in_flight: Arc<Semaphore>,
    /// By group: requests of one group, which may be slow, cannot use up the permits of all.
    groups: [Semaphore; Group::ALL.len()],
    /// Bodies being received, each of which takes up to 128 KiB of memory. Not part of the requests in flight,
    /// which slow clients would use up.
    bodies: Semaphore,
    /// The maximum duration of a request.
    pub(crate) deadline: Duration,
}

/// The share of a group in the requests in flight, in sixteenths. All others together leave a quarter to
/// lookups, and lookups leave a quarter to them.
const fn sixteenths(group: Group) -> usize {
    match group {
        Group::Lookup => 12,
        Group::List => 4,
        Group::Page => 3,
        Group::Rox => 2,
        Group::Detail | Group::Bulk | Group::Other => 1,
    }
}

impl RequestLimits {
    pub(crate) fn new(config: &RequestLimitConfig, meter: &Meter) -> Self {
        let max_in_flight = usize::try_from(config.max_requests_in_flight.get()).unwrap_or(usize::MAX);
        let max_in_flight = max_in_flight.min(Semaphore::MAX_PERMITS);
        let in_flight = Arc::new(Semaphore::new(max_in_flight));
        observe_in_flight(meter, &in_flight, max_in_flight);
        let share = |group| (max_in_flight * sixteenths(group) / 16).max(1);
        Self {
            in_flight,
            groups: Group::ALL.map(|group| Semaphore::new(share(group))),
            bodies: Semaphore::new(max_in_flight),
            deadline: config.request_deadline,
        }
    }

    /// Acquires the permit to receive a body.
    pub(crate) fn try_acquire_body(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        self.bodies.try_acquire().map_err(|_| ApiError::Overloaded(Overload::InFlight))
    }

    /// Acquires the permits of a request of this group.
    pub(crate) fn try_acquire(&self, group: Group) -> Result<RequestPermits<'_>, ApiError> {
        let any = self.in_flight.try_acquire().map_err(|_| ApiError::Overloaded(Overload::InFlight))?;
        let group = self.groups[group as usize].try_acquire();
        let group = group.map_err(|_| ApiError::Overloaded(Overload::GroupInFlight))?;
        Ok(RequestPermits { _any: any, _group: group })
    }
}

/// The permits of a request in flight, which are released when it is dropped.
#[derive(Debug)]
pub(crate) struct RequestPermits<'limits> {
    _any: SemaphorePermit<'limits>,
    _group: SemaphorePermit<'limits>,
}

/// Creates the gauges of the requests in flight and of their limit.
fn observe_in_flight(meter: &Meter, in_flight: &Arc<Semaphore>, max_in_flight: usize) {
    let gauge = |name: &'static str, description: &'static str, value: fn(usize, usize) -> usize| {
        // The SDK keeps the callback forever.
        let in_flight = Arc::downgrade(in_flight);
        meter
            .u64_observable_gauge(name)
            .with_unit("{request}")
            .with_description(description)
            .with_callback(move |observer| {
                let Some(in_flight) = in_flight.upgrade() else { return };
                let value = value(max_in_flight, in_flight.available_permits());
                observer.observe(u64::try_from(value).unwrap_or(u64::MAX), &[]);
            })
            .build();
    };
    gauge("http.server.active_requests", "Requests in flight", |max, available| {
        max.saturating_sub(available)
    });
    gauge("chart_index.http.requests.limit", "Maximum requests in flight", |max, _| max);
}

/// Checks what does not depend on the route: the length of the URI, and the `Host` header.
pub(crate) fn validate(request: &Request) -> Result<(), ApiError> {
    let uri = request.uri();
    if uri.path().len() + uri.query().map_or(0, str::len) > MAX_URI_BYTES {
        return Err(ApiError::UriTooLong);
    }
    host_header::check(request)
}
