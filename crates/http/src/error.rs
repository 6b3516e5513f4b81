//! The errors of the API and their responses: status, headers and problem details (docs/api.md, "Errors").

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};

use axum::body::{Body, Bytes};
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, RETRY_AFTER,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chart_index_cli::Causes;
use chart_index_domain::search::ParameterError;
use chart_index_domain::{MalformedNoteHash, ReadError};
use chart_index_ratelimit::{Group, Refusal, Scope};
use serde::Serialize;
use utoipa::ToSchema;

use crate::CachePolicy;
use crate::error_type::{ErrorType, problem_type_schema};
use crate::group_budget::rate_limit_headers;
use crate::text_body::TYPICAL_HEADERS;

/// The media type of problem details.
pub(crate) const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// An error response.
///
/// Sent as problem details (RFC 9457). Its causes are logged and never sent: the response carries the error in
/// its extensions, for the layer that logs requests.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// A query parameter is invalid.
    #[error("bad parameter")]
    BadParameter(#[from] ParameterError),
    /// The hash in the path is not a note hash.
    #[error("malformed hash")]
    MalformedHash(#[from] MalformedNoteHash),
    /// A hash in the request body is not a note hash.
    #[error("malformed hash")]
    MalformedHashAt {
        /// The array of hashes.
        parameter: &'static str,
        /// The position in the array, from 0.
        index: usize,
    },
    /// An element of an array in the request body is invalid.
    #[error("bad parameter")]
    BadElement {
        /// The name of the array.
        array: &'static str,
        /// The position in the array, from 0.
        index: usize,
        /// What is wrong with it, and with which of its fields.
        error: ParameterError,
    },
    /// The request body is not the JSON that the endpoint expects.
    #[error("malformed body")]
    MalformedBody(#[source] serde_json::Error),
    /// The request body ended before its end.
    #[error("incomplete body")]
    IncompleteBody,
    /// The request body is no gzip, although `Content-Encoding` says so.
    #[error("malformed gzip")]
    MalformedGzip,
    /// The request body was received too slowly.
    #[error("request timeout")]
    RequestTimeout,
    /// The request body is larger than 128 KiB, or is when it is decoded.
    #[error("content too large")]
    ContentTooLarge,
    /// The request body is not `application/json`, or has another content coding than gzip.
    #[error("unsupported media type")]
    UnsupportedMediaType,
    /// The resource does not exist.
    #[error("not found: {0}")]
    NotFound(Resource),
    /// The export is from before a removal, so that it may contain what was removed.
    #[error("export withdrawn")]
    ExportWithdrawn,
    /// The change feed does not continue from the sequence of the request: the database is in an earlier state
    /// than before.
    #[error("changes lost")]
    ChangesLost,
    /// The resource does not have this method.
    #[error("method not allowed")]
    MethodNotAllowed(AllowedMethods),
    /// The range of the request begins after the end of the file.
    #[error("range not satisfiable")]
    RangeNotSatisfiable {
        /// The size of the file in bytes.
        size: u64,
    },
    /// Path and query are too long.
    #[error("URI too long")]
    UriTooLong,
    /// The request has no `Host` header, more than one, or an invalid one.
    #[error("bad host")]
    BadHost,
    /// The client has exceeded its rate limit.
    #[error("rate limited")]
    RateLimited(Group, Refusal),
    /// The database, or another server that the response depends on, is unavailable.
    #[error("unavailable")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    /// Too many requests are in flight.
    #[error("overloaded: {0}")]
    Overloaded(Overload),
    /// The response was not ready before the deadline of the request.
    #[error("deadline exceeded")]
    DeadlineExceeded,
    /// The server is shutting down.
    #[error("shutting down")]
    ShuttingDown,
    /// A bug or a misconfiguration of the service.
    #[error("internal error")]
    Internal(#[source] Box<dyn Error + Send + Sync>),
}

/// The methods of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedMethods {
    /// GET and HEAD.
    Read,
    /// POST.
    Post,
}

impl AllowedMethods {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "GET, HEAD",
            Self::Post => "POST",
        }
    }
}

/// The limit that a request exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overload {
    /// Requests in flight.
    InFlight,
    /// Requests of a group in flight.
    GroupInFlight,
    /// Fills in flight and requests that wait for them, or searches in PostgreSQL.
    Fills,
}

impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InFlight => "too many requests in flight",
            Self::GroupInFlight => "too many requests of the group in flight",
            Self::Fills => "too many fills or searches in flight",
        })
    }
}

