//! Text response bodies: conditional requests, gzip, and conversion to and from cache entries.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::extract::FromRequestParts;
use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use chart_index_cache::{CachedBody, CachedResponse, Representation};
use chart_index_domain::ReadError;
use serde::Serialize;

use crate::{CachePolicy, EntityTag, content_encoding, html_headers};

/// Larger than the body of a lookup and of most chartset details.
const TYPICAL_JSON_BYTES: usize = 2_048;

/// At least the number of headers of a response.
pub(crate) const TYPICAL_HEADERS: usize = 12;

/// Extracts the request headers that decide how a body is sent: `If-None-Match` and `Accept-Encoding`.
#[derive(Debug, Clone, Default)]
pub struct RequestHeaders {
    if_none_match: Vec<HeaderValue>,
    accepts_gzip: bool,
}

impl RequestHeaders {
    /// Whether the client accepts gzip.
    #[must_use]
    pub const fn accepts_gzip(&self) -> bool {
        self.accepts_gzip
    }

    /// Whether `If-None-Match` matches this tag, so that the response is 304.
    #[must_use]
    pub fn matches(&self, tag: &EntityTag) -> bool {
        tag.is_listed_in(&self.if_none_match)
    }
}

impl<S: Sync> FromRequestParts<S> for RequestHeaders {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self {
            if_none_match: parts.headers.get_all(IF_NONE_MATCH).iter().cloned().collect(),
            accepts_gzip: content_encoding::accepts_gzip(&parts.headers),
        })
    }
}

/// The media type of a text body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaType {
    /// `application/json`.
    Json,
    /// `text/html`.
    Html,
    /// `application/atom+xml`.
    Atom,
    /// `text/plain`.
    Plain,
    /// `application/xml`.
    Xml,
}

impl MediaType {
    const fn header(self) -> HeaderValue {
        match self {
            Self::Json => HeaderValue::from_static("application/json"),
            Self::Html => html_headers::HTML,
            Self::Atom => HeaderValue::from_static("application/atom+xml; charset=utf-8"),
            Self::Plain => HeaderValue::from_static("text/plain; charset=utf-8"),
            Self::Xml => HeaderValue::from_static("application/xml; charset=utf-8"),
        }
    }
}

/// A text body with its entity tag, and its gzip representation once a request has asked for one. This is what
/// the cache stores of a response.
#[derive(Debug, Clone)]
pub struct TextBody(CachedBody);

impl TextBody {
    /// The body with this text. Computes its entity tag.
    #[must_use]
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        // The cache accounts for the length of a body: it must not have spare capacity.
        let bytes = Bytes::from(text.into().into_boxed_slice());
        Self(CachedBody::new(representation(bytes)))
    }

    /// The body with the JSON text of a value.
    ///
    /// # Errors
    ///
    /// [`ReadError::Failed`] if the value cannot be serialized: serialization is the last step of a read.
    pub fn json(value: &impl Serialize) -> Result<Self, ReadError> {
        let mut bytes = Vec::with_capacity(TYPICAL_JSON_BYTES);
        serde_json::to_writer(&mut bytes, value)
            .map_err(|error| ReadError::Failed { operation: "serialize response", source: error.into() })?;
        Ok(Self::new(bytes))
    }

    /// The cache entry of this body.
    #[must_use]
    pub fn into_cached(self) -> CachedResponse {
        CachedResponse::Found(self.0)
    }

    /// The body that a cache entry holds.
    #[must_use]
    pub const fn from_cached(body: CachedBody) -> Self {
        Self(body)
    }

    /// The text, as UTF-8.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.0.plain().bytes
    }

    /// Whether to send this body in gzip, provided that gzip makes it smaller.
    pub(crate) fn prefers_gzip(&self, request: &RequestHeaders) -> bool {
        request.accepts_gzip && self.bytes().len() >= content_encoding::MIN_GZIP_BYTES
    }

    /// The response to a request with these headers: 200 in an encoding that it accepts, or 304 if its
    /// `If-None-Match` matches. Plain and gzip representations have different strong tags, each computed from
    /// the bytes that are sent (RFC 9110, section 8.8.1).
    #[must_use]
    pub fn into_response(
        self,
        request: &RequestHeaders,
        policy: CachePolicy,
        media_type: MediaType,
    ) -> Response {
        let gzip = if self.prefers_gzip(request) { self.0.gzip_or_compress(compressed) } else { None };
        let selected = gzip.unwrap_or_else(|| self.0.plain());
        let tag = tag_of(selected);
        let mut response = if request.matches(&tag) {
            not_modified(&tag, policy)
        } else {
            full_response(selected.bytes.clone(), &tag, policy, media_type)
        };
        let headers = response.headers_mut();
        if gzip.is_some() && headers.contains_key(CONTENT_TYPE) {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        response
    }
}

/// The response with a JSON text that is computed for this request alone, so that it is neither cached nor
/// tagged.
#[must_use]
pub fn uncached_json(text: Bytes, request: &RequestHeaders) -> Response {
    let gzip = if request.accepts_gzip && text.len() >= content_encoding::MIN_GZIP_BYTES {
        content_encoding::gzip_once(&text).ok()
    } else {
        None
    };
    let encoding = gzip.is_some().then(|| HeaderValue::from_static("gzip"));
    let mut response = Response::new(Body::from(gzip.unwrap_or(text)));
    let headers = response.headers_mut();
    headers.reserve(TYPICAL_HEADERS);
    headers.insert(CONTENT_TYPE, MediaType::Json.header());
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    if let Some(encoding) = encoding {
        headers.insert(CONTENT_ENCODING, encoding);
    }
    response
}

