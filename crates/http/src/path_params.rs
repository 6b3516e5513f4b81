//! Extractors of path parameters.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use chart_index_domain::{ChartsetId, MalformedNoteHash, NoteHash};

use crate::{ApiError, Resource};

/// Extracts the path parameter `hash`. A malformed note hash is 400.
#[derive(Debug, Clone, Copy)]
pub struct HashParam(pub NoteHash);

impl<S: Send + Sync> FromRequestParts<S> for HashParam {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let hash = parameter(parts, state, "hash").await.ok_or(MalformedNoteHash)?;
        Ok(Self(hash))
    }
}

/// Extracts the path parameter `id`. A malformed chartset id is 404, like an unknown one.
#[derive(Debug, Clone, Copy)]
pub struct ChartsetIdParam(pub ChartsetId);

impl<S: Send + Sync> FromRequestParts<S> for ChartsetIdParam {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        parameter(parts, state, "id").await.map(Self).ok_or(ApiError::NotFound(Resource::Chartset))
    }
}

/// The named parameter, percent-decoded and parsed; `None` if it is malformed or not UTF-8.
async fn parameter<T: std::str::FromStr>(
    parts: &mut Parts,
    state: &(impl Send + Sync),
    name: &str,
) -> Option<T> {
    let parameters = RawPathParams::from_request_parts(parts, state).await.ok()?;
    let (_, value) = parameters.iter().find(|(parameter, _)| *parameter == name)?;
    value.parse().ok()
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
            .route("/chartsets/{id}", get(async |_: ChartsetIdParam| "chartset"));
        let request = Request::get(path).body(Body::empty()).unwrap();
        routes.oneshot(request).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn malformed_hash_is_400() {
        let hash = "0123456789abcdef".repeat(4);
        assert_eq!(status(&format!("/charts/{hash}")).await, 200);
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
