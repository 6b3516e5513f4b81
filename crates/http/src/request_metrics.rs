//! The metrics of requests (docs/operations/metrics.md).
//!
//! Every label has a closed set of values, whatever clients send, and each set of labels has a place in a
//! table. The first request with a set looks up its series, later ones record at once.

use std::sync::OnceLock;
use std::time::Duration;

use axum::http::StatusCode;
use chart_index_instrumentation::{Counter, Histogram, Metrics};
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

const OUTCOMES: usize = SUCCESSES.len() + 1 + ErrorType::ALL.len();

/// GET, HEAD and POST.
const ROUTE_METHODS: usize = 3;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseOutcome {
    /// A success, by its index in [`SUCCESSES`].
    Success(usize),
    /// A response with another status and without an [`ApiError`].
    Other,
    Error(ErrorType),
}

impl ResponseOutcome {
    fn new(status: StatusCode, error: Option<ErrorType>) -> Self {
        let success = || SUCCESSES.iter().position(|success| *success == status);
        error.map(Self::Error).or_else(|| success().map(Self::Success)).unwrap_or(Self::Other)
    }

    const fn index(self) -> usize {
        match self {
            Self::Success(index) => index,
            Self::Other => SUCCESSES.len(),
            Self::Error(error) => SUCCESSES.len() + 1 + error as usize,
        }
    }

    /// The values of `http_response_status_code` and `error_type`.
    fn labels(self) -> [String; 2] {
        match self {
            Self::Success(index) => [SUCCESSES[index].as_str().to_owned(), String::new()],
            Self::Other => ["_OTHER".to_owned(), String::new()],
            Self::Error(error) => [error.status().as_str().to_owned(), error.as_str().to_owned()],
        }
    }
}

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

/// The histogram with the labels of a route and method, for each outcome.
type Durations = [OnceLock<Histogram>; OUTCOMES];

#[derive(Debug)]
pub(crate) struct RequestMetrics {
    metrics: &'static Metrics,
    routes: Vec<RouteMetrics>,
    /// Requests that no route handles, by method.
    without_route: [Durations; MethodLabel::VARIANTS.len()],
    /// By group and reason.
    shed: [Vec<Counter>; Group::ALL.len()],
}

#[derive(Debug)]
struct RouteMetrics {
    template: &'static str,
    group: Group,
    /// By method.
    durations: [Durations; ROUTE_METHODS],
}

impl RequestMetrics {
    /// For these routes.
    pub(crate) fn new<'a>(metrics: &'static Metrics, routes: impl Iterator<Item = &'a Route>) -> Self {
        let shed = |group: Group, reason: &ShedReason| {
            metrics.chart_index_http_requests_shed_total.with([group.as_str(), reason.into_str()])
        };
        Self {
            metrics,
            routes: routes.map(|route| RouteMetrics::new(route.template, route.group)).collect(),
            without_route: std::array::from_fn(|_| unbound()),
            shed: Group::ALL
                .map(|group| ShedReason::VARIANTS.iter().map(|reason| shed(group, reason)).collect()),
        }
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
        let route = route.and_then(|route| self.routes.get(route.index));
        if let Some(reason) = error.and_then(ShedReason::new) {
            let group = route.map_or(Group::Other, |route| route.group);
            self.shed[group as usize][reason as usize].inc();
        }
        let outcome = ResponseOutcome::new(status, error.map(ApiError::error_type));
        self.duration(method, route, outcome).observe(duration.as_secs_f64());
    }

    fn duration<'a>(
        &'a self,
        method: MethodLabel,
        route: Option<&'a RouteMetrics>,
        outcome: ResponseOutcome,
    ) -> &'a Histogram {
        let is_without_route = matches!(outcome, ResponseOutcome::Error(error) if error.is_without_route());
        let route = route.filter(|_| method.has_routes() && !is_without_route);
        let durations = match route {
            Some(route) => &route.durations[method as usize],
            None => &self.without_route[method as usize],
        };
        durations[outcome.index()].get_or_init(|| {
            let (group, template) = route.map_or((Group::Other, ""), |route| (route.group, route.template));
            let [status, error] = outcome.labels();
            let labels = [group.as_str(), method.into_str(), template, &status, &error];
            self.metrics.http_server_request_duration_seconds.with(labels)
        })
    }
}

impl RouteMetrics {
    fn new(template: &'static str, group: Group) -> Self {
        Self { template, group, durations: std::array::from_fn(|_| unbound()) }
    }
}

fn unbound() -> Durations {
    std::array::from_fn(|_| OnceLock::new())
}
