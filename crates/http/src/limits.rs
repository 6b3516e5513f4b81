//! The bounds of a request: length of its address, requests in flight, time.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::{ApiError, LayerConfig};

/// The longest path and query. The longest useful query, with every parameter and a text of 200 characters that
/// all have to be escaped, stays well below.
const MAX_URI_BYTES: usize = 8 * 1024;

/// What the requests of one listener share.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    in_flight: Arc<Semaphore>,
    deadline: Duration,
}

impl Limits {
    pub(crate) fn new(config: &LayerConfig) -> Self {
        let max_in_flight = usize::try_from(config.max_requests_in_flight.get()).unwrap_or(usize::MAX);
        Self {
            in_flight: Arc::new(Semaphore::new(max_in_flight.min(Semaphore::MAX_PERMITS))),
            deadline: config.request_deadline,
        }
    }
}

/// Refuses what is above the bounds at once, and gives up on what takes too long.
pub(crate) async fn enforce(
    State(limits): State<Limits>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let uri = request.uri();
    if uri.path().len() + uri.query().map_or(0, str::len) > MAX_URI_BYTES {
        return Err(ApiError::UriTooLong);
    }
    let _place = limits.in_flight.try_acquire().map_err(|_| ApiError::Overloaded)?;
    timeout(limits.deadline, next.run(request)).await.map_err(|_| ApiError::DeadlineExceeded)
}
