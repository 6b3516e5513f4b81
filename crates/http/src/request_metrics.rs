//! The metrics of requests (docs/operations/metrics.md).
//!
//! Every label has a closed set of values, whatever clients send.

use std::time::Duration;

use axum::http::StatusCode;
use chart_index_instrumentation::Metrics;
use chart_index_ratelimit::Group;
use strum::{IntoStaticStr, VariantArray};

use crate::error_type::ErrorType;
use crate::method_label::MethodLabel;
use crate::routes::Route;
use crate::{ApiError, Overload};

/// The status codes of successful responses. Any other is `_OTHER`.
const SUCCESSES: [StatusCode; 7] = [
    StatusCode::OK,
    StatusCode::NO_CONTENT,
    StatusCode::PARTIAL_CONTENT,
    StatusCode::FOUND,
    StatusCode::SEE_OTHER,
    StatusCode::NOT_MODIFIED,
    StatusCode::PERMANENT_REDIRECT,
];

/// The reason why a request was shed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(const_into_str, serialize_all = "snake_case")]
enum ShedReason {
    InFlight,
    GroupInFlight,
    Fills,
    Deadline,
}

impl ShedReason {
    const fn new(error: &ApiError) -> Option<Self> {
        match error {
            ApiError::Overloaded(Overload::InFlight) => Some(Self::InFlight),
            ApiError::Overloaded(Overload::GroupInFlight) => Some(Self::GroupInFlight),
            ApiError::Overloaded(Overload::Fills) => Some(Self::Fills),
            ApiError::DeadlineExceeded => Some(Self::Deadline),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct RequestMetrics(&'static Metrics);

impl RequestMetrics {
    /// All counters of shed requests are 0.
    pub(crate) fn new(metrics: &'static Metrics) -> Self {
        for group in Group::ALL {
            for reason in ShedReason::VARIANTS {
                metrics.chart_index_http_requests_shed_total.with([group.as_str(), reason.into_str()]);
            }
        }
        Self(metrics)
    }

    /// Records a request that took this long.
    pub(crate) fn record(
        &self,
        method: MethodLabel,
        route: Option<&Route>,
        status: StatusCode,
        error: Option<&ApiError>,
        duration: Duration,
    ) {
        if let Some(reason) = error.and_then(ShedReason::new) {
            let group = route.map_or(Group::Other, |route| route.group);
            let labels = [group.as_str(), reason.into_str()];
            self.0.chart_index_http_requests_shed_total.with(labels).inc();
        }
        let error = error.map(ApiError::error_type);
        let is_without_route = error.is_some_and(ErrorType::is_without_route) || !method.has_routes();
        let (group, template) = (route.filter(|_| !is_without_route))
            .map_or((Group::Other, ""), |route| (route.group, route.template));
        let has_label = error.is_some() || SUCCESSES.contains(&status);
        let status = if has_label { status.as_str() } else { "_OTHER" };
        let error = error.map_or("", ErrorType::as_str);
        let labels = [group.as_str(), method.into_str(), template, status, error];
        self.0.http_server_request_duration_seconds.with(labels).observe(duration.as_secs_f64());
    }
}
