//! One error type, one status mapping, one JSON form.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use axum::body::Body;
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chart_index_domain::search::ParameterError;
use chart_index_domain::{MalformedNoteHash, ReadError};
use chart_index_ratelimit::{Decision, Group, Scope};
use serde::Serialize;

use crate::CachePolicy;
use crate::log_limit::LogLimit;

/// Everything that a request can be refused or fail with.
///
/// Sent as a problem document (RFC 9457). What caused an error is logged, once, when the answer is made, and
/// never sent.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// A query parameter cannot be used.
    #[error("bad parameter")]
    BadParameter(#[from] ParameterError),
    /// The hash in the path is not a note hash.
    #[error("malformed hash")]
    MalformedHash(#[from] MalformedNoteHash),
    /// There is nothing at this address.
    #[error("not found: {0}")]
    NotFound(Missing),
    /// The address answers GET and HEAD only.
    #[error("method not allowed")]
    MethodNotAllowed,
    /// The address is longer than any that the API gives or takes.
    #[error("address too long")]
    UriTooLong,
    /// The request has no `Host`, more than one, or an invalid one.
    #[error("bad host")]
    BadHost,
    /// The address has asked as often as it may.
    #[error("rate limited")]
    RateLimited(Group, Decision),
    /// The index cannot be read at present.
    #[error("unavailable")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    /// As many requests are in flight as the server takes on.
    #[error("overloaded")]
    Overloaded,
    /// No answer was ready in time.
    #[error("deadline exceeded")]
    DeadlineExceeded,
    /// The server is about to stop.
    #[error("shutting down")]
    ShuttingDown,
    /// A fault of the service.
    #[error("internal error")]
    Internal(#[source] Box<dyn Error + Send + Sync>),
}

/// What a 404 is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// No endpoint has this path.
    Path,
    /// The index holds no chartset with this id.
    Chartset,
    /// The chartset has no page to be redirected to.
    PublicSource,
    /// The chart is unknown, or was removed.
    Rox,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Path => "nothing has this address",
            Self::Chartset => "no chartset has this id",
            Self::PublicSource => "no chartset with this id has a public source",
            Self::Rox => "the chart is unknown or was removed",
        })
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unavailable { .. } => Self::Unavailable(error.into()),
            ReadError::Failed { .. } => Self::Internal(error.into()),
        }
    }
}

/// A problem document, `application/problem+json`.
#[derive(Debug, Serialize)]
struct Problem {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    detail: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<&'static str>,
}

impl ApiError {
    /// The status of the answer.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::BadParameter(_) | Self::MalformedHash(_) | Self::BadHost => StatusCode::BAD_REQUEST,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::UriTooLong => StatusCode::URI_TOO_LONG,
            Self::RateLimited(..) => StatusCode::TOO_MANY_REQUESTS,
            // Not 504: that speaks of a server behind a gateway, and tells nobody when to come back.
            Self::Unavailable(_) | Self::Overloaded | Self::DeadlineExceeded | Self::ShuttingDown => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The `type` and the `title` of the problem. A type is a reference relative to the base address; it names
    /// the kind of problem for programs, for good.
    const fn kind(&self) -> (&'static str, &'static str) {
        match self {
            Self::BadParameter(_) => ("/problems/bad-parameter", "A parameter cannot be used"),
            Self::MalformedHash(_) => ("/problems/malformed-hash", "The chart hash is malformed"),
            Self::NotFound(_) => ("/problems/not-found", "Not found"),
            Self::MethodNotAllowed => ("/problems/method-not-allowed", "Method not allowed"),
            Self::UriTooLong => ("/problems/uri-too-long", "The address is too long"),
            Self::BadHost => ("/problems/bad-host", "The Host header is missing or invalid"),
            Self::RateLimited(..) => ("/problems/rate-limited", "Too many requests"),
            Self::Unavailable(_) => ("/problems/unavailable", "The index is not available"),
            Self::Overloaded => ("/problems/overloaded", "The server is overloaded"),
            Self::DeadlineExceeded => ("/problems/deadline-exceeded", "No answer in time"),
            Self::ShuttingDown => ("/problems/shutting-down", "The server is shutting down"),
            Self::Internal(_) => ("/problems/internal", "Internal error"),
        }
    }

