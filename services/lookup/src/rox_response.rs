//! The response with a ROX file (docs/api.md, "ROX file").

use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, ETAG};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chart_index_domain::NoteHash;
use chart_index_http::{CachePolicy, EntityTag};

/// The file as an attachment. Never content-encoded: its tag, the hash, identifies these bytes only.
pub(crate) fn rox_response(hash: NoteHash, tag: &EntityTag, bytes: Bytes) -> Response {
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{hash}.rox\"")),
        (ETAG, tag.to_string()),
    ];
    (CachePolicy::Rox, headers, Body::from(bytes)).into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::header::CACHE_CONTROL;

    use super::*;

    #[test]
    fn rox_file_is_an_attachment_named_and_tagged_by_its_hash() {
        let hash = NoteHash::from_bytes([0xab; 32]);
        let response = rox_response(hash, &hash.into(), vec![1, 2, 3].into());
        let hex = "ab".repeat(32);
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/octet-stream");
        assert_eq!(response.headers()[CONTENT_DISPOSITION], format!("attachment; filename=\"{hex}.rox\""));
        assert_eq!(response.headers()[ETAG], format!("\"{hex}\""));
        assert_eq!(response.headers()[CACHE_CONTROL], "public, max-age=31536000, immutable");
    }
}