/// What was not found, for the detail of the problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// An endpoint with the path of the request.
    Endpoint,
    /// The same, of a path that ends with a slash.
    EndpointWithSlash,
    /// A chartset with this id.
    Chartset,
    /// The source page of a chartset.
    SourcePage,
    /// The source page of a chart.
    ChartSourcePage,
    /// The ROX file of a chart, or what is computed from it: the chart is unknown or has been removed.
    RoxFile,
    /// A hash filter of this sequence, or any at all.
    HashFilter,
    /// A chart that its page would show.
    Chart,
    /// A chartset to choose at random.
    AnyChartset,
    /// An export, or a file of one.
    Export,
    /// A pack with chartsets.
    Pack,
    /// A creator with charts.
    Creator,
    /// An asset of the web site.
    Asset,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Endpoint => "no such endpoint",
            Self::EndpointWithSlash => "no such endpoint; no path but / ends with a slash",
            Self::Chartset => "no such chartset",
            Self::SourcePage => "no such chartset, or it has no source page",
            Self::ChartSourcePage => "the chart is unknown or has been removed, or it has no source page",
            Self::HashFilter => "there is no such hash filter, or none is built yet",
            Self::RoxFile | Self::Chart => "the chart is unknown or has been removed",
            Self::AnyChartset => "no chartset matches",
            Self::Export => "no such export, or it has no such file",
            Self::Pack => "no chartset of the pack is in the index",
            Self::Creator => "no chart of the index names this creator",
            Self::Asset => "no such asset",
        })
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unavailable { .. } | ReadError::Unsupported { .. } => Self::Unavailable(error.into()),
            ReadError::Failed { .. } => Self::Internal(error.into()),
        }
    }
}

/// Problem details, `application/problem+json` (docs/api.md, "Errors").
#[derive(Debug, Serialize, ToSchema)]
pub struct Problem {
    #[serde(rename = "type")]
    #[schema(schema_with = problem_type_schema)]
    kind: &'static str,
    title: &'static str,
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    #[schema(value_type = String)]
    detail: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, nullable = false)]
    parameter: Option<Cow<'static, str>>,
}

impl ApiError {
    pub(crate) const fn error_type(&self) -> ErrorType {
        match self {
            Self::BadParameter(_) | Self::BadElement { .. } => ErrorType::BadParameter,
            Self::MalformedHash(_) | Self::MalformedHashAt { .. } => ErrorType::MalformedHash,
            Self::MalformedBody(_) | Self::IncompleteBody | Self::MalformedGzip => ErrorType::MalformedBody,
            Self::RequestTimeout => ErrorType::RequestTimeout,
            Self::ContentTooLarge => ErrorType::ContentTooLarge,
            Self::UnsupportedMediaType => ErrorType::UnsupportedMediaType,
            Self::NotFound(_) => ErrorType::NotFound,
            Self::ExportWithdrawn => ErrorType::ExportWithdrawn,
            Self::ChangesLost => ErrorType::ChangesLost,
            Self::MethodNotAllowed(_) => ErrorType::MethodNotAllowed,
            Self::RangeNotSatisfiable { .. } => ErrorType::RangeNotSatisfiable,
            Self::UriTooLong => ErrorType::UriTooLong,
            Self::BadHost => ErrorType::BadHost,
            Self::RateLimited(..) => ErrorType::RateLimited,
            Self::Unavailable(_) => ErrorType::Unavailable,
            Self::Overloaded(_) => ErrorType::Overloaded,
            Self::DeadlineExceeded => ErrorType::DeadlineExceeded,
            Self::ShuttingDown => ErrorType::ShuttingDown,
            Self::Internal(_) => ErrorType::Internal,
        }
    }

