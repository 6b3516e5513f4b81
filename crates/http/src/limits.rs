//! The bounds of a request: length of its address, requests in flight, time.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::{ApiError, LayerConfig, RateLimiting, host};

/// The longest path and query. The longest useful query, with every parameter and a text of 200 characters that
/// all have to be escaped, stays well below.
const MAX_URI_BYTES: usize = 8 * 1024;

/// What the requests of one listener share.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    in_flight: Arc<Semaphore>,
    deadline: Duration,
    limiting: RateLimiting,
}

impl Limits {
    pub(crate) fn new(config: &LayerConfig, limiting: RateLimiting) -> Self {
        let max_in_flight = usize::try_from(config.max_requests_in_flight.get()).unwrap_or(usize::MAX);
        Self {
            in_flight: Arc::new(Semaphore::new(max_in_flight.min(Semaphore::MAX_PERMITS))),
            deadline: config.request_deadline,
            limiting,
        }
    }
}

/// Refuses what is above the bounds or malformed at once, and gives up on what takes too long.
pub(crate) async fn enforce(
    State(limits): State<Limits>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let _permit = limits.in_flight.try_acquire().map_err(|_| ApiError::Overloaded)?;
    let answer = async {
        match check(&request) {
            Ok(()) => Ok(next.run(request).await),
            Err(error) => {
                let address = limits.limiting.client_address(&request);
                Err(limits.limiting.count_other(address, error).await)
            }
        }
    };
    timeout(limits.deadline, answer).await.map_err(|_| ApiError::DeadlineExceeded)?
}

/// What is wrong with a request, whatever its route.
fn check(request: &Request) -> Result<(), ApiError> {
    let uri = request.uri();
    if uri.path().len() + uri.query().map_or(0, str::len) > MAX_URI_BYTES {
        return Err(ApiError::UriTooLong);
    }
    host::check(request)
}
