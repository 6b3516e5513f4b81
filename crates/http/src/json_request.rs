//! JSON request bodies.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use crate::{ApiError, content_encoding};

/// The maximum size of a request body in bytes (docs/api.md, "Batch lookup").
const MAX_BYTES: usize = 128 * 1024;

/// The rate at which a request body has to be received after the first second (docs/api.md, "Batch lookup").
const MIN_BYTES_PER_SECOND: f64 = 4_096.0;

/// The maximum time to receive a request body (docs/api.md, "Batch lookup").
const TIMEOUT: Duration = Duration::from_secs(15);

/// Extracts the JSON request body of a [`post_route`](crate::Routes::post_route).
///
/// # Errors
///
/// [`ApiError::MalformedBody`].
#[derive(Debug)]
pub struct JsonRequest<T>(pub T);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for JsonRequest<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        // It has been received, so it is in memory and complete.
        let body = request.into_body().collect().await.map_err(|_| ApiError::IncompleteBody)?;
        serde_json::from_slice(&body.to_bytes()).map(Self).map_err(ApiError::MalformedBody)
    }
}

/// Receives a JSON body of at most 128 KiB into memory, and decodes gzip to at most as many bytes. Rejects
/// another media type, another content coding, and a larger `Content-Length`, before reading the body.
///
/// # Errors
///
/// [`ApiError::UnsupportedMediaType`], [`ApiError::ContentTooLarge`], [`ApiError::IncompleteBody`],
/// [`ApiError::MalformedGzip`], or [`ApiError::RequestTimeout`].
pub(crate) async fn receive(request: Request) -> Result<Request, ApiError> {
    let coding = Coding::of(request.headers()).filter(|_| has_json_type(request.headers()));
    let coding = coding.ok_or(ApiError::UnsupportedMediaType)?;
    let (parts, body) = request.into_parts();
    let mut body = read(body).await?;
    if coding == Coding::Gzip {
        let plain = content_encoding::gunzip(&body, MAX_BYTES).map_err(|_| ApiError::MalformedGzip)?;
        body = plain.ok_or(ApiError::ContentTooLarge)?;
    }
    Ok(Request::from_parts(parts, body.into()))
}

/// Whether `Content-Type` is `application/json`, whatever its parameters: JSON is UTF-8 (RFC 8259, section
/// 8.1).
fn has_json_type(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case("application/json")
}

/// The content coding of a body (RFC 9110, section 8.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Identity,
    Gzip,
}

impl Coding {
    /// `None` for another coding, or several.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let mut codings = headers.get_all(CONTENT_ENCODING).iter();
        let (Some(coding), None) = (codings.next(), codings.next()) else {
            return headers.get(CONTENT_ENCODING).is_none().then_some(Self::Identity);
        };
        let is = |name: &str| coding.as_bytes().eq_ignore_ascii_case(name.as_bytes());
        if is("gzip") || is("x-gzip") { Some(Self::Gzip) } else { is("identity").then_some(Self::Identity) }
    }
}

async fn read(body: Body) -> Result<Vec<u8>, ApiError> {
    if body.size_hint().lower() > MAX_BYTES as u64 {
        return Err(ApiError::ContentTooLarge);
    }
    let mut body = Limited::new(body, MAX_BYTES);
    let start = Instant::now();
    // Copied: as received, chunks of one byte would take many times their size in memory.
    let mut bytes = Vec::new();
    loop {
        let frame = timeout_at(start + time_for(bytes.len()), body.frame());
        let Some(frame) = frame.await.map_err(|_| ApiError::RequestTimeout)? else { return Ok(bytes) };
        match frame {
            Ok(frame) => bytes.extend_from_slice(frame.data_ref().map_or(&[][..], AsRef::as_ref)),
            Err(error) if error.is::<LengthLimitError>() => return Err(ApiError::ContentTooLarge),
            // The client closed the connection, or sent a malformed chunk: no one reads the response.
            Err(_) => return Err(ApiError::IncompleteBody),
        }
    }
}

