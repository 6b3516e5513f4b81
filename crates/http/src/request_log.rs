//! The log lines of requests.

use std::time::Duration;

use axum::http::StatusCode;

use crate::ApiError;
use crate::error_type::ErrorType;
use crate::log_throttle::LogThrottle;
use crate::method_label::MethodLabel;

/// A handled request. It holds neither path, query, host nor address, so that none of them is logged.
#[derive(Debug)]
pub(crate) struct HandledRequest<'a> {
    pub(crate) id: &'a str,
    pub(crate) method: MethodLabel,
    pub(crate) route: Option<&'a str>,
    pub(crate) status: StatusCode,
    pub(crate) error: Option<&'a ApiError>,
    pub(crate) duration: Duration,
}

/// Logs requests: at debug level each of them, and server errors at most once a second
/// for each type, since during an outage all requests may fail.
#[derive(Debug)]
pub(crate) struct RequestLog {
    throttles: [LogThrottle; ErrorType::ALL.len()],
}

impl RequestLog {
    pub(crate) fn new() -> Self {
        Self { throttles: std::array::from_fn(|_| LogThrottle::new(Duration::from_secs(1))) }
    }

    /// Logs a request. Call it inside the span of the request, if it has one.
    pub(crate) fn log(&self, request: &HandledRequest<'_>) {
        tracing::debug!(
            request_id = request.id,
            method = request.method.into_str(),
            route = request.route,
            status = request.status.as_u16(),
            "error.type" = request.error.map(|error| error.error_type().as_str()),
            error = request.error.and_then(ApiError::causes).map(tracing::field::display),
            latency_ms = request.duration.as_secs_f64() * 1000.0,
            "request handled"
        );
        if let Some(error) = request.error {
            self.log_error(request, error);
        }
    }

    fn log_error(&self, request: &HandledRequest<'_>, error: &ApiError) {
        let error_type = error.error_type();
        let Some(causes) = error.causes() else { return };
        let Some(suppressed) = self.throttles[error_type as usize].try_log() else { return };
        let (request_id, method, route) = (request.id, request.method.into_str(), request.route);
        let (status, error_type) = (request.status.as_u16(), error_type.as_str());
        if request.status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(
                request_id,
                method,
                route,
                status,
                "error.type" = error_type,
                error = %causes,
                suppressed,
                "request failed"
            );
        } else {
            tracing::warn!(
                request_id,
                method,
                route,
                status,
                "error.type" = error_type,
                error = %causes,
                suppressed,
                "request failed"
            );
        }
    }
}
