//! What the OpenAPI document says of the operations: parameters and responses.

use axum::http::StatusCode;
use chart_index_http::openapi::{
    Responses, after_redirect, binary, by_status, errors, header, response, tagged,
};
use chart_index_http::{CachePolicy, ErrorType};
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::{IntoParams, IntoResponses};

const BYTES: &str = "application/octet-stream";

pub(super) struct RedirectResponses;

impl IntoResponses for RedirectResponses {
    fn responses() -> Responses {
        let found = response("The last filter is at `Location`", CachePolicy::LatestRedirect);
        let found = found.header("Location", header("The path of the filter").build());
        let filter = after_redirect(BYTES, binary());
        let found = by_status([(StatusCode::FOUND, found), (StatusCode::OK, filter)]);
        found.into_iter().chain(errors(&[ErrorType::NotFound], CachePolicy::NoStore)).collect()
    }
}

pub(super) struct FilterResponses;

impl IntoResponses for FilterResponses {
    fn responses() -> Responses {
        let ok = response("The filter", CachePolicy::HashFilter).content(BYTES, binary());
        let tagged = tagged(ok, CachePolicy::HashFilter, false);
        tagged.into_iter().chain(errors(&[ErrorType::NotFound], CachePolicy::NoStore)).collect()
    }
}

pub(super) struct SequenceParameter;

impl IntoParams for SequenceParameter {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let sequence = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
        let sequence = sequence.format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)));
        let parameter = ParameterBuilder::new().name("sequence").parameter_in(ParameterIn::Path);
        let parameter = parameter.description(Some("Sequence of the filter in the change feed"));
        vec![parameter.required(Required::True).schema(Some(sequence)).build()]
    }
}
