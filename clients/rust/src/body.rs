//! Bodies of responses, within limits.

use std::io::Read;

use bytes::Bytes;
use flate2::read::GzDecoder;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, LOCATION};

use crate::retries::retry_after;
use crate::{Error, InvalidResponse, Problem};

/// The longest body that is read. The hash filter of a million charts has 1.1 MB, a batch of known ones 2 MB.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// The longest problem details that are read.
const MAX_PROBLEM_BYTES: usize = 64 * 1024;

/// Reads a body of at most `limit` bytes, as it was sent.
///
/// # Errors
/// The connection was lost, or the body is longer.
pub async fn read_body(mut response: Response, limit: usize) -> Result<Vec<u8>, Error> {
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(Error::TooLong { limit });
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > limit {
            return Err(Error::TooLong { limit });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Reads a body, and decompresses it.
pub(crate) async fn read_decoded(response: Response) -> Result<Bytes, Error> {
    let coding = response.headers().get(CONTENT_ENCODING).cloned();
    let body = read_body(response, MAX_BYTES).await?;
    if coding.is_none_or(|coding| coding != "gzip") {
        return Ok(body.into());
    }
    let mut decoded = Vec::new();
    let mut reader = GzDecoder::new(&*body).take(MAX_BYTES as u64 + 1);
    reader.read_to_end(&mut decoded).map_err(InvalidResponse::Gzip)?;
    if decoded.len() > MAX_BYTES { Err(Error::TooLong { limit: MAX_BYTES }) } else { Ok(decoded.into()) }
}

impl Error {
    /// The error for a response other than a success.
    pub async fn from_response(response: Response) -> Self {
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let problem = if let Some(location) = location {
            Problem { detail: format!("redirected to {location}"), ..Problem::default() }
        } else {
            let body = read_body(response, MAX_PROBLEM_BYTES).await.unwrap_or_default();
            serde_json::from_slice(&body).unwrap_or_default()
        };
        Self::Problem(Box::new(Problem { status, retry_after, ..problem }))
    }
}