    fn detail(&self) -> Cow<'static, str> {
        match self {
            Self::BadParameter(error) => error.to_string().into(),
            Self::MalformedHash(error) => error.to_string().into(),
            Self::NotFound(missing) => missing.to_string().into(),
            Self::MethodNotAllowed => "this address answers GET and HEAD".into(),
            Self::UriTooLong => "shorten the query".into(),
            Self::BadHost => "send one Host header with the host and perhaps the port of the address".into(),
            Self::RateLimited(group, decision) => {
                let (client, limit) = (client_of(decision), decision.limit());
                let group = group.as_str();
                format!("at most {limit} requests of {client} in 60 seconds to this group of addresses ({group}); come back later")
                    .into()
            }
            Self::Unavailable(_) => "the index cannot be read at present; try again".into(),
            Self::Overloaded => "too many requests are in flight; try again".into(),
            Self::DeadlineExceeded => "the answer was not ready in time; try again".into(),
            Self::ShuttingDown => "this server takes no further requests".into(),
            Self::Internal(_) => "the request failed through a fault of the service".into(),
        }
    }

    const fn parameter(&self) -> Option<&'static str> {
        match self {
            Self::BadParameter(error) => Some(error.parameter),
            Self::MalformedHash(_) => Some("hash"),
            _ => None,
        }
    }

    /// When to come back, in seconds.
    fn retry_after(&self) -> Option<HeaderValue> {
        match self {
            Self::RateLimited(_, decision) => decision.retry_after_seconds().map(HeaderValue::from),
            // About as long as a database takes to fail over or a pool to reconnect.
            Self::Unavailable(_) => Some(HeaderValue::from_static("5")),
            Self::Overloaded | Self::DeadlineExceeded | Self::ShuttingDown => {
                Some(HeaderValue::from_static("1"))
            }
            _ => None,
        }
    }

    const fn cache_policy(&self) -> CachePolicy {
        match self {
            Self::NotFound(Missing::Rox) => CachePolicy::RoxMissing,
            _ => CachePolicy::NoStore,
        }
    }

    /// Logs what the operator has to know of, at most one line a second of a kind. The others are at the level of debug,
    /// as is what clients do wrong.
    fn log(&self) {
        static INTERNAL: LogLimit = LogLimit::new();
        static UNAVAILABLE: LogLimit = LogLimit::new();
        static DEADLINE: LogLimit = LogLimit::new();
        let permit = match self {
            Self::Internal(_) => INTERNAL.permit(),
            Self::Unavailable(_) => UNAVAILABLE.permit(),
            Self::DeadlineExceeded => DEADLINE.permit(),
            _ => None,
        };
        match (self, permit) {
            (Self::Internal(_), Some(suppressed)) => {
                tracing::error!(error = %Chain(self), suppressed, "request failed");
            }
            (_, Some(suppressed)) => {
                tracing::warn!(error = %Chain(self), suppressed, "request not answered");
            }
            (_, None) => tracing::debug!(error = %Chain(self), "request refused"),
        }
    }

    fn body(&self) -> Vec<u8> {
        let (kind, title) = self.kind();
        let problem = Problem {
            kind,
            title,
            status: self.status().as_u16(),
            detail: self.detail(),
            parameter: self.parameter(),
        };
        // Texts and a number: there is nothing in it that could fail, and no better answer if it did.
        serde_json::to_vec(&problem).unwrap_or_default()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.log();
        let content_type = [(CONTENT_TYPE, "application/problem+json")];
        let mut response =
            (self.status(), self.cache_policy(), content_type, Body::from(self.body())).into_response();
        if let Some(seconds) = self.retry_after() {
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        if let Self::RateLimited(group, decision) = &self {
            for (name, value) in rate_limit_headers(*group, decision) {
                response.headers_mut().insert(name, value);
            }
        }
        if matches!(self, Self::MethodNotAllowed) {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

/// What a refusal says of its limit (draft-ietf-httpapi-ratelimit-headers): `q` requests in `w` seconds, `r` left, one
/// more in `t` seconds.
fn rate_limit_headers(group: Group, decision: &Decision) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let limit = decision.limit();
    let suffix = if is_of_network(decision) { "-network" } else { "" };
    let name = format!("\"{}{suffix}\"", group.as_str());
    let policy = format!("{name};q={limit};w=60");
    let state = format!("{name};r={};t={}", decision.remaining(), decision.reset_seconds());
    let headers = [("ratelimit-policy", policy), ("ratelimit", state)];
    headers.into_iter().filter_map(|(name, value)| {
        Some((HeaderName::from_static(name), HeaderValue::from_str(&value).ok()?))
    })
}

const fn is_of_network(decision: &Decision) -> bool {
    matches!(decision, Decision::Refused { scope: Scope::Network, .. })
}

/// Whom the limit of a refusal is for.
const fn client_of(decision: &Decision) -> &'static str {
    if is_of_network(decision) { "an IPv6 /48 network" } else { "an address" }
}

/// An error with all that caused it, on one line.
struct Chain<'a>(&'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    fn read_error(unavailable: bool) -> ReadError {
        let (operation, source) = ("look up chart", "password of the database".into());
        if unavailable {
            ReadError::Unavailable { operation, source }
        } else {
            ReadError::Failed { operation, source }
        }
    }

    fn bad_parameter() -> ParameterError {
        ParameterError { parameter: "keys", reason: "accepts key counts from 4 to 7".into() }
    }

    async fn body(error: ApiError) -> String {
        let bytes = error.into_response().into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn every_error_has_its_status_and_headers() {
        for (error, status, retry_after, policy) in [
            (bad_parameter().into(), 400, None, CachePolicy::NoStore),
            (MalformedNoteHash.into(), 400, None, CachePolicy::NoStore),
            (ApiError::NotFound(Missing::Path), 404, None, CachePolicy::NoStore),
            (ApiError::NotFound(Missing::Chartset), 404, None, CachePolicy::NoStore),
            (ApiError::NotFound(Missing::PublicSource), 404, None, CachePolicy::NoStore),
            (ApiError::NotFound(Missing::Rox), 404, None, CachePolicy::RoxMissing),
            (ApiError::MethodNotAllowed, 405, None, CachePolicy::NoStore),
            (ApiError::UriTooLong, 414, None, CachePolicy::NoStore),
            (ApiError::BadHost, 400, None, CachePolicy::NoStore),
            (read_error(true).into(), 503, Some("5"), CachePolicy::NoStore),
            (ApiError::Overloaded, 503, Some("1"), CachePolicy::NoStore),
            (ApiError::DeadlineExceeded, 503, Some("1"), CachePolicy::NoStore),
            (ApiError::ShuttingDown, 503, Some("1"), CachePolicy::NoStore),
            (read_error(false).into(), 500, None, CachePolicy::NoStore),
        ] {
            let name = format!("{error:?}");
            let response = error.into_response();
            assert_eq!(response.status(), status, "{name}");
            assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json", "{name}");
            let sent = response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap());
            assert_eq!(sent, retry_after, "{name}");
            assert_eq!(response.headers().contains_key(ALLOW), status == 405, "{name}");
            assert_eq!(response.extensions().get(), Some(&policy), "{name}");
        }
    }

    #[tokio::test]
    async fn a_problem_says_what_kind_it_is_and_names_the_parameter() {
        insta::assert_snapshot!(
            body(bad_parameter().into()).await,
            @r#"{"type":"/problems/bad-parameter","title":"A parameter cannot be used","status":400,"detail":"keys: accepts key counts from 4 to 7","parameter":"keys"}"#
        );
        insta::assert_snapshot!(
            body(MalformedNoteHash.into()).await,
            @r#"{"type":"/problems/malformed-hash","title":"The chart hash is malformed","status":400,"detail":"a chart hash is exactly 64 lower-case hexadecimal characters","parameter":"hash"}"#
        );
        insta::assert_snapshot!(
            body(ApiError::NotFound(Missing::Path)).await,
            @r#"{"type":"/problems/not-found","title":"Not found","status":404,"detail":"nothing has this address"}"#
        );
    }

    #[tokio::test]
    async fn causes_are_logged_and_never_sent() {
        for error in [ApiError::from(read_error(true)), ApiError::from(read_error(false))] {
            let logged = Chain(&error).to_string();
            assert!(
                logged.contains("look up chart: ") && logged.ends_with("password of the database"),
                "{logged}"
            );
            let sent = body(error).await;
            assert!(!sent.contains("look up") && !sent.contains("password"), "{sent}");
        }
    }
}
