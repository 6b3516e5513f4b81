//! JSON request bodies.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::ApiError;

/// The maximum size of a request body in bytes (docs/api.md, "Batch lookup").
const MAX_BYTES: usize = 128 * 1024;

/// The maximum time to receive a request body (docs/api.md, "Batch lookup").
const TIMEOUT: Duration = Duration::from_secs(1);

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

/// Receives a JSON body of at most 128 KiB into memory. Rejects another media type, a content coding, and a
/// larger `Content-Length`, before reading the body.
///
/// # Errors
///
/// [`ApiError::UnsupportedMediaType`], [`ApiError::ContentTooLarge`], [`ApiError::IncompleteBody`], or
/// [`ApiError::RequestTimeout`].
pub(crate) async fn receive(request: Request) -> Result<Request, ApiError> {
    if !has_json_type(request.headers()) || has_coding(request.headers()) {
        return Err(ApiError::UnsupportedMediaType);
    }
    let (parts, body) = request.into_parts();
    let body = timeout(TIMEOUT, read(body)).await.map_err(|_| ApiError::RequestTimeout)??;
    Ok(Request::from_parts(parts, body.into()))
}

/// Whether `Content-Type` is `application/json`, whatever its parameters: JSON is UTF-8 (RFC 8259, section
/// 8.1).
fn has_json_type(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case("application/json")
}

/// Whether the body has a content coding, such as gzip, which no endpoint decodes (RFC 9110, section 8.4).
fn has_coding(headers: &HeaderMap) -> bool {
    headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

async fn read(body: Body) -> Result<Vec<u8>, ApiError> {
    if body.size_hint().lower() > MAX_BYTES as u64 {
        return Err(ApiError::ContentTooLarge);
    }
    let mut body = Limited::new(body, MAX_BYTES);
    // Copied: as received, chunks of one byte would take many times their size in memory.
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => bytes.extend_from_slice(frame.data_ref().map_or(&[][..], AsRef::as_ref)),
            Err(error) if error.is::<LengthLimitError>() => return Err(ApiError::ContentTooLarge),
            // The client closed the connection, or sent a malformed chunk: no one reads the response.
            Err(_) => return Err(ApiError::IncompleteBody),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{StreamExt, stream};

    use super::*;

    async fn extract(content_type: Option<&str>, body: Body) -> Result<Vec<u32>, ApiError> {
        let mut request = Request::builder();
        if let Some(content_type) = content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let request = receive(request.body(body).unwrap()).await?;
        JsonRequest::from_request(request, &()).await.map(|JsonRequest(value)| value)
    }

    #[tokio::test]
    async fn media_type_must_be_json() {
        for accepted in ["application/json", "Application/JSON", "application/json; charset=utf-8"] {
            assert_eq!(extract(Some(accepted), "[1, 2]".into()).await.unwrap(), [1, 2], "{accepted}");
        }
        for rejected in [None, Some(""), Some("text/plain"), Some("application/jsonx"), Some("text/json")] {
            let error = extract(rejected, "[1, 2]".into()).await.unwrap_err();
            assert!(matches!(error, ApiError::UnsupportedMediaType), "{rejected:?}: {error:?}");
        }
    }

    #[tokio::test]
    async fn body_with_a_content_coding_is_rejected() {
        for (coding, is_accepted) in
            [("identity", true), ("gzip", false), ("", false), ("x, identity", false)]
        {
            let request = Request::builder().header(CONTENT_TYPE, "application/json");
            let request = request.header(CONTENT_ENCODING, coding).body("[1]".into()).unwrap();
            let received = receive(request).await;
            let is_rejected = matches!(received, Err(ApiError::UnsupportedMediaType));
            assert_eq!((received.is_ok(), is_rejected), (is_accepted, !is_accepted), "{coding}");
        }
    }

    #[tokio::test]
    async fn malformed_json_is_rejected() {
        for body in ["", "[1", "{}", "[-1]", "[1] 2", "\u{feff}[1]"] {
            let error = extract(Some("application/json"), body.into()).await.unwrap_err();
            assert!(matches!(error, ApiError::MalformedBody(_)), "{body}: {error:?}");
        }
    }

    #[tokio::test]
    async fn body_above_128_kib_is_rejected() {
        let body = |bytes: usize| format!("[{}1]", " ".repeat(bytes - 3));
        // Without a length, as a chunked request.
        let unsized_body = |bytes| Body::from_stream(stream::iter([Ok::<_, Infallible>(body(bytes))]));
        assert_eq!(extract(Some("application/json"), body(MAX_BYTES).into()).await.unwrap(), [1]);
        assert_eq!(extract(Some("application/json"), unsized_body(MAX_BYTES)).await.unwrap(), [1]);
        for too_large in [body(MAX_BYTES + 1).into(), unsized_body(MAX_BYTES + 1)] {
            let error = extract(Some("application/json"), too_large).await.unwrap_err();
            assert!(matches!(error, ApiError::ContentTooLarge), "{error:?}");
        }
    }
    /// A body of two segments, of which the second arrives after this time.
    fn slow_body(delay: Duration) -> Body {
        let segments = stream::iter([(Duration::ZERO, "[1,"), (delay, " 2]")]);
        Body::from_stream(segments.then(async |(delay, segment)| {
            tokio::time::sleep(delay).await;
            Ok::<_, Infallible>(segment)
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn body_has_one_second() {
        let in_time = slow_body(Duration::from_millis(990));
        assert_eq!(extract(Some("application/json"), in_time).await.unwrap(), [1, 2]);
        let too_late = slow_body(Duration::from_millis(1_010));
        let error = extract(Some("application/json"), too_late).await.unwrap_err();
        assert!(matches!(error, ApiError::RequestTimeout), "{error:?}");
    }
}