fn representation(bytes: Bytes) -> Representation {
    let tag = EntityTag::from_content(&bytes).as_str().into();
    Representation { bytes, tag }
}

/// The body in gzip, unless that is not smaller. Writing to memory does not fail; if it did, the plain body
/// would be sent.
pub(crate) fn compressed(plain: &Bytes) -> Option<Representation> {
    let gzip = content_encoding::gzip(plain).ok().filter(|gzip| gzip.len() < plain.len());
    gzip.map(representation)
}

fn tag_of(selected: &Representation) -> EntityTag {
    selected.tag.parse().unwrap_or_else(|_| EntityTag::from_content(&selected.bytes))
}

fn full_response(body: Bytes, tag: &EntityTag, policy: CachePolicy, media_type: MediaType) -> Response {
    let mut response = tagged_response(StatusCode::OK, tag, policy, Body::from(body));
    response.headers_mut().insert(CONTENT_TYPE, media_type.header());
    response
}

/// A 304 with the tag and the cache policy of the full response. The caller adds `Vary`, if the response has
/// one.
#[must_use]
pub fn not_modified(tag: &EntityTag, policy: CachePolicy) -> Response {
    tagged_response(StatusCode::NOT_MODIFIED, tag, policy, Body::new(NoBody))
}

/// A response with this tag, and room for the headers that are added later.
fn tagged_response(status: StatusCode, tag: &EntityTag, policy: CachePolicy, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.reserve(TYPICAL_HEADERS);
    headers.insert(ETAG, tag.to_header_value());
    headers.insert(CACHE_CONTROL, policy.header());
    response
}

/// The absence of a body. For an empty body axum sends `Content-Length: 0`, which is wrong on a 304, where it
/// describes the full response, and forbidden on a 204 (RFC 9110, section 8.6).
#[derive(Debug)]
pub struct NoBody;

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

    async fn request_headers(lines: &[(HeaderName, &str)]) -> RequestHeaders {
        let mut request = Request::new(());
        for (name, value) in lines {
            request.headers_mut().append(name, value.parse().unwrap());
        }
        RequestHeaders::from_request_parts(&mut request.into_parts().0, &()).await.unwrap()
    }

    fn body_of(size: usize) -> TextBody {
        TextBody::new("x".repeat(size))
    }

    async fn body_bytes(response: Response) -> Bytes {
        http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn bodies_of_1024_bytes_or_more_are_compressed() {
        let gzip = request_headers(&[(ACCEPT_ENCODING, "gzip")]).await;
        for (size, compressed) in [(1023, false), (1024, true)] {
            let response = body_of(size).into_response(&gzip, CachePolicy::Lookup, MediaType::Json);
            assert_eq!(response.headers().contains_key(CONTENT_ENCODING), compressed, "{size}");
            assert_eq!(response.headers()[VARY], "Accept-Encoding");
        }
    }

    #[tokio::test]
    async fn strong_tag_is_the_digest_of_the_bytes_sent() {
        for accepted in ["gzip", "identity"] {
            let request = request_headers(&[(ACCEPT_ENCODING, accepted)]).await;
            let response = body_of(2000).into_response(&request, CachePolicy::Lookup, MediaType::Json);
            let tag = response.headers()[ETAG].clone();
            assert_eq!(tag, EntityTag::from_content(&body_bytes(response).await).to_string(), "{accepted}");
        }
    }

    #[tokio::test]
    async fn body_that_gzip_makes_larger_is_sent_plain() {
        let random: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(2_000).collect();
        let body = TextBody::from_cached(CachedBody::new(representation(random.into())));
        let (gzip, plain) = (request_headers(&[(ACCEPT_ENCODING, "gzip")]).await, body.bytes().clone());
        let response = body.into_response(&gzip, CachePolicy::Lookup, MediaType::Json);
        assert!(!response.headers().contains_key(CONTENT_ENCODING));
        assert_eq!(body_bytes(response).await, plain);
    }

    #[tokio::test]
    async fn body_is_compressed_once_for_all_requests() {
        let body = body_of(2000);
        let gzip = request_headers(&[(ACCEPT_ENCODING, "gzip")]).await;
        let first = body_bytes(body.clone().into_response(&gzip, CachePolicy::Lookup, MediaType::Json)).await;
        let again = body_bytes(body.into_response(&gzip, CachePolicy::Lookup, MediaType::Json)).await;
        assert_eq!(first.as_ptr(), again.as_ptr(), "the same memory");
    }

    #[tokio::test]
    async fn tag_matches_only_the_encoding_that_would_be_sent() {
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
            let request = request_headers(&[(ACCEPT_ENCODING, accepted), (IF_NONE_MATCH, tag)]).await;
            let response = body.clone().into_response(&request, CachePolicy::Lookup, MediaType::Json);
            assert_eq!(response.status(), status, "{accepted} {tag}");
            assert_eq!(response.headers()[VARY], "Accept-Encoding");
            if status == 304 {
                assert!(!response.headers().contains_key(CONTENT_TYPE));
                assert!(!response.headers().contains_key(CONTENT_LENGTH));
                assert!(!response.headers().contains_key(CONTENT_ENCODING));
                assert!(tag.contains(response.headers()[ETAG].to_str().unwrap()));
                assert_eq!(response.headers()[CACHE_CONTROL], "public, max-age=300");
            }
        }
    }

    #[tokio::test]
    async fn if_none_match_lines_are_combined() {
        let body = body_of(10);
        let tag = tag_of(body.0.plain()).to_string();
        let request = request_headers(&[(IF_NONE_MATCH, "\"x\""), (IF_NONE_MATCH, &tag)]).await;
        assert_eq!(body.into_response(&request, CachePolicy::Lookup, MediaType::Json).status(), 304);
    }
}
