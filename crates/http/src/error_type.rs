//! The types of errors that the API responds with.

use axum::http::StatusCode;
use strum::{IntoStaticStr, VariantArray};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Schema, SchemaFormat};

/// The type of an error response (docs/api.md, "Errors"). A closed set, so that metrics can be labelled with
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(prefix = "/problems/", serialize_all = "kebab-case")]
pub enum ErrorType {
    /// A query parameter is invalid.
    BadParameter,
    /// The hash in the path, or one in the body, is malformed.
    MalformedHash,
    /// The request body is not the JSON that the endpoint expects.
    MalformedBody,
    /// The resource does not exist.
    NotFound,
    /// The export may contain what was removed from the index.
    ExportWithdrawn,
    /// The change feed does not continue from a sequence.
    ChangesLost,
    /// The resource does not have this method.
    MethodNotAllowed,
    /// The request body was not complete in time.
    RequestTimeout,
    /// The request body is too large.
    ContentTooLarge,
    /// The request body has another media type than the endpoint expects.
    UnsupportedMediaType,
    /// The range of the request begins after the end of the file.
    RangeNotSatisfiable,
    /// Path and query are too long.
    UriTooLong,
    /// The `Host` header is missing, repeated or invalid.
    BadHost,
    /// The client has exceeded its rate limit.
    RateLimited,
    /// The database, or another server that the response depends on, is unavailable.
    Unavailable,
    /// Too many requests are in flight.
    Overloaded,
    /// The response was not ready before the deadline.
    DeadlineExceeded,
    /// The server is shutting down.
    ShuttingDown,
    /// A bug or a misconfiguration.
    Internal,
}

impl ErrorType {
    /// Every type, in the order of the enum.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The status code of the response.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::BadParameter | Self::MalformedHash | Self::MalformedBody | Self::BadHost => {
                StatusCode::BAD_REQUEST
            }
            // Not 503: a cache may serve what it has instead of a 5xx (RFC 9111, section 4.2.4).
            Self::NotFound | Self::ExportWithdrawn => StatusCode::NOT_FOUND,
            Self::ChangesLost => StatusCode::GONE,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::ContentTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::RangeNotSatisfiable => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::UriTooLong => StatusCode::URI_TOO_LONG,
            Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            // Not 504, which is for gateways (RFC 9110, section 15.6.5); 503 may carry `Retry-After` (section
            // 15.6.4).
            Self::Unavailable | Self::Overloaded | Self::DeadlineExceeded | Self::ShuttingDown => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The `type` of the problem. Clients match on it, a relative reference: it never changes.
    #[must_use]
    pub fn problem_type(self) -> &'static str {
        self.into()
    }

    /// The `title` of the problem, the same for every error of this type.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::BadParameter => "A parameter cannot be used",
            Self::MalformedHash => "The chart hash is malformed",
            Self::MalformedBody => "The request body is malformed",
            Self::NotFound => "Not found",
            Self::ExportWithdrawn => "The export was withdrawn",
            Self::ChangesLost => "The changes were lost",
            Self::MethodNotAllowed => "Method not allowed",
            Self::RequestTimeout => "The request body took too long",
            Self::ContentTooLarge => "The request body is too large",
            Self::UnsupportedMediaType => "Unsupported media type",
            Self::RangeNotSatisfiable => "The range is beyond the end of the file",
            Self::UriTooLong => "URI too long",
            Self::BadHost => "The Host header is missing or invalid",
            Self::RateLimited => "Too many requests",
            Self::Unavailable => "The index is unavailable",
            Self::Overloaded => "The server is overloaded",
            Self::DeadlineExceeded => "Request deadline exceeded",
            Self::ShuttingDown => "The server is shutting down",
            Self::Internal => "Internal error",
        }
    }

    /// The value of `error.type` in metrics, spans and the log: the last segment of the problem type.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.problem_type().rsplit('/').next().unwrap_or_default()
    }

    /// Whether no route handles a request with this error, whatever its path.
    pub(crate) const fn is_without_route(self) -> bool {
        matches!(self, Self::MethodNotAllowed | Self::UriTooLong | Self::BadHost)
    }
}

/// The schema of the `type` of a problem. Later versions may add some, so the known ones are no `enum`.
pub(crate) fn problem_type_schema() -> Schema {
    let known: Vec<_> = ErrorType::ALL.iter().map(|error| error.problem_type()).collect();
    let extensions = [("x-extensible-enum", serde_json::json!(known))].into_iter().collect();
    let format = SchemaFormat::Custom("uri-reference".to_owned());
    let text = ObjectBuilder::new().schema_type(Type::String).format(Some(format));
    text.extensions(Some(extensions)).build().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_type_is_documented() {
        let documented = include_str!("../../../docs/api.md");
        for problem in ErrorType::ALL.iter().map(|error| error.problem_type()) {
            assert!(documented.contains(&format!("| `{problem}` |")), "{problem}");
        }
    }
}
