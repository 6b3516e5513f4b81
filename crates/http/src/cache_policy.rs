//! Named cache policies (docs/api.md, "Caching and conditional requests").

use std::convert::Infallible;

use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponseParts, Response, ResponseParts};

/// The header of what never changes: a year.
pub(crate) const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// How long clients and proxies may cache a response. CDNs may keep what is immutable for a day only, unless
/// they are purged.
///
/// A handler adds it to its response. Responses without a policy are `no-store`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// A chart lookup, known or unknown: 300 seconds, like its `ttlMs`.
    Lookup,
    /// A ROX file, and the preview of a chart: immutable.
    Rox,
    /// The 404 of a ROX file and of a preview: 60 seconds.
    RoxNotFound,
    /// The chartset list and the chartset detail: 30 seconds.
    Listing,
    /// A redirect to a source page: 300 seconds.
    Redirect,
    /// A page of the change feed that gains no entries: a day. It would be correct for longer, but not complete
    /// after a restore of the database.
    FullFeedPage,
    /// The last page of the change feed: 10 seconds.
    FeedTail,
    /// A redirect to the newest export, or to the last hash filter: 60 seconds.
    LatestRedirect,
    /// A hash filter: immutable.
    HashFilter,
    /// A page of the web site: 30 seconds, like what it shows.
    Page,
    /// An asset of the web site, whose name changes with its content: immutable.
    Asset,
    /// A file of an export, whose path is that of one export: immutable.
    Export,
    /// All other responses, such as errors.
    NoStore,
}

impl CachePolicy {
    pub(crate) const fn header(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Lookup | Self::Redirect => "public, max-age=300",
            Self::Rox | Self::Asset | Self::Export | Self::HashFilter => IMMUTABLE,
            Self::RoxNotFound | Self::LatestRedirect => "public, max-age=60",
            Self::Listing | Self::Page => "public, max-age=30",
            Self::FullFeedPage => "public, max-age=86400, immutable",
            Self::FeedTail => "public, max-age=10",
            Self::NoStore => "no-store",
        })
    }
}

impl IntoResponseParts for CachePolicy {
    type Error = Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Infallible> {
        response.headers_mut().insert(CACHE_CONTROL, self.header());
        Ok(response)
    }
}

/// Adds the headers that all responses have: `Cache-Control`, unless the response has it from its policy, and
/// `X-Content-Type-Options`.
pub(crate) fn add_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert_with(|| CachePolicy::NoStore.header());
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
            (CachePolicy::FullFeedPage, "public, max-age=86400, immutable"),
            (CachePolicy::FeedTail, "public, max-age=10"),
            (CachePolicy::LatestRedirect, "public, max-age=60"),
            (CachePolicy::HashFilter, "public, max-age=31536000, immutable"),
            (CachePolicy::Page, "public, max-age=30"),
            (CachePolicy::Asset, "public, max-age=31536000, immutable"),
            (CachePolicy::Export, "public, max-age=31536000, immutable"),
            (CachePolicy::NoStore, "no-store"),
        ] {
            let response = add_headers((policy, "body").into_response());
            assert_eq!(response.headers()[CACHE_CONTROL], expected, "{policy:?}");
            assert_eq!(response.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff");
        }
    }

    #[test]
    fn response_without_a_policy_is_no_store() {
        let response = add_headers(StatusCode::OK.into_response());
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
    }
}
