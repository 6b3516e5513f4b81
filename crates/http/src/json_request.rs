//! JSON request bodies.

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::ApiError;

/// The maximum size of a request body in bytes (docs/api.md, "Batch lookup").
const MAX_BYTES: usize = 128 * 1024;

/// Extracts a JSON request body of at most 128 KiB.
///
/// # Errors
///
/// [`ApiError::UnsupportedMediaType`], [`ApiError::ContentTooLarge`], or [`ApiError::MalformedBody`].
#[derive(Debug)]
pub struct JsonRequest<T>(pub T);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for JsonRequest<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        if !has_json_type(request.headers()) {
            return Err(ApiError::UnsupportedMediaType);
        }
        let bytes = read(request.into_body()).await?;
        serde_json::from_slice(&bytes).map(Self).map_err(ApiError::MalformedBody)
    }
}

/// Whether `Content-Type` is `application/json`, whatever its parameters: JSON is UTF-8 (RFC 8259, section
/// 8.1).
fn has_json_type(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case("application/json")
}

/// Reads the body. Rejects one with a `Content-Length` above the limit before reading it.
async fn read(body: Body) -> Result<Bytes, ApiError> {
    if body.size_hint().lower() > MAX_BYTES as u64 {
        return Err(ApiError::ContentTooLarge);
    }
    match Limited::new(body, MAX_BYTES).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::ContentTooLarge),
        // The client closed the connection, or sent a malformed chunk: no one reads the response.
        Err(_) => Err(ApiError::IncompleteBody),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;

    async fn extract(content_type: Option<&str>, body: Body) -> Result<Vec<u32>, ApiError> {
        let mut request = Request::builder();
        if let Some(content_type) = content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        JsonRequest::from_request(request.body(body).unwrap(), &()).await.map(|JsonRequest(value)| value)
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
}
