//! JSON response bodies.

use axum::response::Response;
use chart_index_cache::{CachedBody, CachedResponse};
use chart_index_domain::ReadError;
use serde::Serialize;

use crate::{CachePolicy, MediaType, RequestHeaders, TextBody};

/// Larger than the body of a lookup and of most chartset details.
const TYPICAL_BYTES: usize = 2_048;

/// A serialized JSON body with its entity tag.
#[derive(Debug, Clone)]
pub struct JsonBody(TextBody);

impl JsonBody {
    /// Serializes a value and computes the entity tag of the JSON text.
    ///
    /// # Errors
    ///
    /// [`ReadError::Failed`] if the value cannot be serialized: serialization is the last step of a read.
    pub fn render(value: &impl Serialize) -> Result<Self, ReadError> {
        Self::render_sized(value, TYPICAL_BYTES)
    }

    /// Like [`JsonBody::render`], for a body of known size: a buffer of `expected_bytes` is not reallocated
    /// unless the body is longer.
    ///
    /// # Errors
    ///
    /// As for [`JsonBody::render`].
    pub fn render_sized(value: &impl Serialize, expected_bytes: usize) -> Result<Self, ReadError> {
        let mut bytes = Vec::with_capacity(expected_bytes);
        serde_json::to_writer(&mut bytes, value)
            .map_err(|error| ReadError::Failed { operation: "serialize response", source: error.into() })?;
        Ok(Self(TextBody::new(bytes)))
    }

    /// The body with this JSON text. Computes its entity tag.
    #[must_use]
    pub fn from_json(json: Vec<u8>) -> Self {
        Self(TextBody::new(json))
    }

    /// The cache entry of this body.
    #[must_use]
    pub fn into_cached(self) -> CachedResponse {
        self.0.into_cached()
    }

    /// The body that a cache entry holds.
    #[must_use]
    pub const fn from_cached(body: CachedBody) -> Self {
        Self(TextBody::from_cached(body))
    }

    /// The response to a request with these headers, see [`TextBody::into_response`].
    #[must_use]
    pub fn into_response(self, request: &RequestHeaders, policy: CachePolicy) -> Response {
        self.0.into_response(request, policy, MediaType::Json)
    }
}

impl From<TextBody> for JsonBody {
    fn from(body: TextBody) -> Self {
        Self(body)
    }
}
