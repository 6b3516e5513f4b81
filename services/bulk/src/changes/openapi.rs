//! What the OpenAPI document says of the operations: parameters and responses.

use chart_index_http::openapi::{Responses, errors, json, with_cache_policies};
use chart_index_http::{CachePolicy, ErrorType};
use serde_json::json;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::{IntoParams, IntoResponses};

use super::feed_json::ChangesBody;
use super::page_request::{DEFAULT_LIMIT, MAX_LIMIT, MAX_WAIT};

/// The largest integer of JSON that every client reads exactly (RFC 8259, section 6).
const MAX_SEQUENCE: u64 = (1 << 53) - 1;

/// The parameters of the change feed. As those of lists, numbers are clamped, not refused.
pub(crate) struct ChangesParameters;

impl IntoParams for ChangesParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![
            // A sequence does not fit into the 32 bits that generators assume.
            parameter(
                "after",
                integer(0, 0, MAX_SEQUENCE).format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64))),
            ),
            lineage(),
            parameter("limit", integer(DEFAULT_LIMIT, 1, MAX_LIMIT.into())),
            parameter("wait", integer(0, 0, MAX_WAIT.into())),
        ]
    }
}

fn parameter(name: &str, schema: ObjectBuilder) -> Parameter {
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Query);
    parameter.required(Required::False).schema(Some(schema)).build()
}

fn integer(default: u32, min: u64, max: u64) -> ObjectBuilder {
    let clamped = [("x-clamped-to", json!({"minimum": min, "maximum": max}))].into_iter().collect();
    let schema = ObjectBuilder::new().schema_type(Type::Integer).default(Some(json!(default)));
    schema.extensions(Some(clamped))
}

fn lineage() -> Parameter {
    // An empty value counts as absent.
    parameter("lineage", ObjectBuilder::new().schema_type(Type::String).pattern(Some("^([0-9a-f]{16})?$")))
}

pub(crate) struct ChangesResponses;

impl IntoResponses for ChangesResponses {
    fn responses() -> Responses {
        let ok = json::<ChangesBody<'static>>("The changes that follow", CachePolicy::FeedTail);
        let ok = with_cache_policies(
            ok,
            &[CachePolicy::FeedTail, CachePolicy::FullFeedPage, CachePolicy::NoStore],
        );
        let types = [ErrorType::BadParameter, ErrorType::ChangesLost];
        ok.into_iter().chain(errors(&types, CachePolicy::NoStore)).collect()
    }
}
