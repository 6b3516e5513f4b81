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
use chart_index_cache::{CachedBody, CachedResponse, Representation};
use chart_index_domain::ReadError;
use serde::Serialize;

use crate::{CachePolicy, EntityTag, encoding};

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

/// A finished JSON body with its tag, and the same in gzip once a request asked for that: all that has to be cached
/// of an answer to give it again.
#[derive(Debug, Clone)]
pub struct JsonBody(CachedBody);

impl JsonBody {
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
        Ok(Self(CachedBody::new(representation(bytes))))
    }

    /// What is cached of it.
    #[must_use]
    pub fn keep(self) -> CachedResponse {
        CachedResponse::Found(self.0)
    }

    /// A body from the cache.
    #[must_use]
    pub const fn cached(body: CachedBody) -> Self {
        Self(body)
    }

    /// The JSON text.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.0.plain().bytes
    }

    /// Whether a request with these conditions is answered in gzip, if that makes the body smaller.
    pub(crate) fn is_for_gzip(&self, conditions: &Conditions) -> bool {
        conditions.accepts_gzip && self.bytes().len() >= encoding::MIN_GZIP_BYTES
    }

    /// The response to a request with these conditions: 200 in the encoding that it accepts, or 304 when the client
    /// has just that. Each encoding has a tag of its own, made from the very bytes that are sent: a strong tag stands
    /// for those (RFC 9110, section 8.8.1).
    #[must_use]
    pub fn answer(self, conditions: &Conditions, policy: CachePolicy) -> Response {
        let gzip = if self.is_for_gzip(conditions) { self.0.gzip_or_compress(compressed) } else { None };
        let sent = gzip.unwrap_or_else(|| self.0.plain());
        let tag = tag_of(sent);
        let mut response = if conditions.has(&tag) {
            not_modified(&tag, policy)
        } else {
            found(sent.bytes.clone(), &tag, policy)
        };
        let headers = response.headers_mut();
        if gzip.is_some() && headers.contains_key(CONTENT_TYPE) {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        response
    }
}

/// These bytes, tagged by their content.
fn representation(bytes: Bytes) -> Representation {
    let tag = EntityTag::of_content(&bytes).as_str().into();
    Representation { bytes, tag }
}

/// A body in gzip, if that is smaller. The encoder writes to memory, so it does not fail; if it did, the plain body
/// would be the right response.
pub(crate) fn compressed(plain: &Bytes) -> Option<Representation> {
    let gzip = encoding::gzip(plain).ok().filter(|gzip| gzip.len() < plain.len());
    gzip.map(representation)
}

fn tag_of(sent: &Representation) -> EntityTag {
    sent.tag.parse().unwrap_or_else(|_| EntityTag::of_content(&sent.bytes))
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

    async fn sent(response: Response) -> Bytes {
        http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn bodies_from_1024_bytes_up_are_compressed() {
        let gzip = conditions(&[(ACCEPT_ENCODING, "gzip")]).await;
        for (size, compressed) in [(1023, false), (1024, true)] {
            let response = body_of(size).answer(&gzip, CachePolicy::Lookup);
            assert_eq!(response.headers().contains_key(CONTENT_ENCODING), compressed, "{size}");
            assert_eq!(response.headers()[VARY], "Accept-Encoding");
        }
    }

    #[tokio::test]
    async fn a_strong_tag_is_the_digest_of_the_bytes_sent() {
        for accepted in ["gzip", "identity"] {
            let conditions = conditions(&[(ACCEPT_ENCODING, accepted)]).await;
            let response = body_of(2000).answer(&conditions, CachePolicy::Lookup);
            let tag = response.headers()[ETAG].clone();
            assert_eq!(tag, EntityTag::of_content(&sent(response).await).to_string(), "{accepted}");
        }
    }

    #[tokio::test]
    async fn a_body_that_gzip_makes_larger_is_sent_plain() {
        let random: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(2_000).collect();
        let body = JsonBody::cached(CachedBody::new(representation(random.into())));
        let (gzip, plain) = (conditions(&[(ACCEPT_ENCODING, "gzip")]).await, body.bytes().clone());
        let response = body.answer(&gzip, CachePolicy::Lookup);
        assert!(!response.headers().contains_key(CONTENT_ENCODING));
        assert_eq!(sent(response).await, plain);
    }

    #[tokio::test]
    async fn a_body_is_compressed_once_for_all_requests() {
        let body = body_of(2000);
        let gzip = conditions(&[(ACCEPT_ENCODING, "gzip")]).await;
        let first = sent(body.clone().answer(&gzip, CachePolicy::Lookup)).await;
        let again = sent(body.answer(&gzip, CachePolicy::Lookup)).await;
        assert_eq!(first.as_ptr(), again.as_ptr(), "the same memory");
    }

    #[tokio::test]
    async fn a_tag_matches_only_the_encoding_that_would_be_sent() {
        let body = body_of(2000);
        let gzip = compressed(body.bytes()).unwrap();
        let (plain, gzip) = (tag_of(body.0.plain()).to_string(), tag_of(&gzip).to_string());
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
        let tag = tag_of(body.0.plain()).to_string();
        let conditions = conditions(&[(IF_NONE_MATCH, "\"x\""), (IF_NONE_MATCH, &tag)]).await;
        assert_eq!(body.answer(&conditions, CachePolicy::Lookup).status(), 304);
    }
}
