//! What the OpenAPI document says of the operations: parameters and responses.

use axum::http::StatusCode;
use chart_index_http::openapi::{Responses, constant_header, errors, header, json, response, tagged};
use chart_index_http::{CachePolicy, ErrorType};
use utoipa::IntoResponses;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::lookup_body::LookupBody;

pub(crate) struct ChartResponses;

impl IntoResponses for ChartResponses {
    fn responses() -> Responses {
        let ok =
            json::<LookupBody<'static>>("The chart is known, or unknown to the index", CachePolicy::Lookup);
        ok.into_iter().chain(errors(&[ErrorType::MalformedHash], CachePolicy::NoStore)).collect()
    }
}

pub(crate) struct RoxResponses;

impl IntoResponses for RoxResponses {
    fn responses() -> Responses {
        let bytes = ContentBuilder::new().build();
        let length = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1));
        let ok = response("The ROX file", CachePolicy::Rox)
            .content("application/octet-stream", bytes)
            .header("Content-Disposition", header("Attachment, named by the hash").build())
            .header(
                "Content-Length",
                utoipa::openapi::header::HeaderBuilder::new().schema(Some(length)).build(),
            )
            .header("X-Content-Type-Options", constant_header("nosniff", "The type is as stated"));
        let types = [ErrorType::MalformedHash, ErrorType::NotFound];
        let tagged = tagged(ok, CachePolicy::Rox, false);
        debug_assert!(tagged.contains_key(StatusCode::OK.as_str()));
        tagged.into_iter().chain(errors(&types, CachePolicy::RoxNotFound)).collect()
    }
}
