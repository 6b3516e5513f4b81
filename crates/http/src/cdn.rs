//! Headers for a CDN in front (docs/operations/cdn.md): how long it may keep a response (RFC 9213), and the
//! tags by which `chart-indexer follow` purges it.
//!
//! A response that a replica cannot show to be current has a minute, since the purge of its change may be over.
//! `CDN-Cache-Control` and not `s-maxage`, since `Cache-Control` of a ROX file is part of the contract. Lists
//! have no tags of all that they show: each ingest would purge most of them, and they have 30 seconds anyway.

use std::convert::Infallible;
use std::num::NonZeroU32;

use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponseParts, Response, ResponseParts};
use clap::Args;

use crate::cache_policy::IMMUTABLE;

/// RFC 9213, section 3.1.
const CDN_CACHE_CONTROL: HeaderName = HeaderName::from_static("cdn-cache-control");
/// The tags of a response, for Fastly and Varnish.
const SURROGATE_KEY: HeaderName = HeaderName::from_static("surrogate-key");
/// The same, for Cloudflare.
const CACHE_TAG: HeaderName = HeaderName::from_static("cache-tag");

/// The tag of a response that may show any chart or chartset.
const SHARED: &str = "shared";

/// For a response that clients may cache for a year: a day, since nothing purges it from most CDNs.
const UNPURGED: HeaderValue = HeaderValue::from_static("max-age=86400");
/// For a response that cannot be shown to be current: what has changed may have been purged before: a minute.
const NOT_CURRENT: HeaderValue = HeaderValue::from_static("max-age=60");

/// The settings of a CDN that is purged.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct CdnConfig {
    /// Time for which a CDN that `chart-indexer follow` purges may keep charts and chartsets, in seconds.
    /// Responses have tags then. Without it a CDN may keep ROX files for a day
    #[arg(long, env = "CDN_MAX_AGE_SECONDS", value_name = "SECONDS")]
    pub cdn_max_age_seconds: Option<NonZeroU32>,
}

impl CdnConfig {
    /// The headers of a response about one chart or chartset, which is its tag. It is current if no change that
    /// was purged is missing.
    pub(crate) fn headers(self, tag: &str, is_current: bool) -> CdnHeaders {
        let headers = self.cdn_max_age_seconds.and_then(|seconds| {
            let max_age =
                if is_current { format!("max-age={seconds}").try_into().ok()? } else { NOT_CURRENT };
            Some((Tags::new(tag)?, max_age))
        });
        CdnHeaders(headers)
    }
}

/// The headers of a response about one chart or chartset; none without a CDN that is purged.
#[derive(Debug, Clone, Default)]
pub struct CdnHeaders(Option<(Tags, HeaderValue)>);

impl IntoResponseParts for CdnHeaders {
    type Error = Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Infallible> {
        if let Some((tags, max_age)) = self.0 {
            tags.insert_into(response.headers_mut());
            response.headers_mut().insert(CDN_CACHE_CONTROL, max_age);
        }
        Ok(response)
    }
}

/// The tags of a response: `all`, and another one.
#[derive(Debug, Clone)]
struct Tags {
    surrogate_key: HeaderValue,
    cache_tag: HeaderValue,
}

impl Tags {
    fn new(tag: &str) -> Option<Self> {
        let surrogate_key = HeaderValue::try_from(format!("all {tag}")).ok()?;
        let cache_tag = HeaderValue::try_from(format!("all,{tag}")).ok()?;
        Some(Self { surrogate_key, cache_tag })
    }

    fn insert_into(self, headers: &mut HeaderMap) {
        headers.insert(SURROGATE_KEY, self.surrogate_key);
        headers.insert(CACHE_TAG, self.cache_tag);
    }
}

/// Adds what a response lacks that may be cached: a day in CDNs if it is immutable, and with a CDN that is
/// purged the tag of what may show anything. Every response passes here, whatever its body is.
pub(crate) fn add_headers(mut response: Response, has_tags: bool) -> Response {
    let headers = response.headers_mut();
    let Some(cache_control) = headers.get(CACHE_CONTROL).filter(|value| *value != "no-store") else {
        return response;
    };
    if *cache_control == IMMUTABLE {
        headers.entry(CDN_CACHE_CONTROL).or_insert(UNPURGED);
    }
    if has_tags
        && !headers.contains_key(SURROGATE_KEY)
        && let Some(tags) = Tags::new(SHARED)
    {
        tags.insert_into(headers);
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;
    use crate::CachePolicy;

    fn header<'a>(response: &'a Response, name: &HeaderName) -> Option<&'a str> {
        response.headers().get(name).map(|value| value.to_str().unwrap())
    }

    #[test]
    fn without_a_purged_cdn_immutable_responses_are_kept_for_a_day() {
        for (policy, expected) in [
            (CachePolicy::Rox, Some("max-age=86400")),
            (CachePolicy::Export, Some("max-age=86400")),
            (CachePolicy::HashFilter, Some("max-age=86400")),
            (CachePolicy::FullFeedPage, None),
            (CachePolicy::Lookup, None),
            (CachePolicy::NoStore, None),
        ] {
            let headers = CdnConfig::default().headers("ab", true);
            let response = (headers, (policy, "body").into_response()).into_response();
            let response = add_headers(response, false);
            assert_eq!(header(&response, &CDN_CACHE_CONTROL), expected, "{policy:?}");
            assert_eq!(header(&response, &SURROGATE_KEY), None, "{policy:?}");
        }
    }

    #[test]
    fn purged_responses_are_kept_while_they_are_current() {
        let config = CdnConfig { cdn_max_age_seconds: NonZeroU32::new(604_800) };
        for policy in [CachePolicy::Rox, CachePolicy::Lookup] {
            for (is_current, expected) in [(true, "max-age=604800"), (false, "max-age=60")] {
                let response = (policy, "body").into_response();
                let response = (config.headers("ab", is_current), response).into_response();
                let response = add_headers(response, true);
                assert_eq!(header(&response, &CDN_CACHE_CONTROL), Some(expected));
                assert_eq!(header(&response, &SURROGATE_KEY), Some("all ab"));
                assert_eq!(header(&response, &CACHE_TAG), Some("all,ab"));
            }
        }
    }

    #[test]
    fn other_responses_that_may_be_kept_are_shared() {
        for (policy, expected) in [
            (CachePolicy::Listing, Some("all shared")),
            (CachePolicy::Rox, Some("all shared")),
            (CachePolicy::NoStore, None),
        ] {
            let response = add_headers((policy, "body").into_response(), true);
            assert_eq!(header(&response, &SURROGATE_KEY), expected, "{policy:?}");
        }
    }
}
