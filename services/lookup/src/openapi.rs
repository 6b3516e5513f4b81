//! What the OpenAPI document says of the operations: parameters and responses.

use axum::http::StatusCode;
use chart_index_domain::Variant;
use chart_index_http::openapi::{
    JSON, Responses, binary, by_status, constant_header, errors, extension, header, include_parameter, json,
    response, schema_of, tagged,
};
use chart_index_http::{CachePolicy, ErrorType, FieldGroup};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Required, Schema};
use utoipa::{IntoParams, IntoResponses, PartialSchema, ToSchema};

use crate::lookup_body::VariantChartsBody;
use crate::lookup_schemas::{BatchLookupItem, ChartLookup};

pub(crate) struct ChartResponses;

impl IntoResponses for ChartResponses {
    fn responses() -> Responses {
        let ok = json::<ChartLookup>("The chart is known, or unknown to the index", CachePolicy::Lookup);
        let types = [ErrorType::BadParameter, ErrorType::MalformedHash];
        ok.into_iter().chain(errors(&types, CachePolicy::NoStore)).collect()
    }
}

pub(crate) struct VariantResponses;

impl IntoResponses for VariantResponses {
    fn responses() -> Responses {
        let ok = json::<VariantChartsBody<'static>>("The charts with the variant", CachePolicy::Lookup);
        ok.into_iter().chain(errors(&[ErrorType::BadParameter], CachePolicy::NoStore)).collect()
    }
}

/// The query parameters of a chart lookup.
pub(crate) struct LookupParameters;

impl IntoParams for LookupParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        // An empty value counts as absent.
        let variant = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^([0-9a-f]{64})?$"));
        let variant = query("variant", variant.into()).extensions(Some(extension()));
        vec![include_parameter(FieldGroup::OF_LOOKUPS), variant.build()]
    }
}

/// The query parameter of a batch lookup.
pub(crate) struct BatchParameters;

impl IntoParams for BatchParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![include_parameter(FieldGroup::OF_LOOKUPS)]
    }
}

/// The parameters of the charts of a variant.
pub(crate) struct VariantParameters;

impl IntoParams for VariantParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let variant = ParameterBuilder::new().name("variant").parameter_in(ParameterIn::Path);
        let variant = variant.required(Required::True).schema(Some(Variant::schema())).build();
        vec![variant, include_parameter(FieldGroup::OF_VARIANTS)]
    }
}

fn query(name: &str, schema: RefOr<Schema>) -> ParameterBuilder {
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Query);
    parameter.required(Required::False).schema(Some(schema))
}

pub(crate) struct RoxResponses;

impl IntoResponses for RoxResponses {
    fn responses() -> Responses {
        let length = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1));
        let ok = response("The ROX file", CachePolicy::Rox)
            .content("application/octet-stream", binary())
            .header("Content-Disposition", header("Attachment, named by the hash").build())
            .header(
                "Content-Length",
                utoipa::openapi::header::HeaderBuilder::new().schema(Some(length)).build(),
            )
            .header("X-Content-Type-Options", constant_header("nosniff", "The type is as stated"));
        let found = response("The same file is at `Location`, in an object store", CachePolicy::Redirect)
            .header("Location", header("The address of the file").build());
        let types = [ErrorType::MalformedHash, ErrorType::NotFound];
        let mut responses = tagged(ok, CachePolicy::Rox, false);
        responses.extend(by_status([(StatusCode::FOUND, found)]));
        responses.into_iter().chain(errors(&types, CachePolicy::RoxNotFound)).collect()
    }
}

/// The preview of a chart, which the service sends as it is stored (docs/formats/preview.md).
#[derive(ToSchema)]
#[expect(dead_code, reason = "a schema")]
#[schema(rename_all = "camelCase")]
pub(crate) struct ChartPreview {
    #[schema(minimum = 1, maximum = 1)]
    version: u8,
    #[schema(minimum = 4, maximum = 7)]
    keys: u8,
    length_ms: u32,
    #[schema(min_items = 4, max_items = 7)]
    columns: Vec<Vec<f64>>,
    #[schema(max_items = 2000)]
    timing: Vec<Vec<f64>>,
    #[schema(max_items = 4000)]
    scroll: Vec<Vec<f64>>,
}

pub(crate) struct PreviewResponses;

impl IntoResponses for PreviewResponses {
    fn responses() -> Responses {
        let types = [ErrorType::MalformedHash, ErrorType::NotFound];
        let ok = json::<ChartPreview>("The notes and the timing of the chart", CachePolicy::Rox);
        ok.into_iter().chain(errors(&types, CachePolicy::RoxNotFound)).collect()
    }
}

pub(crate) struct BatchResponses;

impl IntoResponses for BatchResponses {
    fn responses() -> Responses {
        let ok = response("The items are in the order of the hashes", CachePolicy::NoStore)
            .content(JSON, schema_of::<BatchBody>())
            .header("Vary", constant_header("Accept-Encoding", "The body may be compressed with gzip"));
        let types = [
            ErrorType::BadParameter,
            ErrorType::MalformedHash,
            ErrorType::MalformedBody,
            ErrorType::RequestTimeout,
            ErrorType::ContentTooLarge,
            ErrorType::UnsupportedMediaType,
        ];
        by_status([(StatusCode::OK, ok)]).into_iter().chain(errors(&types, CachePolicy::NoStore)).collect()
    }
}

/// The response of a batch lookup, for its schema: the handler joins the bodies of single lookups.
#[derive(ToSchema)]
#[schema(as = BatchLookup)]
pub(crate) struct BatchBody {
    #[expect(dead_code, reason = "a field of the schema")]
    #[schema(min_items = 1, max_items = 1_000)]
    items: Vec<BatchLookupItem>,
}
