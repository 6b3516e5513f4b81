//! Finished bodies, answered as the request's conditions ask.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::extract::FromRequestParts;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chart_index_cache::CachedAnswer;
use chart_index_domain::ReadError;
use serde::Serialize;

use crate::{ApiError, CachePolicy, EntityTag, encoding};

/// More than a lookup has, and most details.
const USUAL_BYTES: usize = 2_048;

/// What a request asks of the form of its answer: `If-None-Match` and `Accept-Encoding`.
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    if_none_match: Vec<HeaderValue>,
    accepts_gzip: bool,
}

impl Conditions {
    /// Whether the client has the representation with this tag already.
    #[must_use]
    pub fn has(&self, tag: &EntityTag) -> bool {
        tag.is_named_by(&self.if_none_match)
    }
}

impl<S: Sync> FromRequestParts<S> for Conditions {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self {
            if_none_match: parts.headers.get_all(IF_NONE_MATCH).iter().cloned().collect(),
            accepts_gzip: encoding::accepts_gzip(&parts.headers),
        })
    }
}

/// A finished JSON body and its tag: all that has to be kept of an answer to give it again.
#[derive(Debug, Clone)]
pub struct JsonBody {
    bytes: Bytes,
    tag: EntityTag,
}

impl JsonBody {
    /// A body that was finished, and tagged, before.
    #[must_use]
    pub const fn new(bytes: Bytes, tag: EntityTag) -> Self {
        Self { bytes, tag }
    }

    /// Renders a value and tags it by its content.
    ///
    /// # Errors
    ///
    /// [`ReadError::Failed`] for a value that has no JSON: rendering is the last step of reading an answer.
    pub fn render(value: &impl Serialize) -> Result<Self, ReadError> {
        Self::render_sized(value, USUAL_BYTES)
    }

    /// [`JsonBody::render`], where it is known how long the body becomes: if not longer, it is not moved while it
    /// grows.
    ///
    /// # Errors
    ///
    /// As for [`JsonBody::render`].
    pub fn render_sized(value: &impl Serialize, expected_bytes: usize) -> Result<Self, ReadError> {
        let mut bytes = Vec::with_capacity(expected_bytes);
        serde_json::to_writer(&mut bytes, value)
            .map_err(|error| ReadError::Failed { operation: "render answer", source: error.into() })?;
        // What is kept takes no more memory than it is long.
        let bytes = Bytes::from(bytes.into_boxed_slice());
        let tag = EntityTag::of_content(&bytes);
        Ok(Self::new(bytes, tag))
    }

    /// What is kept of it.
    #[must_use]
    pub fn keep(self) -> CachedAnswer {
        CachedAnswer::found(self.bytes, self.tag.as_str())
    }

    /// The body that was kept; `None` where there was none.
    #[must_use]
    pub fn kept(answer: CachedAnswer) -> Option<Self> {
        let CachedAnswer::Found { body, tag } = answer else { return None };
        let tag = tag.parse().unwrap_or_else(|_| EntityTag::of_content(&body));
        Some(Self::new(body, tag))
    }

    /// The JSON text.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The tag of the plain body.
    #[must_use]
    pub const fn tag(&self) -> &EntityTag {
        &self.tag
    }

    /// The answer to a request with these conditions: 200 in the encoding that it accepts, or 304 when the
    /// client has just that.
    #[must_use]
    pub fn answer(self, conditions: &Conditions, policy: CachePolicy) -> Response {
        let as_gzip = conditions.accepts_gzip && self.bytes.len() >= encoding::MIN_GZIP_BYTES;
        let tag = if as_gzip { self.tag.of_gzip() } else { self.tag };
        let mut response = if conditions.has(&tag) {
            not_modified(&tag, policy)
        } else if as_gzip {
            match encoding::gzip(&self.bytes) {
                Ok(compressed) => {
                    ([(CONTENT_ENCODING, "gzip")], found(compressed, &tag, policy)).into_response()
                }
                Err(error) => return ApiError::Internal(error.into()).into_response(),
            }
        } else {
            found(self.bytes, &tag, policy)
        };
        response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        response
    }
}