    /// The status code of the response.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.error_type().status()
    }

    /// Displays the error with its causes, on one line. `None` for the errors of clients, whose causes may
    /// quote the request.
    #[must_use]
    pub fn causes(&self) -> Option<impl fmt::Display> {
        self.status().is_server_error().then_some(Causes(self))
    }

    pub(crate) fn detail(&self) -> Cow<'static, str> {
        match self {
            Self::BadParameter(error) => error.to_string().into(),
            Self::BadElement { array, index, error } => format!("{array}[{index}].{error}").into(),
            Self::MalformedHash(error) => error.to_string().into(),
            Self::NotFound(resource) => resource.to_string().into(),
            Self::MalformedHashAt { parameter, index } => {
                format!("{parameter}[{index}]: {MalformedNoteHash}").into()
            }
            // The messages of serde_json quote the body.
            Self::MalformedBody(error) => {
                let (line, column) = (error.line(), error.column());
                format!("the body is not the expected JSON: line {line}, column {column}").into()
            }
            Self::IncompleteBody => "the body ended early".into(),
            Self::MalformedGzip => "the body is not valid gzip".into(),
            Self::RequestTimeout => {
                "the body was received at less than 4 KiB/s, or not within 15 seconds; send fewer hashes".into()
            }
            Self::ContentTooLarge => "the body must not exceed 128 KiB".into(),
            Self::UnsupportedMediaType => {
                "send the body as application/json, without a Content-Encoding other than gzip".into()
            }
            Self::ExportWithdrawn => {
                "an entry was removed after the export was written; retry later for a newer one".into()
            }
            Self::ChangesLost => {
                "the change with this sequence was lost when the index was set back; start again from 0 or from an export".into()
            }
            Self::MethodNotAllowed(allowed) => format!("allowed are {}", allowed.as_str()).into(),
            Self::RangeNotSatisfiable { size } => format!("the file has {size} bytes").into(),
            Self::UriTooLong => "path and query must not exceed 8 KiB".into(),
            Self::BadHost => "send exactly one Host header with a valid host and optional port".into(),
            Self::RateLimited(group, Refusal { scope, limit, .. }) => {
                let (client, group) = (client_of(*scope), group.as_str());
                format!(
                    "at most {limit} requests per {client} in 60 seconds to the group {group}; retry later"
                )
                .into()
            }
            Self::Unavailable(_) => "the index is temporarily unavailable; retry later".into(),
            Self::Overloaded(_) => "too many requests are in flight; retry later".into(),
            Self::DeadlineExceeded => "the response was not ready in time; retry later".into(),
            Self::ShuttingDown => "the server accepts no more requests; retry later".into(),
            Self::Internal(_) => "the request failed because of an internal error".into(),
        }
    }

    pub(crate) fn parameter(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::BadParameter(error) => Some(error.parameter.into()),
            Self::ChangesLost => Some("after".into()),
            Self::BadElement { array, index, error } => {
                Some(format!("{array}[{index}].{}", error.parameter).into())
            }
            Self::MalformedHash(_) => Some("hash".into()),
            Self::MalformedHashAt { parameter, index } => Some(format!("{parameter}[{index}]").into()),
            _ => None,
        }
    }

    /// The value of `Retry-After`, in seconds.
    pub(crate) fn retry_after(&self) -> Option<HeaderValue> {
        match self {
            Self::RateLimited(_, refusal) => Some(refusal.retry_after_seconds().into()),
            // About the time that a failover of the database or a reconnect takes.
            Self::Unavailable(_) => Some(HeaderValue::from_static("5")),
            // `chart-indexer follow` writes another one.
            Self::ExportWithdrawn => Some(HeaderValue::from_static("60")),
            Self::Overloaded(_) | Self::DeadlineExceeded | Self::ShuttingDown => {
                Some(HeaderValue::from_static("1"))
            }
            _ => None,
        }
    }

    const fn cache_policy(&self) -> CachePolicy {
        match self {
            Self::NotFound(Resource::RoxFile) => CachePolicy::RoxNotFound,
            _ => CachePolicy::NoStore,
        }
    }

    fn body(&self) -> Bytes {
        // Under overload most responses have this body.
        static OVERLOADED: OnceLock<Bytes> = OnceLock::new();
        match self {
            Self::Overloaded(_) => OVERLOADED.get_or_init(|| self.problem()).clone(),
            _ => self.problem(),
        }
    }

    fn problem(&self) -> Bytes {
        let error_type = self.error_type();
        let problem = Problem {
            kind: error_type.problem_type(),
            title: error_type.title(),
            status: error_type.status().as_u16(),
            detail: self.detail(),
            parameter: self.parameter(),
        };
        // Strings and a number always serialize.
        serde_json::to_vec(&problem).unwrap_or_default().into()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = self.body();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.reserve(TYPICAL_HEADERS);
        headers.insert(CACHE_CONTROL, self.cache_policy().header());
        headers.insert(CONTENT_TYPE, PROBLEM_JSON);
        if let Some(seconds) = self.retry_after() {
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        if let Self::RateLimited(group, refusal) = &self {
            let Refusal { scope, limit, .. } = *refusal;
            let state = (0, refusal.retry_after_seconds());
            response.headers_mut().extend(rate_limit_headers(*group, scope, limit, state));
        }
        if let Self::MethodNotAllowed(allowed) = &self {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed.as_str()));
        }
        if let Self::RangeNotSatisfiable { size } = &self
            && let Ok(range) = HeaderValue::try_from(format!("bytes */{size}"))
        {
            // RFC 9110, section 15.5.17.
            response.headers_mut().insert(CONTENT_RANGE, range);
        }
        if matches!(self, Self::UnsupportedMediaType) {
            // RFC 9110, section 15.5.16.
            response.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
            response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

/// What the exceeded limit applies to.
const fn client_of(scope: Scope) -> &'static str {
    match scope {
        Scope::Address => "client",
        Scope::Network => "IPv6 /48 network",
    }
}

