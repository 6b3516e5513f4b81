//! What the OpenAPI document says of exports: parameters and responses.

use axum::http::StatusCode;
use chart_index_domain::{ExportFile, ExportManifest, ExportName};
use chart_index_http::openapi::{
    JSON, Responses, after_redirect, binary, by_status, constant_header, errors, header, json, response,
    schema_of, tagged, text,
};
use chart_index_http::{CachePolicy, ErrorType};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Required};
use utoipa::{IntoParams, IntoResponses, PartialSchema};

use super::export_files::media_type;

/// Why an export is not served.
const MISSING: [ErrorType; 2] = [ErrorType::NotFound, ErrorType::ExportWithdrawn];

pub(crate) struct ExportNameParam;

impl IntoParams for ExportNameParam {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let parameter = ParameterBuilder::new().name("name").parameter_in(ParameterIn::Path);
        let parameter = parameter.description(Some("Name of the export"));
        vec![parameter.required(Required::True).schema(Some(ExportName::schema())).build()]
    }
}

/// The headers of range requests.
pub(crate) struct Ranged;

impl IntoParams for Ranged {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let of_header = |name: &str, description: &str| {
            let text = ObjectBuilder::new().schema_type(Type::String);
            let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Header);
            let parameter = parameter.description(Some(description)).required(Required::False);
            parameter.schema(Some(text)).build()
        };
        vec![
            of_header("Range", "One range of bytes, such as `bytes=1000-`"),
            of_header("If-Range", "The tag of the file of which the client has a part"),
        ]
    }
}

pub(crate) struct LatestResponses;

impl IntoResponses for LatestResponses {
    fn responses() -> Responses {
        let found =
            response("The manifest of the newest export is at `Location`", CachePolicy::LatestRedirect);
        let found = found.header("Location", header("The path of the manifest").build());
        let manifest = after_redirect(JSON, schema_of::<ExportManifest>());
        let found = by_status([(StatusCode::FOUND, found), (StatusCode::OK, manifest)]);
        found.into_iter().chain(errors(&MISSING, CachePolicy::NoStore)).collect()
    }
}

pub(crate) struct ManifestResponses;

impl IntoResponses for ManifestResponses {
    fn responses() -> Responses {
        let ok = json::<ExportManifest>("The manifest", CachePolicy::Export);
        ok.into_iter().chain(errors(&MISSING, CachePolicy::NoStore)).collect()
    }
}

pub(crate) struct SignatureResponses;

impl IntoResponses for SignatureResponses {
    fn responses() -> Responses {
        let ok = response("The signature of the manifest, as a file of minisign", CachePolicy::Export);
        let ok = tagged(ok.content("text/plain", text()), CachePolicy::Export, true);
        ok.into_iter().chain(errors(&MISSING, CachePolicy::NoStore)).collect()
    }
}

/// The responses with a file of an export.
pub(crate) fn file_responses(file: ExportFile) -> Responses {
    let mut responses = tagged(of_file("The file", file), CachePolicy::Export, false);
    let range = header("The bytes that follow, and the size of the file").build();
    let part = of_file("The range of the file", file).header("Content-Range", range);
    let part = part.header("ETag", header("Strong entity tag, for `If-Range`").build());
    responses.extend(by_status([(StatusCode::PARTIAL_CONTENT, part)]));
    let types = [&MISSING[..], &[ErrorType::RangeNotSatisfiable]].concat();
    responses.extend(errors(&types, CachePolicy::NoStore));
    if let Some(RefOr::T(refused)) = responses.get_mut(StatusCode::RANGE_NOT_SATISFIABLE.as_str()) {
        let size = header("The size of the file").build();
        refused.headers.insert("Content-Range".to_owned(), size.into());
    }
    responses
}

fn of_file(description: &str, file: ExportFile) -> ResponseBuilder {
    response(description, CachePolicy::Export)
        .content(media_type(file), binary())
        .header("Content-Disposition", header("Attachment, with the name of the file").build())
        .header("Accept-Ranges", constant_header("bytes", "Ranges are supported"))
}
