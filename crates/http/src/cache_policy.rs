//! How long an answer may be kept, by name.

use std::convert::Infallible;

use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponseParts, Response, ResponseParts};

/// How long an answer may be kept by browsers and proxies.
///
/// A handler states it as a part of its answer; a layer turns it into `Cache-Control`. An answer that
/// states none is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// A chart lookup, known or unknown: 300 seconds, which is also its `ttlMs`.
    Lookup,
    /// A ROX file: its bytes never change.
    Rox,
    /// The 404 of a ROX file: 60 seconds.
    RoxMissing,
    /// The list and the detail of chartsets: 30 seconds.
    Listing,
    /// The redirect to a source page: 300 seconds.
    Redirect,
    /// Everything else, errors above all.
    NoStore,
}

impl CachePolicy {
    const fn header(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Lookup | Self::Redirect => "public, max-age=300",
            Self::Rox => "public, max-age=31536000, immutable",
            Self::RoxMissing => "public, max-age=60",
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

/// Writes the headers that every answer has: `Cache-Control` by the stated policy, and the order not to guess
/// content types.
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
    fn each_policy_writes_the_header_of_the_contract() {
        for (policy, expected) in [
            (CachePolicy::Lookup, "public, max-age=300"),
            (CachePolicy::Rox, "public, max-age=31536000, immutable"),
            (CachePolicy::RoxMissing, "public, max-age=60"),
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
    fn an_answer_without_a_policy_is_not_kept() {
        let response = write_headers(StatusCode::OK.into_response());
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
    }
}