#[cfg(test)]
mod tests {

    use axum::http::header::CACHE_CONTROL;
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
            (
                ApiError::BadElement { array: "charts", index: 7, error: bad_parameter() },
                400,
                None,
                CachePolicy::NoStore,
            ),
            (MalformedNoteHash.into(), 400, None, CachePolicy::NoStore),
            (ApiError::NotFound(Resource::Endpoint), 404, None, CachePolicy::NoStore),
            (ApiError::NotFound(Resource::Chartset), 404, None, CachePolicy::NoStore),
            (ApiError::NotFound(Resource::SourcePage), 404, None, CachePolicy::NoStore),
            (ApiError::NotFound(Resource::RoxFile), 404, None, CachePolicy::RoxNotFound),
            (ApiError::ExportWithdrawn, 404, Some("60"), CachePolicy::NoStore),
            (ApiError::ChangesLost, 410, None, CachePolicy::NoStore),
            (ApiError::MalformedHashAt { parameter: "hashes", index: 7 }, 400, None, CachePolicy::NoStore),
            (ApiError::IncompleteBody, 400, None, CachePolicy::NoStore),
            (ApiError::MalformedGzip, 400, None, CachePolicy::NoStore),
            (ApiError::RequestTimeout, 408, None, CachePolicy::NoStore),
            (ApiError::ContentTooLarge, 413, None, CachePolicy::NoStore),
            (ApiError::UnsupportedMediaType, 415, None, CachePolicy::NoStore),
            (ApiError::MethodNotAllowed(AllowedMethods::Read), 405, None, CachePolicy::NoStore),
            (ApiError::RangeNotSatisfiable { size: 7 }, 416, None, CachePolicy::NoStore),
            (ApiError::UriTooLong, 414, None, CachePolicy::NoStore),
            (ApiError::BadHost, 400, None, CachePolicy::NoStore),
            (read_error(true).into(), 503, Some("5"), CachePolicy::NoStore),
            (ApiError::Overloaded(Overload::InFlight), 503, Some("1"), CachePolicy::NoStore),
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
            assert_eq!(response.headers()[CACHE_CONTROL], policy.header(), "{name}");
        }
    }

    #[tokio::test]
    async fn problem_has_its_type_and_names_the_parameter() {
        insta::assert_snapshot!(
            body(bad_parameter().into()).await,
            @r#"{"type":"/problems/bad-parameter","title":"A parameter cannot be used","status":400,"detail":"keys: accepts key counts from 4 to 7","parameter":"keys"}"#
        );
        insta::assert_snapshot!(
            body(MalformedNoteHash.into()).await,
            @r#"{"type":"/problems/malformed-hash","title":"The chart hash is malformed","status":400,"detail":"a chart hash is exactly 64 lower-case hexadecimal characters","parameter":"hash"}"#
        );
        insta::assert_snapshot!(
            body(ApiError::MalformedHashAt { parameter: "hashes", index: 7 }).await,
            @r#"{"type":"/problems/malformed-hash","title":"The chart hash is malformed","status":400,"detail":"hashes[7]: a chart hash is exactly 64 lower-case hexadecimal characters","parameter":"hashes[7]"}"#
        );
        insta::assert_snapshot!(
            body(ApiError::BadElement { array: "charts", index: 7, error: bad_parameter() }).await,
            @r#"{"type":"/problems/bad-parameter","title":"A parameter cannot be used","status":400,"detail":"charts[7].keys: accepts key counts from 4 to 7","parameter":"charts[7].keys"}"#
        );
        insta::assert_snapshot!(
            body(ApiError::NotFound(Resource::Endpoint)).await,
            @r#"{"type":"/problems/not-found","title":"Not found","status":404,"detail":"no such endpoint"}"#
        );
    }

    #[tokio::test]
    async fn causes_are_logged_and_never_sent() {
        for error in [ApiError::from(read_error(true)), ApiError::from(read_error(false))] {
            let logged = error.causes().unwrap().to_string();
            assert!(
                logged.contains("look up chart: ") && logged.ends_with("password of the database"),
                "{logged}"
            );
            let sent = body(error).await;
            assert!(!sent.contains("look up") && !sent.contains("password"), "{sent}");
        }
        assert!(ApiError::from(bad_parameter()).causes().is_none(), "it may quote the request");
    }
}
