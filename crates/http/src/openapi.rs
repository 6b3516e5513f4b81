//! What the OpenAPI documents of the services share: parameters, headers, and the responses that follow from
//! [`CachePolicy`] and [`ErrorType`].
//!
//! Descriptions of fields and parameters are not here: the assembled document takes them from docs/api.md.

use axum::http::StatusCode;
use utoipa::openapi::content::{Content, ContentBuilder};
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{Array, ArrayBuilder, KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{Ref, RefOr, Required, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::{CachePolicy, ChartsetIdParam, ErrorType, FieldGroup, HashParam, Problem};
use chart_index_domain::{ChartOccurrence, ChartsetId, NoteHash};

/// The responses of an operation, by status.
pub type Responses = std::collections::BTreeMap<String, RefOr<Response>>;

/// The media type of JSON bodies.
pub const JSON: &str = "application/json";

/// The media type of errors.
const PROBLEM: &str = "application/problem+json";

/// Marks what goes beyond the contract (docs/api.md, "Extensions").
#[must_use]
pub fn extension() -> Extensions {
    [("x-extension", true)].into_iter().collect()
}

/// The chartsets that hold a chart. The derive macro drops extensions of arrays.
#[must_use]
pub fn chartsets_schema() -> Array {
    let items = Ref::from_schema_name(ChartOccurrence::name());
    ArrayBuilder::new().items(items).max_items(Some(8)).extensions(Some(extension())).build()
}

/// The query parameter `include`. Its values are separated by commas, or in several parameters.
#[must_use]
pub fn include_parameter(accepted: &[FieldGroup]) -> Parameter {
    let names = accepted.iter().map(|group| group.as_str());
    let name = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names.collect::<Vec<_>>()));
    let names = ArrayBuilder::new().items(name).min_items(Some(1));
    let parameter = ParameterBuilder::new().name("include").parameter_in(ParameterIn::Query);
    let parameter = parameter.required(Required::False).schema(Some(names));
    let parameter = parameter.style(Some(ParameterStyle::Form)).explode(Some(false));
    parameter.extensions(Some(extension())).build()
}

/// A header with a text value.
#[must_use]
pub fn header(description: &str) -> HeaderBuilder {
    header_of(ObjectBuilder::new().schema_type(Type::String), description)
}

/// A header that always has this value.
#[must_use]
pub fn constant_header(value: &str, description: &str) -> Header {
    header_of(ObjectBuilder::new().schema_type(Type::String).enum_values(Some([value])), description).build()
}

fn header_of(schema: ObjectBuilder, description: &str) -> HeaderBuilder {
    HeaderBuilder::new().schema(Some(schema)).description(Some(description))
}

fn seconds() -> Header {
    let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1));
    header_of(seconds, "Whole seconds, rounded up").build()
}

/// A response that may be cached by this policy.
#[must_use]
pub fn response(description: &str, policy: CachePolicy) -> ResponseBuilder {
    let cache_control = policy.header();
    let value = cache_control.to_str().unwrap_or_default();
    ResponseBuilder::new()
        .description(description)
        .header("Cache-Control", constant_header(value, "How long the response may be cached"))
        .header("X-Request-Id", header("Names the request in the log").extensions(Some(extension())).build())
}

/// A 200 with an entity tag, and the 304 that takes its place if `If-None-Match` has the tag.
#[must_use]
pub fn tagged(ok: ResponseBuilder, policy: CachePolicy, varies: bool) -> Responses {
    let not_modified = response("`If-None-Match` has the tag of the response", policy);
    let with_tag = |response: ResponseBuilder| {
        let response = response.header("ETag", header("Strong entity tag, for `If-None-Match`").build());
        let vary = || constant_header("Accept-Encoding", "A gzip body has a tag of its own");
        if varies { response.header("Vary", vary()) } else { response }
    };
    let responses = [(StatusCode::OK, with_tag(ok)), (StatusCode::NOT_MODIFIED, with_tag(not_modified))];
    by_status(responses)
}

