//! The metrics of requests (docs/operations/metrics.md).
//!
//! Every label has a closed set of values, whatever clients send, and each set of labels has a place in a
//! table. The first request with a set binds it to the histogram, later ones record without a look-up of
//! labels.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use chart_index_ratelimit::Group;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundCounter, BoundHistogram, Histogram, Meter};
use strum::{IntoStaticStr, VariantArray};

use crate::error_type::ErrorType;
use crate::method_label::MethodLabel;
use crate::routes::Route;
use crate::{ApiError, Overload};

/// The boundaries of the histogram of requests, in seconds.
const BUCKETS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.5, 5.0];

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

/// Maximum number of label sets of the histogram (docs/operations/metrics.md).
const MAX_LABEL_SETS: usize = 512;

/// Maximum number of label sets with a route, which leaves room for all those without. A few of all routes,
/// methods and outcomes occur together; if more did, they would be recorded without their route.
const MAX_LABEL_SETS_WITH_ROUTE: usize = MAX_LABEL_SETS - MethodLabel::VARIANTS.len() * OUTCOMES;

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

    fn labels(self) -> Vec<KeyValue> {
        let (status, error) = match self {
            Self::Success(index) => (SUCCESSES[index].as_str().to_owned(), None),
            Self::Other => ("_OTHER".to_owned(), None),
            Self::Error(error) => (error.status().as_str().to_owned(), Some(error)),
        };
        let mut labels = vec![KeyValue::new("http.response.status_code", status)];
        labels.extend(error.map(|error| KeyValue::new("error.type", error.as_str())));
        labels
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
type Durations = [OnceLock<BoundHistogram<f64>>; OUTCOMES];

#[derive(Debug)]
pub(crate) struct RequestMetrics {
    duration: Histogram<f64>,
    routes: Vec<RouteMetrics>,
    label_sets_with_route: AtomicUsize,
    /// Requests that no route handles, by method.
    without_route: [Durations; MethodLabel::VARIANTS.len()],
    /// By group and reason.
    shed: [Vec<BoundCounter<u64>>; Group::ALL.len()],
}

#[derive(Debug)]
struct RouteMetrics {
    template: &'static str,
    group: Group,
    /// By method.
    durations: [Durations; ROUTE_METHODS],
}

impl RequestMetrics {
    /// Creates the instruments, for these routes.
    pub(crate) fn new<'a>(meter: &Meter, routes: impl Iterator<Item = &'a Route>) -> Self {
        let duration = meter
            .f64_histogram("http.server.request.duration")
            .with_unit("s")
            .with_description("Duration of a request")
            .with_boundaries(BUCKETS.to_vec())
            .build();
        let shed = meter
            .u64_counter("chart_index.http.requests.shed")
            .with_unit("{request}")
            .with_description("Requests rejected because of a limit")
            .build();
        let shed = |group: Group, reason: &ShedReason| {
            shed.bind(&[
                KeyValue::new("chart_index.group", group.as_str()),
                KeyValue::new("chart_index.reason", reason.into_str()),
            ])
        };
        Self {
            duration,
            label_sets_with_route: AtomicUsize::new(0),
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
            self.shed[group as usize][reason as usize].add(1);
        }
        let outcome = ResponseOutcome::new(status, error.map(ApiError::error_type));
        self.duration(method, route, outcome).record(duration.as_secs_f64());
    }

    fn duration<'a>(
        &'a self,
        method: MethodLabel,
        route: Option<&'a RouteMetrics>,
        outcome: ResponseOutcome,
    ) -> &'a BoundHistogram<f64> {
        let is_without_route = matches!(outcome, ResponseOutcome::Error(error) if error.is_without_route());
        let route = route.filter(|_| method.has_routes() && !is_without_route);
        let durations = match route {
            Some(route) => &route.durations[method as usize],
            None => &self.without_route[method as usize],
        };
        durations[outcome.index()].get_or_init(|| {
            let mut labels = outcome.labels();
            labels.push(KeyValue::new("http.request.method", method.into_str()));
            let group = route.map_or(Group::Other, |route| route.group);
            labels.push(KeyValue::new("chart_index.group", group.as_str()));
            if let Some(route) = route
                && self.label_sets_with_route.fetch_add(1, Ordering::Relaxed) < MAX_LABEL_SETS_WITH_ROUTE
            {
                labels.push(KeyValue::new("http.route", route.template));
            }
            self.duration.bind(&labels)
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
