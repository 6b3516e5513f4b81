//! The note hash in the address of a page.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use chart_index_domain::NoteHash;
use chart_index_http::{ApiError, PathParam};

use crate::list_page::see_other;

/// Extracts the path parameter, the last part of the path, as a note hash. A malformed one is 400. People also
/// have hashes in upper case, which the API refuses: these are redirected.
pub(crate) struct PageHash(pub(crate) NoteHash);

impl<S: Sync> FromRequestParts<S> for PageHash {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let parameter = PathParam::from_request_parts(parts, state).await;
        let PathParam(text) = parameter.map_err(IntoResponse::into_response)?;
        let lower = text.to_ascii_lowercase();
        let parsed: Result<NoteHash, _> = lower.parse();
        let hash = parsed.map_err(|error| ApiError::from(error).into_response())?;
        if lower == text {
            return Ok(Self(hash));
        }
        let folder = parts.uri.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        Err(see_other(&format!("{folder}/{hash}")))
    }
}
