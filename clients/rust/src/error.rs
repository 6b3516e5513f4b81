//! Errors of requests.

use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;
use serde::Deserialize;

/// A request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The base address is no `http` or `https` URL, or it has a query or a fragment.
    #[error("{0}")]
    Base(String),
    /// The `User-Agent` is empty or malformed.
    #[error("a User-Agent with a way to reach you is required, such as my-client/1.0 (me@example.org)")]
    UserAgent,
    /// The index refused the request, also after the pauses that it asked for.
    #[error(transparent)]
    Problem(Box<Problem>),
    /// There was no response, or it was cut off.
    #[error("no complete response")]
    Connection(#[source] reqwest::Error),
    /// The response is not that of a chart index.
    #[error("the response is not that of a chart index")]
    Response(#[source] InvalidResponse),
    /// The response is longer than any of a chart index.
    #[error("the response has more than {limit} bytes")]
    TooLong {
        /// The maximum number of bytes.
        limit: usize,
    },
}

/// What is wrong with a response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidResponse {
    /// It is not the JSON of its endpoint.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It cannot be decompressed.
    #[error(transparent)]
    Gzip(std::io::Error),
    /// It has too few or too many items.
    #[error("{items} items for {charts} charts")]
    Items {
        /// The number of items.
        items: usize,
        /// The number of charts in the request.
        charts: usize,
    },
    /// Its items are in another order.
    #[error("no item for {0} in its place")]
    Item(String),
    /// It has the cursor of its request.
    #[error("the next page is the same one")]
    Cursor,
    /// It is no hash filter of this version.
    #[error(transparent)]
    HashFilter(#[from] crate::InvalidHashFilter),
}

/// A response other than a success, with its problem details (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// The status of the response.
    #[serde(skip)]
    pub status: u16,
    /// What kind of problem it is, such as `/problems/rate-limited`. Empty if the response is not of an index.
    #[serde(rename = "type")]
    pub problem_type: String,
    /// What kind of problem it is, for people.
    pub title: String,
    /// What is wrong with this request.
    pub detail: String,
    /// The parameter that is at fault.
    pub parameter: Option<String>,
    /// The pause that the index asked for with `Retry-After`.
    #[serde(skip)]
    pub retry_after: Option<Duration>,
}

impl std::error::Error for Problem {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match StatusCode::from_u16(self.status) {
            Ok(status) => write!(f, "{status}")?,
            Err(_) => write!(f, "{}", self.status)?,
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        match self.retry_after {
            Some(pause) => {
                write!(f, "; the index refuses requests for {} s; try again later", pause.as_secs())
            }
            None => Ok(()),
        }
    }
}

impl Error {
    /// The problem, if the index refused the request.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// Whether the index refused the request with this status.
    #[must_use]
    pub fn is_status(&self, status: u16) -> bool {
        self.problem().is_some_and(|problem| problem.status == status)
    }
}

impl From<reqwest::Error> for Error {
    fn from(error: reqwest::Error) -> Self {
        // Callers name the address.
        Self::Connection(error.without_url())
    }
}

impl From<InvalidResponse> for Error {
    fn from(invalid: InvalidResponse) -> Self {
        Self::Response(invalid)
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Response(error.into())
    }
}