fn found(body: Bytes, tag: &EntityTag, policy: CachePolicy) -> Response {
    let headers =
        [(CONTENT_TYPE, HeaderValue::from_static("application/json")), (ETAG, tag.to_header_value())];
    (policy, headers, Body::from(body)).into_response()
}

/// 304 with the tag and the cache policy that the full answer would have. The caller adds its `Vary`, if any.
#[must_use]
pub fn not_modified(tag: &EntityTag, policy: CachePolicy) -> Response {
    (StatusCode::NOT_MODIFIED, policy, [(ETAG, tag.to_header_value())], Body::new(NoBody)).into_response()
}

/// A body that is none, where an empty one would still be given the header `Content-Length: 0`: on 304 it would
/// describe the full answer, on 204 it is forbidden (RFC 9110, section 8.6).
pub(crate) struct NoBody;

impl HttpBody for NoBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header::{ACCEPT_ENCODING, CONTENT_LENGTH};
    use axum::http::{HeaderName, Request};

    use super::*;

    async fn conditions(headers: &[(HeaderName, &str)]) -> Conditions {
        let mut request = Request::new(());
        for (name, value) in headers {
            request.headers_mut().append(name, value.parse().unwrap());
        }
        Conditions::from_request_parts(&mut request.into_parts().0, &()).await.unwrap()
    }

    fn body_of(size: usize) -> JsonBody {
        JsonBody::render(&"x".repeat(size - 2)).unwrap()
    }

    #[tokio::test]
    async fn a_body_is_compressed_from_1024_bytes_up_under_a_tag_of_its_own() {
        let gzip = conditions(&[(ACCEPT_ENCODING, "gzip")]).await;
        for (size, compressed) in [(1023, false), (1024, true)] {
            let body = body_of(size);
            let plain_tag = body.tag().clone();
            let response = body.answer(&gzip, CachePolicy::Lookup);
            assert_eq!(response.headers().contains_key(CONTENT_ENCODING), compressed, "{size}");
            let tag = if compressed { plain_tag.of_gzip() } else { plain_tag };
            assert_eq!(response.headers()[ETAG], tag.to_string(), "{size}");
            assert_eq!(response.headers()[VARY], "Accept-Encoding");
        }
    }

    #[tokio::test]
    async fn a_tag_matches_only_the_encoding_that_would_be_sent() {
        let body = body_of(2000);
        let (plain, gzip) = (body.tag().to_string(), body.tag().of_gzip().to_string());
        for (accepted, tag, status) in [
            ("gzip", &gzip, 304),
            ("gzip", &plain, 200),
            ("identity", &plain, 304),
            ("identity", &gzip, 200),
            ("identity", &format!("W/{plain}"), 304),
            ("gzip", &format!("{plain}, {gzip}"), 304),
        ] {
            let conditions = conditions(&[(ACCEPT_ENCODING, accepted), (IF_NONE_MATCH, tag)]).await;
            let response = body.clone().answer(&conditions, CachePolicy::Lookup);
            assert_eq!(response.status(), status, "{accepted} {tag}");
            assert_eq!(response.headers()[VARY], "Accept-Encoding");
            if status == 304 {
                assert!(!response.headers().contains_key(CONTENT_TYPE));
                assert!(!response.headers().contains_key(CONTENT_LENGTH));
                assert!(!response.headers().contains_key(CONTENT_ENCODING));
                assert!(tag.contains(response.headers()[ETAG].to_str().unwrap()));
                assert_eq!(response.extensions().get(), Some(&CachePolicy::Lookup));
            }
        }
    }

    #[tokio::test]
    async fn several_header_lines_are_one_condition() {
        let body = body_of(10);
        let tag = body.tag().to_string();
        let conditions = conditions(&[(IF_NONE_MATCH, "\"x\""), (IF_NONE_MATCH, &tag)]).await;
        assert_eq!(body.answer(&conditions, CachePolicy::Lookup).status(), 304);
    }
}
