//! Named cache policies, and the layer that writes them to `Cache-Control` (docs/api.md, "Caching and conditional
//! requests").

use std::convert::Infallible;

use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponseParts, Response, ResponseParts};

/// How long clients and proxies may cache a response.
///
/// A handler adds it to its response, and a layer writes the `Cache-Control` header. Responses without a policy are
/// `no-store`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// A chart lookup, known or unknown: 300 seconds, like its `ttlMs`.
    Lookup,
    /// A ROX file: immutable.
    Rox,
    /// The 404 of a ROX file: 60 seconds.
    RoxNotFound,
    /// The chartset list and the chartset detail: 30 seconds.
    Listing,
    /// A redirect to a source page: 300 seconds.
    Redirect,
    /// All other responses, such as errors.
    NoStore,
}

impl CachePolicy {
    const fn header(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Lookup | Self::Redirect => "public, max-age=300",
            Self::Rox => "public, max-age=31536000, immutable",
            Self::RoxNotFound => "public, max-age=60",
            Self::Listing => "public, max-age=30",
            Self::NoStore => "no-store",
        })
    }
}

impl IntoResponseParts for CachePolicy {
    type Error = Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Infallible> {
        response.extensions_mut().insert(self);
        Ok(response)
    }
}

/// Adds the headers that all responses have: `Cache-Control`, from the policy of the response, and
/// `X-Content-Type-Options`.
pub(crate) fn write_headers<B>(mut response: Response<B>) -> Response<B> {
    let policy = response.extensions_mut().remove().unwrap_or(CachePolicy::NoStore);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, policy.header());
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::response::IntoResponse;

    use super::*;

    #[test]
    fn each_policy_has_its_cache_control_header() {
        for (policy, expected) in [
            (CachePolicy::Lookup, "public, max-age=300"),
            (CachePolicy::Rox, "public, max-age=31536000, immutable"),
            (CachePolicy::RoxNotFound, "public, max-age=60"),
            (CachePolicy::Listing, "public, max-age=30"),
            (CachePolicy::Redirect, "public, max-age=300"),
            (CachePolicy::NoStore, "no-store"),
        ] {
            let response = write_headers((policy, "body").into_response());
            assert_eq!(response.headers()[CACHE_CONTROL], expected, "{policy:?}");
            assert_eq!(response.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff");
        }
    }

    #[test]
    fn response_without_a_policy_is_no_store() {
        let response = write_headers(StatusCode::OK.into_response());
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
    }
}
