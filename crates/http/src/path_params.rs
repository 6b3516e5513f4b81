//! Extractors of path parameters.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use chart_index_domain::{ChartsetId, MalformedNoteHash, NoteHash};

use crate::{ApiError, Resource};

/// Extracts the path parameter as a note hash. A malformed note hash is 400.
#[derive(Debug, Clone, Copy)]
pub struct HashParam(pub NoteHash);

impl<S: Sync> FromRequestParts<S> for HashParam {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        Ok(Self(parameter(parts).await.ok_or(MalformedNoteHash)?))
    }
}

/// Extracts the path parameter as a chartset id. A malformed chartset id is 404, like an unknown one.
#[derive(Debug, Clone, Copy)]
pub struct ChartsetIdParam(pub ChartsetId);

impl<S: Sync> FromRequestParts<S> for ChartsetIdParam {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parameter(parts).await.map(Self).ok_or(ApiError::NotFound(Resource::Chartset))
    }
}

/// Extracts the path parameter as text. One that is not UTF-8 is 404.
#[derive(Debug, Clone)]
pub struct PathParam(pub String);

impl<S: Sync> FromRequestParts<S> for PathParam {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parameter(parts).await.map(Self).ok_or(ApiError::NotFound(Resource::Endpoint))
    }
}

/// The path parameter, percent-decoded and parsed; `None` if it is malformed or not UTF-8.
async fn parameter<T: FromStr>(parts: &mut Parts) -> Option<T> {
    let Path(parameter) = Path::<String>::from_request_parts(parts, &()).await.ok()?;
    parameter.parse().ok()
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::http::Request;
    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;

    async fn status(path: &str) -> u16 {
        let routes = Router::new()
            .route("/charts/{hash}", get(async |_: HashParam| "chart"))
            .route("/charts/{hash}/rox", get(async |_: HashParam| "file"))
            .route("/chartsets/{id}", get(async |_: ChartsetIdParam| "chartset"));
        routes.oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn malformed_hash_is_400() {
        let hash = "0123456789abcdef".repeat(4);
        assert_eq!(status(&format!("/charts/{hash}")).await, 200);
        assert_eq!(status(&format!("/charts/{hash}/rox")).await, 200);
        assert_eq!(status(&format!("/charts/{}/rox", hash.to_uppercase())).await, 400);
        let escaped = format!("%30{}", &hash[1..]);
        assert_eq!(status(&format!("/charts/{escaped}")).await, 200, "an escaped digit is decoded");
        let (upper, long, slash) = (hash.to_uppercase(), format!("{hash}0"), format!("{}%2F", &hash[1..]));
        for bad in [&upper, &long, &slash, &hash[1..], "x", "%FF", "%00", "%2F", "%", "%zz", "..", "%2e%2e"] {
            assert_eq!(status(&format!("/charts/{bad}")).await, 400, "{bad}");
        }
    }

    #[tokio::test]
    async fn malformed_chartset_id_is_404() {
        assert_eq!(status("/chartsets/00ff00ff00ff00ff").await, 200);
        for bad in ["00FF00FF00FF00FF", "00ff", "%FF", "%00", "%2F", "%"] {
            assert_eq!(status(&format!("/chartsets/{bad}")).await, 404, "{bad}");
        }
    }
}