/// The responses, each of which is cached by one of several policies.
#[must_use]
pub fn with_cache_policies(mut responses: Responses, policies: &[CachePolicy]) -> Responses {
    let headers: Vec<_> = policies.iter().map(|policy| policy.header()).collect();
    let values = headers.iter().filter_map(|header| header.to_str().ok());
    let schema = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(values.collect::<Vec<_>>()));
    let header = header_of(schema, "How long the response may be cached").build();
    for response in responses.values_mut() {
        if let RefOr::T(response) = response {
            response.headers.insert("Cache-Control".to_owned(), header.clone().into());
        }
    }
    responses
}

/// A JSON body of this type, and its 304.
#[must_use]
pub fn json<T: ToSchema>(description: &str, policy: CachePolicy) -> Responses {
    tagged(response(description, policy).content(JSON, schema_of::<T>()), policy, true)
}

/// A body of this type.
#[must_use]
pub fn schema_of<T: ToSchema>() -> Content {
    ContentBuilder::new().schema(Some(Ref::from_schema_name(T::name()))).build()
}

/// A body of bytes. OpenAPI 3.1 describes it without a schema; generators need the form of 3.0.
#[must_use]
pub fn binary() -> Content {
    let bytes = ObjectBuilder::new().schema_type(Type::String);
    let bytes = bytes.format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)));
    ContentBuilder::new().schema(Some(bytes)).build()
}

/// A body of text.
#[must_use]
pub fn text() -> Content {
    ContentBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String))).build()
}

/// The response at the `Location` of a redirect within the API. Clients follow it by themselves, and need to
/// know what they then get.
#[must_use]
pub fn after_redirect(media_type: &str, content: Content) -> ResponseBuilder {
    let mark = [("x-after-redirect", true)].into_iter().collect();
    let response = ResponseBuilder::new().description("What is at `Location`, to which HTTP clients go on");
    response.content(media_type, content).extensions(Some(mark))
}

/// Adds the headers with what is left of the rate limit to the responses that no shared cache may keep. Of a
/// 414 the group is `other`, as of a 400 for the `Host`.
pub fn add_budget(responses: &mut Responses) {
    for (status, response) in responses {
        let RefOr::T(response) = response else { continue };
        if status == StatusCode::URI_TOO_LONG.as_str() {
            continue;
        }
        let cache_control = response.headers.get("Cache-Control").map(serde_json::to_string);
        if cache_control.is_some_and(|json| json.is_ok_and(|json| json.contains("no-store"))) {
            for (name, header) in rate_limit_headers() {
                response.headers.entry(name.to_owned()).or_insert_with(|| header.into());
            }
        }
    }
}

/// Collects responses by their status.
pub fn by_status(responses: impl IntoIterator<Item = (StatusCode, ResponseBuilder)>) -> Responses {
    responses.into_iter().map(|(status, response)| (status.as_str().to_owned(), response.into())).collect()
}

/// The errors that an operation responds with, by status: of these types, and of those that every operation
/// has.
#[must_use]
pub fn errors(own: &[ErrorType], policy: CachePolicy) -> Responses {
    /// Errors of every operation.
    const COMMON: [ErrorType; 8] = [
        ErrorType::BadHost,
        ErrorType::UriTooLong,
        ErrorType::RateLimited,
        ErrorType::Internal,
        ErrorType::Unavailable,
        ErrorType::Overloaded,
        ErrorType::DeadlineExceeded,
        ErrorType::ShuttingDown,
    ];
    let mut types = [own, &COMMON].concat();
    types.sort_by_key(|error_type| error_type.status());
    let of_status = types.chunk_by(|a, b| a.status() == b.status()).map(|types| {
        let status = types[0].status();
        let policy = if status == StatusCode::NOT_FOUND { policy } else { CachePolicy::NoStore };
        (status, error(types, policy))
    });
    // Of a proxy in front, such as that of compose/haproxy.
    let of_proxies = [StatusCode::BAD_GATEWAY, StatusCode::GATEWAY_TIMEOUT]
        .map(|status| (status, error(&[ErrorType::Unavailable], CachePolicy::NoStore)));
    by_status(of_status.chain(of_proxies))
}

