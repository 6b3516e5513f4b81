//! The handlers of exports.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, LOCATION,
};
use axum::response::{IntoResponse, Response};
use chart_index_domain::{ExportFile, ExportManifest, ExportName, ExportedFile};
use chart_index_http::openapi::{Conditional, Responses};
use chart_index_http::{
    ApiError, CachePolicy, EntityTag, MediaType, PathParam, RequestHeaders, TextBody, not_modified,
};
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;
use utoipa::IntoResponses;

use super::export_files::{NOT_FOUND, NewestExport, StoredManifest, media_type};
use super::openapi::{
    ExportNameParam, LatestResponses, ManifestResponses, Ranged, SignatureResponses, file_responses,
};
use super::range::{RangeRequest, Selected};
use crate::BulkState;

/// How much of a file is read at once: fewer calls than with the 4 KiB that a stream reads by default.
const CHUNK_BYTES: usize = 128 * 1024;

/// `GET /api/exports/latest`.
#[utoipa::path(
    get,
    path = "/api/exports/latest",
    operation_id = "getLatestExport",
    tag = "Bulk",
    responses(LatestResponses),
    extensions(("x-extension" = json!(true)))
)]
pub(crate) async fn latest(State(state): State<Arc<BulkState>>) -> Result<Response, ApiError> {
    let NewestExport { name, is_withdrawn, .. } = state.exports.find_newest(&state.store).await?;
    // Clients cache the redirect, and so should not get one to a manifest that they cannot read.
    if is_withdrawn? {
        return Err(ApiError::ExportWithdrawn);
    }
    let location = format!("/api/exports/{name}/{}", ExportManifest::FILE);
    Ok((StatusCode::FOUND, CachePolicy::LatestRedirect, [(LOCATION, location)]).into_response())
}

/// `GET /api/exports/{name}/manifest.json`.
#[utoipa::path(
    get,
    path = "/api/exports/{name}/manifest.json",
    operation_id = "getExportManifest",
    tag = "Bulk",
    params(ExportNameParam, Conditional),
    responses(ManifestResponses),
    extensions(("x-extension" = json!(true)))
)]
pub(crate) async fn manifest(
    State(state): State<Arc<BulkState>>,
    PathParam(name): PathParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let manifest = served_manifest(&state, &parse(&name)?).await?;
    Ok(TextBody::new(manifest.json).into_response(&headers, CachePolicy::Export, MediaType::Json))
}

/// `GET /api/exports/{name}/manifest.json.minisig`.
#[utoipa::path(
    get,
    path = "/api/exports/{name}/manifest.json.minisig",
    operation_id = "getExportSignature",
    tag = "Bulk",
    params(ExportNameParam, Conditional),
    responses(SignatureResponses),
    extensions(("x-extension" = json!(true)))
)]
pub(crate) async fn signature(
    State(state): State<Arc<BulkState>>,
    PathParam(name): PathParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let name = parse(&name)?;
    served_manifest(&state, &name).await?;
    let signature = state.exports.read_signature(&name).await?;
    Ok(TextBody::new(signature).into_response(&headers, CachePolicy::Export, MediaType::Plain))
}

/// Defines the handler of a file, and its responses.
// rustfmt would indent the attribute further each time.
#[rustfmt::skip]
macro_rules! file_handler {
    ($handler:ident, $file:ident, $path:literal, $operation:literal) => {
        struct $file;

        impl IntoResponses for $file {
            fn responses() -> Responses {
                file_responses(ExportFile::$file)
            }
        }

        #[utoipa::path(
            get,
            path = $path,
            operation_id = $operation,
            tag = "Bulk",
            params(ExportNameParam, Conditional, Ranged),
            responses($file),
            extensions(("x-extension" = json!(true)))
        )]
        pub(crate) async fn $handler(
            State(state): State<Arc<BulkState>>,
            PathParam(name): PathParam,
            headers: RequestHeaders,
            range: RangeRequest,
        ) -> Result<Response, ApiError> {
            file_response(&state, &parse(&name)?, ExportFile::$file, &headers, &range).await
        }
    };
}

file_handler!(chartsets, Chartsets, "/api/exports/{name}/chartsets.ndjson.zst", "getExportedChartsets");
file_handler!(rox_files, Rox, "/api/exports/{name}/rox.tar", "getExportedRoxFiles");
file_handler!(catalogue, Catalogue, "/api/exports/{name}/catalogue.sqlite.zst", "getExportedCatalogue");
file_handler!(parquet, Parquet, "/api/exports/{name}/catalogue.parquet", "getExportedParquet");

fn parse(name: &str) -> Result<ExportName, ApiError> {
    name.parse().map_err(|_| NOT_FOUND)
}

/// Reads the manifest of an export from after the last removal: earlier ones may contain what was removed, and
/// so may those of another lineage.
///
/// # Errors
/// There is no such export, it is an earlier one, its manifest cannot be read, or PostgreSQL is unavailable.
async fn served_manifest(state: &BulkState, name: &ExportName) -> Result<StoredManifest, ApiError> {
    let stored = state.exports.read_manifest(name).await?;
    let ExportManifest { lineage, sequence, .. } = stored.manifest;
    if state.store.has_removal_after(lineage, sequence).await? {
        return Err(ApiError::ExportWithdrawn);
    }
    Ok(stored)
}

/// Sends a file or a part of it, which is read while it is sent.
async fn file_response(
    state: &BulkState,
    name: &ExportName,
    file: ExportFile,
    headers: &RequestHeaders,
    range: &RangeRequest,
) -> Result<Response, ApiError> {
    let StoredManifest { manifest, .. } = served_manifest(state, name).await?;
    let described = manifest.file(file).ok_or(NOT_FOUND)?;
    let tag: EntityTag =
        described.blake3.to_string().parse().map_err(|error| ApiError::Internal(Box::new(error)))?;
    // Before the range (RFC 9110, section 13.2.2).
    if headers.matches(&tag) {
        return Ok(not_modified(&tag, CachePolicy::Export));
    }
    let ExportedFile { bytes: size, .. } = *described;
    let (status, first, length) = match range.select(&tag, size) {
        Selected::Whole => (StatusCode::OK, 0, size),
        Selected::Part { first, last } => (StatusCode::PARTIAL_CONTENT, first, last - first + 1),
        Selected::Unsatisfiable => return Err(ApiError::RangeNotSatisfiable { size }),
    };
    let content = state.exports.open_at(name, described, first).await?.take(length);
    let body = Body::from_stream(ReaderStream::with_capacity(content, CHUNK_BYTES));
    let headers = [
        (CONTENT_TYPE, media_type(file).to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", file.name())),
        (CONTENT_LENGTH, length.to_string()),
        (ACCEPT_RANGES, "bytes".to_owned()),
        (ETAG, tag.to_string()),
    ];
    let mut response = (status, CachePolicy::Export, headers, body).into_response();
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {first}-{}/{size}", first + length - 1);
        response.headers_mut().insert(CONTENT_RANGE, header_value(&range)?);
    }
    Ok(response)
}

fn header_value(text: &str) -> Result<axum::http::HeaderValue, ApiError> {
    text.parse().map_err(|error: axum::http::header::InvalidHeaderValue| ApiError::Internal(error.into()))
}