/// The time within which the next bytes are expected, since the start: a second, and as long as this number of
/// bytes may have taken.
fn time_for(received: usize) -> Duration {
    let received = u32::try_from(received).unwrap_or(u32::MAX);
    (Duration::from_secs(1) + Duration::from_secs_f64(f64::from(received) / MIN_BYTES_PER_SECOND))
        .min(TIMEOUT)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::http::HeaderName;
    use futures_util::{StreamExt, stream};

    use super::*;

    async fn extract(headers: &[(HeaderName, &str)], body: Body) -> Result<Vec<u32>, ApiError> {
        let mut request = Request::new(body);
        for (name, value) in headers {
            request.headers_mut().append(name, value.parse().unwrap());
        }
        let request = receive(request).await?;
        JsonRequest::from_request(request, &()).await.map(|JsonRequest(value)| value)
    }

    async fn extract_json(body: Body) -> Result<Vec<u32>, ApiError> {
        extract(&[(CONTENT_TYPE, "application/json")], body).await
    }

    async fn extract_coded(codings: &[&str], body: Vec<u8>) -> Result<Vec<u32>, ApiError> {
        let codings = codings.iter().map(|coding| (CONTENT_ENCODING, *coding));
        let headers: Vec<_> = [(CONTENT_TYPE, "application/json")].into_iter().chain(codings).collect();
        extract(&headers, body.into()).await
    }

    #[tokio::test]
    async fn media_type_must_be_json() {
        for accepted in ["application/json", "Application/JSON", "application/json; charset=utf-8"] {
            let headers = [(CONTENT_TYPE, accepted)];
            assert_eq!(extract(&headers, "[1, 2]".into()).await.unwrap(), [1, 2], "{accepted}");
        }
        for rejected in [None, Some(""), Some("text/plain"), Some("application/jsonx"), Some("text/json")] {
            let headers: Vec<_> = rejected.map(|rejected| (CONTENT_TYPE, rejected)).into_iter().collect();
            let error = extract(&headers, "[1, 2]".into()).await.unwrap_err();
            assert!(matches!(error, ApiError::UnsupportedMediaType), "{rejected:?}: {error:?}");
        }
    }

    #[tokio::test]
    async fn gzip_is_decoded_and_other_codings_are_rejected() {
        let gzip = || content_encoding::gzip(b"[1]").unwrap().to_vec();
        for coding in ["gzip", "GZIP", "x-gzip"] {
            assert_eq!(extract_coded(&[coding], gzip()).await.unwrap(), [1], "{coding}");
        }
        assert_eq!(extract_coded(&["identity"], b"[1]".to_vec()).await.unwrap(), [1]);
        for codings in [&["br"][..], &[""], &["gzip, gzip"], &["identity, gzip"], &["gzip", "gzip"]] {
            let error = extract_coded(codings, gzip()).await.unwrap_err();
            assert!(matches!(error, ApiError::UnsupportedMediaType), "{codings:?}: {error:?}");
        }
        let error = extract_coded(&["gzip"], b"[1]".to_vec()).await.unwrap_err();
        assert!(matches!(error, ApiError::MalformedGzip), "{error:?}");
    }

    #[tokio::test]
    async fn decoded_body_above_128_kib_is_rejected() {
        let body = |bytes: usize| {
            content_encoding::gzip(format!("[{}1]", " ".repeat(bytes - 3)).as_bytes()).unwrap().to_vec()
        };
        assert_eq!(extract_coded(&["gzip"], body(MAX_BYTES)).await.unwrap(), [1]);
        for bytes in [MAX_BYTES + 1, 1 << 26] {
            let error = extract_coded(&["gzip"], body(bytes)).await.unwrap_err();
            assert!(matches!(error, ApiError::ContentTooLarge), "{error:?}");
        }
    }

    #[tokio::test]
    async fn malformed_json_is_rejected() {
        for body in ["", "[1", "{}", "[-1]", "[1] 2", "\u{feff}[1]"] {
            let error = extract_json(body.into()).await.unwrap_err();
            assert!(matches!(error, ApiError::MalformedBody(_)), "{body}: {error:?}");
        }
    }

    #[tokio::test]
    async fn body_above_128_kib_is_rejected() {
        let body = |bytes: usize| format!("[{}1]", " ".repeat(bytes - 3));
        // Without a length, as a chunked request.
        let unsized_body = |bytes| Body::from_stream(stream::iter([Ok::<_, Infallible>(body(bytes))]));
        assert_eq!(extract_json(body(MAX_BYTES).into()).await.unwrap(), [1]);
        assert_eq!(extract_json(unsized_body(MAX_BYTES)).await.unwrap(), [1]);
        for too_large in [body(MAX_BYTES + 1).into(), unsized_body(MAX_BYTES + 1)] {
            let error = extract_json(too_large).await.unwrap_err();
            assert!(matches!(error, ApiError::ContentTooLarge), "{error:?}");
        }
    }

    /// A body whose segments, of this many bytes each, arrive at these times in milliseconds.
    fn slow_body(segment_bytes: usize, times_ms: impl IntoIterator<Item = u64>) -> Body {
        let (start, times): (_, Vec<u64>) = (Instant::now(), times_ms.into_iter().collect());
        let last = times.len() - 1;
        let segments = stream::iter(times.into_iter().enumerate());
        Body::from_stream(segments.then(move |(number, at)| async move {
            tokio::time::sleep_until(start + Duration::from_millis(at)).await;
            let text = if number == 0 {
                "[1"
            } else if number == last {
                "]"
            } else {
                ""
            };
            Ok::<_, Infallible>(format!("{text:segment_bytes$}"))
        }))
    }

    async fn is_in_time(segment_bytes: usize, times_ms: impl IntoIterator<Item = u64>) -> bool {
        match extract_json(slow_body(segment_bytes, times_ms)).await {
            Ok(received) => received == [1],
            Err(error) => {
                assert!(matches!(error, ApiError::RequestTimeout), "{error:?}");
                false
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn body_has_a_second_and_a_minimum_rate_after_it() {
        assert!(is_in_time(2, [0, 990]).await);
        assert!(!is_in_time(2, [0, 1_010]).await);
        assert!(!is_in_time(2, [1_010, 1_011]).await);
        assert!(is_in_time(4_096, (0..14).map(|second| second * 1_000)).await);
        assert!(!is_in_time(4_096, [0, 2_010]).await);
        assert!(!is_in_time(2_048, (0..14).map(|second| second * 1_000)).await);
        // Slow in the middle, but fast before.
        assert!(is_in_time(40_960, [0, 9_000]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn body_has_15_seconds() {
        assert!(is_in_time(60_000, [0, 14_990]).await);
        assert!(!is_in_time(65_000, [0, 15_010]).await);
    }
}