/// The errors of an operation outside of `/api`: a client that prefers HTML gets a page.
#[must_use]
pub fn errors_or_pages(own: &[ErrorType]) -> Responses {
    let mut responses = errors(own, CachePolicy::NoStore);
    for response in responses.values_mut() {
        if let RefOr::T(response) = response {
            let vary = constant_header("accept", "`Accept` decides whether the error is a page");
            response.headers.insert("Vary".to_owned(), vary.into());
            response.content.insert("text/html".to_owned(), text().into());
        }
    }
    responses
}

/// The response with an error of one of these types, which have the same status.
fn error(types: &[ErrorType], policy: CachePolicy) -> ResponseBuilder {
    let titles: Vec<String> =
        types.iter().map(|kind| format!("[{}]({})", kind.title(), kind.problem_type())).collect();
    let response = response(&titles.join("; "), policy).content(PROBLEM, schema_of::<Problem>());
    match types[0] {
        ErrorType::RateLimited => {
            let response = response.header("Retry-After", seconds());
            rate_limit_headers()
                .into_iter()
                .fold(response, |response, (name, header)| response.header(name, header))
        }
        ErrorType::UnsupportedMediaType => response
            .header("Accept", constant_header("application/json", "The media type to send"))
            .header("Accept-Encoding", constant_header("gzip", "The content coding that is supported")),
        kind if kind.status() == StatusCode::SERVICE_UNAVAILABLE
            || types.contains(&ErrorType::ExportWithdrawn) =>
        {
            response.header("Retry-After", seconds())
        }
        _ => response,
    }
}

fn rate_limit_headers() -> [(&'static str, Header); 2] {
    [
        ("RateLimit-Policy", "The limit: `q` requests in `w` seconds"),
        ("RateLimit", "Its state: `r` requests left, one more in `t` seconds"),
    ]
    .map(|(name, description)| (name, header(description).extensions(Some(extension())).build()))
}

fn path_parameter<T: ToSchema>(name: &str, description: &str) -> Parameter {
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path);
    let parameter = parameter.description(Some(description));
    parameter.required(Required::True).schema(Some(Ref::from_schema_name(T::name()))).build()
}

impl IntoParams for HashParam {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![path_parameter::<NoteHash>("hash", "Note hash of the chart")]
    }
}

impl IntoParams for ChartsetIdParam {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![path_parameter::<ChartsetId>("id", "Id of the chartset")]
    }
}

/// The header of conditional requests.
#[derive(Debug, Clone, Copy)]
pub struct Conditional;

impl IntoParams for Conditional {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        let header = ParameterBuilder::new().name("If-None-Match").parameter_in(ParameterIn::Header);
        let header = header.description(Some("Entity tags of responses that the client has, or `*`"));
        vec![header.required(Required::False).schema(Some(text)).build()]
    }
}

/// The types that responses of every service refer to.
#[must_use]
pub fn schemas() -> Vec<(String, RefOr<Schema>)> {
    let mut schemas = Vec::new();
    Problem::schemas(&mut schemas);
    schemas.push((Problem::name().into_owned(), Problem::schema()));
    schemas.push((NoteHash::name().into_owned(), NoteHash::schema()));
    schemas.push((ChartsetId::name().into_owned(), ChartsetId::schema()));
    schemas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_grouped_by_status() {
        let errors = errors(&[ErrorType::NotFound, ErrorType::MalformedHash], CachePolicy::RoxNotFound);
        let statuses: Vec<&str> = errors.keys().map(String::as_str).collect();
        assert_eq!(statuses, ["400", "404", "414", "429", "500", "502", "503", "504"]);
        let json = serde_json::to_value(&errors).unwrap();
        let description = json["400"]["description"].as_str().unwrap();
        assert!(description.contains("/problems/malformed-hash"), "{description}");
        assert!(description.contains("/problems/bad-host"), "{description}");
        let cached = &json["404"]["headers"]["Cache-Control"]["schema"]["enum"][0];
        assert_eq!(cached, "public, max-age=60");
        for (status, has) in [("429", true), ("502", true), ("503", true), ("504", true), ("500", false)] {
            assert_eq!(json[status]["headers"].get("Retry-After").is_some(), has, "{status}");
        }
    }
}
